"""Answers requests to the Reconciliation service, version 0.2, given what is known.

Pure except for the repository: routes, tokens and headers are the web's concern.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, Protocol

import orjson

from holdfast.errors import UserError
from holdfast_linker.entities import Candidate, Value
from holdfast_linker.entries import Entry, GivenValue
from holdfast_linker.names import clean, cut, fold
from holdfast_linker.scoring import ScoredCandidate, Thresholds, rank

IDENTIFIER_SPACE = "http://www.wikidata.org/entity/"
SCHEMA_SPACE = "http://www.wikidata.org/prop/direct/"
_QUERY_KEYS = frozenset({"query", "type", "type_strict", "limit", "properties"})
_TYPE_STRICT = ("any", "should", "all")
_DEFAULT_LIMIT = 5
_MOST_CANDIDATES = 50
_SUGGESTIONS = 20
_VALUES_OF_ONE = 10  # each is looked up, so a batch may have only this many per query on average
_MOST_TYPES = 100
_ID_CHARACTERS = 200


class BadQueries(UserError):
    """A request that breaks the protocol, with the HTTP status that says so."""

    def __init__(self, message: str, hint: str | None = None, *, status: int = 400) -> None:
        super().__init__(message, hint)
        self.status = status


@dataclass(frozen=True, slots=True)
class Term:
    """A type or a property."""

    id: str
    name: str
    description: str = ""

    def to_json(self) -> dict[str, str]:
        shown = {"id": self.id, "name": self.name}
        return {**shown, "description": self.description} if self.description else shown


@dataclass(frozen=True, slots=True)
class KnownEntity:
    """An entity that Holdfast has, and the names that people linked to it."""

    id: str
    name: str
    names: tuple[str, ...] = ()
    description: str = ""
    types: tuple[Term, ...] = ()
    broader: frozenset[str] = frozenset()  # the classes above its types
    values: Mapping[str, Sequence[Value]] = field(default_factory=dict)
    decided: tuple[str, ...] = ()


class Repository(Protocol):
    """What has been accepted and what was looked up, searched."""

    async def named_like(self, text: str, limit: int) -> Sequence[KnownEntity]: ...

    async def with_value(
        self, property_id: str, text: str, limit: int
    ) -> Sequence[KnownEntity]: ...

    async def get(self, entity_id: str) -> KnownEntity | None: ...

    async def get_many(self, ids: Sequence[str]) -> Sequence[KnownEntity]: ...

    async def types(self, prefix: str, limit: int) -> Sequence[Term]: ...

    async def properties(self, prefix: str, limit: int) -> Sequence[Term]: ...

    async def properties_of(self, type_id: str, limit: int) -> Sequence[Term]:
        """Returns the properties that entities of a type have, the most common first; without a
        type, of all."""


@dataclass(frozen=True, slots=True)
class IncomingQuery:
    """One query of a batch."""

    text: str
    types: tuple[str, ...]
    strict: str
    limit: int
    properties: tuple[tuple[str, tuple[str, ...]], ...]


def manifest(
    name: str,
    base_url: str,
    view_url: str,
    types: Sequence[Term],
    spaces: tuple[str, str] = (IDENTIFIER_SPACE, SCHEMA_SPACE),
) -> dict[str, Any]:
    """Returns what the service says about itself; `base_url` includes its token.

    `spaces` are those of ids and of properties."""

    def suggest(kind: str) -> dict[str, str]:
        return {
            "service_url": base_url,
            "service_path": f"/suggest/{kind}",
            "flyout_service_path": f"/flyout/{kind}?id=${{id}}",
        }

    return {
        "versions": ["0.2"],
        "name": name,
        "identifierSpace": spaces[0],
        "schemaSpace": spaces[1],
        "view": {"url": view_url},
        "preview": {"url": f"{base_url}/preview?id={{{{id}}}}", "width": 400, "height": 120},
        "suggest": {kind: suggest(kind) for kind in ("entity", "type", "property")},
        "extend": {
            "propose_properties": {"service_url": base_url, "service_path": "/properties"},
            "property_settings": [],
        },
        "defaultTypes": [type_.to_json() for type_ in types],
    }


def read_queries(text: str, most: int) -> dict[str, IncomingQuery]:
    """Returns the queries of a request, checked; raises BadQueries with what is wrong in which."""
    try:
        batch = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise BadQueries(f"`queries` is not JSON: {error}") from None
    if not isinstance(batch, dict):
        raise BadQueries("`queries` must be an object of queries")
    if len(batch) > most:
        raise BadQueries(
            f"the batch has {len(batch):,} queries, where {most:,} are allowed",
            "Send smaller batches.",
            status=413,
        )
    queries = {key: _read_query(key, query) for key, query in batch.items()}
    values = sum(len(texts) for query in queries.values() for _, texts in query.properties)
    if values > _VALUES_OF_ONE * most:
        raise BadQueries(
            f"the batch has {values:,} values of properties, where {_VALUES_OF_ONE * most:,} are"
            " allowed",
            "Send smaller batches.",
            status=413,
        )
    return queries


def _read_query(key: str, query: Any) -> IncomingQuery:
    shown = repr(key[:50])
    if not isinstance(query, dict):
        raise BadQueries(f"query {shown} is not an object")
    unknown = sorted(set(query) - _QUERY_KEYS)
    if unknown:
        raise BadQueries(f"query {shown} has the unknown key {unknown[0][:50]!r}")
    text = query.get("query", "")
    if not isinstance(text, str):
        raise BadQueries(f"`query` of {shown} is not a text")
    properties = _read_properties(shown, query.get("properties", []))
    if "query" not in query and not properties:
        raise BadQueries(f"query {shown} has neither `query` nor `properties`")
    strict = query.get("type_strict", "should")
    if strict not in _TYPE_STRICT:
        raise BadQueries(f"`type_strict` of {shown} must be any, should or all")
    types, limit = _read_types(shown, query.get("type", [])), query.get("limit", _DEFAULT_LIMIT)
    if isinstance(limit, bool) or not isinstance(limit, int | float):
        raise BadQueries(f"`limit` of {shown} is not a number")
    return IncomingQuery(cut(clean(text)), types, strict, _bounded(limit), properties)


def _bounded(limit: float) -> int:
    return max(1, min(int(limit), _MOST_CANDIDATES)) if limit == limit else _DEFAULT_LIMIT


def _read_types(shown: str, given: Any) -> tuple[str, ...]:
    types = [given] if isinstance(given, str) else given
    if not isinstance(types, list) or not all(isinstance(type_id, str) for type_id in types):
        raise BadQueries(f"`type` of {shown} must be an id or a list of ids")
    if len(types) > _MOST_TYPES:
        raise BadQueries(f"`type` of {shown} has more than {_MOST_TYPES} ids")
    return tuple(type_id for type_id in types if type_id)


def _read_properties(shown: str, given: Any) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not isinstance(given, list):
        raise BadQueries(f"`properties` of {shown} is not a list")
    properties = []
    for pair in given:
        if not isinstance(pair, dict) or not isinstance(pair.get("pid"), str) or "v" not in pair:
            raise BadQueries(f"each of `properties` of {shown} needs `pid` and `v`")
        values = pair["v"] if isinstance(pair["v"], list) else [pair["v"]]
        texts = tuple(_value_text(shown, value) for value in values)
        properties.append((clean(pair["pid"])[:_ID_CHARACTERS], texts))
    return tuple(properties)


def _value_text(shown: str, value: Any) -> str:
    if isinstance(value, dict) and isinstance(value.get("id"), str):
        return clean(value["id"])[:_ID_CHARACTERS]
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return clean(str(value))
    raise BadQueries(f"a value in `properties` of {shown} is neither a text, a number nor an id")


async def answer(
    queries: Mapping[str, IncomingQuery], repository: Repository, thresholds: Thresholds
) -> dict[str, Any]:
    return {
        key: {"result": await _answer_one(query, repository, thresholds)}
        for key, query in queries.items()
    }


async def _answer_one(
    query: IncomingQuery, repository: Repository, thresholds: Thresholds
) -> list[dict[str, Any]]:
    known: dict[str, KnownEntity] = {}
    if query.text:
        near = await repository.named_like(query.text, _MOST_CANDIDATES)
        known.update((entity.id, entity) for entity in near)
    for property_id, texts in query.properties:
        for text in texts:
            holders = await repository.with_value(property_id, text, query.limit)
            known.update((entity.id, entity) for entity in holders)
    fitting = {k.id: k for k in known.values() if _has_type(k, query)}
    entry = _entry_of(query)
    ranking = rank(entry, map(_candidate, fitting.values()), thresholds)
    decided = [k.id for k in fitting.values() if _is_decided(k, query.text)]
    accepted = ranking.accepted.candidate.id if ranking.accepted else None
    if len(decided) == 1:
        accepted = decided[0]
    results = [
        _result(scored, fitting[scored.candidate.id], accepted, scored.candidate.id in decided)
        for scored in ranking.candidates
    ]
    results.sort(key=lambda result: -result["score"])
    return results[: query.limit]


def _has_type(known: KnownEntity, query: IncomingQuery) -> bool:
    if not query.types or (query.strict == "should" and len(query.types) > 1):
        return True
    own = {type_.id for type_ in known.types} | known.broader
    if query.strict == "all":
        return own.issuperset(query.types)
    return bool(own & set(query.types)) or (query.strict == "should" and not own)


def _entry_of(query: IncomingQuery) -> Entry:
    given = tuple(GivenValue(pid, text) for pid, texts in query.properties for text in texts)
    return Entry(key="query", name=query.text, properties=given)


def _candidate(known: KnownEntity) -> Candidate:
    names = (known.name, *known.names, *known.decided)
    return Candidate(known.id, known.name, names, known.description, values=known.values)


def _is_decided(known: KnownEntity, text: str) -> bool:
    wanted = fold(text)
    return bool(wanted) and any(fold(name) == wanted for name in known.decided)


def _result(
    scored: ScoredCandidate, known: KnownEntity, accepted: str | None, decided: bool
) -> dict[str, Any]:
    features: list[dict[str, Any]] = [
        {"id": field.field, "value": round(field.score, 1)}
        for field in scored.fields
        if field.score is not None
    ]
    return {
        "id": known.id,
        "name": known.name,
        "description": known.description,
        "score": 100.0 if decided else scored.score,
        "match": known.id == accepted,
        "type": [type_.to_json() for type_ in known.types],
        "features": [*features, {"id": "decided", "value": decided}],
    }


async def suggest_entities(prefix: str, repository: Repository) -> dict[str, Any]:
    text = cut(clean(prefix))
    entities = await repository.named_like(text, _SUGGESTIONS) if text else []
    return {
        "result": [
            {
                "id": known.id,
                "name": known.name,
                "description": known.description,
                "notable": [type_.to_json() for type_ in known.types],
            }
            for known in entities
        ]
    }


async def suggest_types(prefix: str, repository: Repository) -> dict[str, Any]:
    terms = await repository.types(cut(clean(prefix)), _SUGGESTIONS)
    return {"result": [term.to_json() for term in terms]}


async def suggest_properties(prefix: str, repository: Repository) -> dict[str, Any]:
    terms = await repository.properties(cut(clean(prefix)), _SUGGESTIONS)
    return {"result": [term.to_json() for term in terms]}


async def preview(entity_id: str, repository: Repository) -> str | None:
    """Returns a small page about an entity, for OpenRefine's frame; None if it is not known."""
    known = await repository.get(entity_id)
    if known is None:
        return None
    types = ", ".join(escape(type_.name) for type_ in known.types)
    return (
        '<!doctype html><html><head><meta charset="utf-8">'
        f"<title>{escape(known.name)}</title></head><body>"
        f"<strong>{escape(known.name)}</strong> <small>{escape(known.id)}</small>"
        f"<p>{escape(known.description)}</p><p><small>{types}</small></p></body></html>"
    )


async def flyout(entity_id: str, repository: Repository) -> dict[str, str] | None:
    known = await repository.get(entity_id)
    if known is None:
        return None
    html = f"<p><strong>{escape(known.name)}</strong></p><p>{escape(known.description)}</p>"
    return {"id": known.id, "html": html}


def cross_origin_headers() -> dict[str, str]:
    """Returns headers that let OpenRefine and other pages read what this service answers, without
    credentials."""
    return {
        "Access-Control-Allow-Origin": "*",
        "Access-Control-Allow-Methods": "GET, POST",
        "Cross-Origin-Resource-Policy": "cross-origin",
    }
