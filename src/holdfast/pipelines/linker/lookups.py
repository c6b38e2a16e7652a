"""Wikidata as `matching` asks it, each thing looked up once for as long as this lives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from holdfast.pipeline import Http
from holdfast.pipelines.linker.entities import (
    INSTANCE_OF,
    Candidate,
    Entity,
    Kind,
    Value,
    candidate_of,
)
from holdfast.pipelines.linker.names import language_of
from holdfast.pipelines.linker.wikidata import (
    Api,
    fetch_closure,
    fetch_entities,
    search_entities,
    search_text,
    statement_queries,
    value_items,
    word_query,
)

_TEXT_HITS = 50  # as many as one call for entities takes


class WikidataLookups:
    def __init__(self, http: Http, api: Api) -> None:
        self._http = http
        self._api = api
        self._entities: dict[str, Entity | None] = {}
        self._closure: dict[str, frozenset[str]] = {}
        self._searches: dict[tuple[str, ...], Sequence[str]] = {}

    async def by_identifier(self, property_id: str, value: str) -> Sequence[str]:
        ids: list[str] = []
        for query in statement_queries([(property_id, value)]):
            ids += await self._text_search(query)
        return ids

    async def by_name(self, text: str, limit: int, offset: int) -> Sequence[str]:
        language = language_of(text, self._api.language)
        key = ("name", text, language, str(limit), str(offset))
        if key not in self._searches:
            page = await search_entities(
                self._http, self._api, text, language=language, limit=limit, offset=offset
            )
            self._searches[key] = [hit.id for hit in page.hits]
        return self._searches[key]

    async def by_words(self, text: str, fuzzy: bool) -> Sequence[str]:
        query = word_query(text, fuzzy=fuzzy)
        return await self._text_search(query) if query else ()

    async def _text_search(self, query: str) -> Sequence[str]:
        key = ("text", query)
        if key not in self._searches:
            self._searches[key] = await search_text(self._http, self._api, query, limit=_TEXT_HITS)
        return self._searches[key]

    async def candidates(self, ids: Sequence[str], named: Sequence[str]) -> Mapping[str, Candidate]:
        entities = {i: e for i, e in (await self._load(ids)).items() if e is not None}
        classes = {c for entity in entities.values() for c in entity.items(INSTANCE_OF)}
        self._closure.update(
            await fetch_closure(self._http, self._api, classes, known=self._closure)
        )
        values = await self._load(value_items(entities.values(), named))
        names = {i: e.names for i, e in values.items() if e is not None}
        language = self._api.language
        return {
            entity_id: _with_names(candidate_of(entity, language, self._closure), named, names)
            for entity_id, entity in entities.items()
        }

    async def _load(self, ids: Iterable[str]) -> dict[str, Entity | None]:
        wanted = list(dict.fromkeys(ids))
        missing = [entity_id for entity_id in wanted if entity_id not in self._entities]
        self._entities.update(await fetch_entities(self._http, self._api, missing))
        return {entity_id: self._entities[entity_id] for entity_id in wanted}


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
