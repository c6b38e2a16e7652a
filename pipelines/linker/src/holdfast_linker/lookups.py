"""Wikidata as `matching` uses it: searches, candidates with all their classes and the names of
their values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from holdfast.pipeline import Http
from holdfast_linker.entities import (
    INSTANCE_OF,
    SUBCLASS_OF,
    Candidate,
    Entity,
    Kind,
    Value,
    candidate_of,
)
from holdfast_linker.names import language_of
from holdfast_linker.wikidata import (
    Api,
    fetch_entities,
    search_entities,
    search_text,
    statement_queries,
    value_items,
    word_query,
)

_TEXT_HITS = 50  # as many as one call for entities takes
_CLOSURE_DEPTH = 8

#: class -> all classes above it
Closure = dict[str, frozenset[str]]


class Calls(Protocol):
    """The calls behind the look-ups: made one by one, or batched across entries and cached."""

    async def search_name(
        self, text: str, language: str, limit: int, offset: int
    ) -> Sequence[str]: ...

    async def search_text(self, query: str, limit: int) -> Sequence[str]: ...

    async def entities(self, ids: Iterable[str]) -> Mapping[str, Entity | None]: ...


class DirectCalls:
    """Makes calls directly; each thing is requested once during the lifetime of this object."""

    def __init__(self, http: Http, api: Api) -> None:
        self._http = http
        self._api = api
        self._entities: dict[str, Entity | None] = {}
        self._searches: dict[tuple[str, ...], Sequence[str]] = {}

    async def search_name(self, text: str, language: str, limit: int, offset: int) -> Sequence[str]:
        key = (text, language, str(limit), str(offset))
        if key not in self._searches:
            page = await search_entities(
                self._http, self._api, text, language=language, limit=limit, offset=offset
            )
            self._searches[key] = [hit.id for hit in page.hits]
        return self._searches[key]

    async def search_text(self, query: str, limit: int) -> Sequence[str]:
        key = (query, str(limit))
        if key not in self._searches:
            self._searches[key] = await search_text(self._http, self._api, query, limit=limit)
        return self._searches[key]

    async def entities(self, ids: Iterable[str]) -> Mapping[str, Entity | None]:
        wanted = list(dict.fromkeys(ids))
        missing = [entity_id for entity_id in wanted if entity_id not in self._entities]
        self._entities.update(await fetch_entities(self._http, self._api, missing))
        return {entity_id: self._entities[entity_id] for entity_id in wanted}


class WikidataLookups:
    def __init__(self, calls: Calls, language: str, closure: Closure) -> None:
        """Takes as `closure` the classes that are known already, and learns more."""
        self._calls = calls
        self._language = language
        self._closure = closure

    async def by_identifier(self, property_id: str, value: str) -> Sequence[str]:
        ids: list[str] = []
        for query in statement_queries([(property_id, value)]):
            ids += await self._calls.search_text(query, _TEXT_HITS)
        return ids

    async def by_name(self, text: str, limit: int, offset: int) -> Sequence[str]:
        language = language_of(text, self._language)
        return await self._calls.search_name(text, language, limit, offset)

    async def by_words(self, text: str, fuzzy: bool) -> Sequence[str]:
        query = word_query(text, fuzzy=fuzzy)
        return await self._calls.search_text(query, _TEXT_HITS) if query else ()

    async def candidates(self, ids: Sequence[str], named: Sequence[str]) -> Mapping[str, Candidate]:
        entities = {i: e for i, e in (await self._calls.entities(ids)).items() if e is not None}
        classes = {c for entity in entities.values() for c in entity.items(INSTANCE_OF)}
        self._closure.update(await class_closure(self._calls, classes, self._closure))
        values = await self._calls.entities(value_items(entities.values(), named))
        names = {i: e.names for i, e in values.items() if e is not None}
        return {
            entity_id: _with_names(
                candidate_of(entity, self._language, self._closure), named, names
            )
            for entity_id, entity in entities.items()
        }


def direct_lookups(http: Http, api: Api) -> WikidataLookups:
    return WikidataLookups(DirectCalls(http, api), api.language, {})


async def class_closure(
    calls: Calls, classes: Iterable[str], known: Mapping[str, frozenset[str]]
) -> Closure:
    """Returns all classes above each class, by "subclass of". `known` saves calls."""
    parents: dict[str, list[str]] = {}
    level = {c for c in classes if c not in known}
    for _ in range(_CLOSURE_DEPTH):
        missing = sorted(c for c in level if c not in parents and c not in known)
        if not missing:
            break
        for class_id, entity in (await calls.entities(missing)).items():
            parents[class_id] = entity.items(SUBCLASS_OF) if entity else []
        level = {parent for class_id in missing for parent in parents[class_id]}
    return {class_id: _above(class_id, parents, known) for class_id in parents}


def _above(
    class_id: str, parents: Mapping[str, Sequence[str]], known: Mapping[str, frozenset[str]]
) -> frozenset[str]:
    """Returns all classes above one; classes may form circles in Wikidata."""
    seen: set[str] = set()
    level = list(parents.get(class_id, ()))
    while level:
        current = level.pop()
        if current in seen:
            continue
        seen.add(current)
        if current in known:
            seen |= known[current]
        level.extend(parents.get(current, ()))
    return frozenset(seen)


def _with_names(
    candidate: Candidate, named: Sequence[str], names: Mapping[str, tuple[str, ...]]
) -> Candidate:
    values = {
        property_id: [_named(value, names) for value in values] if property_id in named else values
        for property_id, values in candidate.values.items()
    }
    return replace(candidate, values=values)


def _named(value: Value, names: Mapping[str, tuple[str, ...]]) -> Value:
    if value.kind is Kind.ITEM and value.text in names:
        return replace(value, names=names[value.text])
    return value
