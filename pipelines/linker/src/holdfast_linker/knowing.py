"""Searches what a project knows, for the Reconciliation server: its candidates and what people
accepted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import orjson

from holdfast.model import Json
from holdfast.pipeline import Fetch, Row
from holdfast_linker.answering import KnownEntity, Term
from holdfast_linker.entities import Candidate, Kind, number_of
from holdfast_linker.names import fold
from holdfast_linker.projects import Project
from holdfast_linker.stored_forms import values_from

_LAST = "\U0010ffff"
_MOST_TYPES = 5
_SAMPLE = 500  # how many entities are examined to count their properties
#: Types and properties that can be chosen by name; all others are chosen by their ids.
TYPES = {
    "Q5": "human", "Q43229": "organization", "Q4830453": "business", "Q515": "city",
    "Q486972": "human settlement", "Q6256": "country", "Q571": "book", "Q11424": "film",
    "Q7725634": "literary work", "Q3305213": "painting", "Q16521": "taxon", "Q41176": "building",
}  # fmt: skip
PROPERTIES = {
    "P31": "instance of", "P569": "date of birth", "P570": "date of death", "P571": "inception",
    "P577": "publication date", "P106": "occupation", "P27": "country of citizenship",
    "P17": "country", "P625": "coordinate location", "P213": "ISNI", "P214": "VIAF ID",
    "P227": "GND ID", "P345": "IMDb ID", "P496": "ORCID iD",
}  # fmt: skip


def search_keys(candidate: Candidate, most_names: int) -> set[str]:
    """Returns the keys by which an entity is found: its names, as written and with sorted words,
    and its identifiers."""
    keys: set[str] = set()
    for name in candidate.names[:most_names]:
        folded = fold(name)
        keys |= {folded, _sorted(folded)}
    for property_id, values in candidate.values.items():
        keys |= {
            _value_key(property_id, value.text) for value in values if value.kind is Kind.IDENTIFIER
        }
    return keys - {""}


def _sorted(folded: str) -> str:
    return " ".join(sorted(folded.split()))


def _value_key(property_id: str, text: str) -> str:
    return f"{property_id}={text.strip().casefold()[:200]}"


class ProjectRepository:
    def __init__(self, fetch: Fetch, project: Project) -> None:
        self._fetch = fetch
        self._project = project

    async def named_like(self, text: str, limit: int) -> Sequence[KnownEntity]:
        folded = fold(text)
        if not folded:
            return []
        named = await self._found(folded, folded + _LAST, _sorted(folded), limit)
        return await self._with_decided(named, folded, limit)

    async def with_value(self, property_id: str, text: str, limit: int) -> Sequence[KnownEntity]:
        key = _value_key(property_id, text)
        return [_known(row) for row in await self._found(key, key, key, limit)]

    async def get(self, entity_id: str) -> KnownEntity | None:
        rows = await self._by_id([entity_id])
        return _known(rows[0]) if rows else None

    async def get_many(self, ids: Sequence[str]) -> Sequence[KnownEntity]:
        return [_known(row) for row in await self._by_id(ids)] if ids else []

    async def properties_of(self, type_id: str, limit: int) -> Sequence[Term]:
        rows = await self._fetch("linker_some_entities", self._params | {"limit": _SAMPLE})
        counts: Counter[str] = Counter()
        for row in rows:
            known = _known(row)
            if not type_id or type_id in known.broader:
                counts.update(known.values.keys())
        return [Term(pid, PROPERTIES.get(pid, pid)) for pid, _ in counts.most_common(limit)]

    async def types(self, prefix: str, limit: int) -> Sequence[Term]:
        return _terms(TYPES, prefix, limit)

    async def properties(self, prefix: str, limit: int) -> Sequence[Term]:
        return _terms(PROPERTIES, prefix, limit)

    async def _found(self, low: str, high: str, same: str, limit: int) -> list[Row]:
        params = self._params | {"low": low, "high": high, "same": same, "limit": limit}
        return await self._fetch("linker_entities_named", params)

    async def _by_id(self, ids: Iterable[str]) -> list[Row]:
        return await self._fetch("linker_entities_by_id", self._params | {"ids": list(ids)})

    async def _with_decided(
        self, named: Sequence[Row], folded: str, limit: int
    ) -> list[KnownEntity]:
        """Returns matches; what entries of this name were linked to comes first."""
        params = {"project_id": self._project.id, "folded": folded, "limit": limit}
        decided = await self._fetch("linker_decided", params)
        by_item: dict[str, list[str]] = {}
        for row in decided:
            by_item.setdefault(row["item"], []).append(row["name"])
        rows = {row["id"]: row for row in [*named, *await self._by_id(by_item)]}
        known = {
            entity_id: _known(row, by_item.get(entity_id, ())) for entity_id, row in rows.items()
        }
        for row in decided:  # added by hand, and never looked up
            known.setdefault(
                row["item"],
                KnownEntity(
                    row["item"],
                    row["label"],
                    description=row["description"],
                    decided=tuple(by_item[row["item"]]),
                ),
            )
        return sorted(known.values(), key=lambda each: (not each.decided, number_of(each.id)))

    @property
    def _params(self) -> Json:
        return {"space": self._project.rules.provider, "project_id": self._project.id}


def _known(row: Row, decided: Sequence[str] = ()) -> KnownEntity:
    data = orjson.loads(row["data"])
    own = [type_id for type_id in data["types"] if type_id in TYPES] or data["types"][:_MOST_TYPES]
    return KnownEntity(
        id=row["id"],
        name=row["label"],
        names=tuple(data["names"]),
        description=row["description"],
        types=tuple(Term(type_id, TYPES.get(type_id, type_id)) for type_id in own),
        broader=frozenset(data["types"]),
        values=values_from(data["values"]),
        decided=tuple(decided),
    )


def _terms(known: dict[str, str], prefix: str, limit: int) -> list[Term]:
    wanted = prefix.casefold()
    return [
        Term(term_id, name)
        for term_id, name in known.items()
        if name.casefold().startswith(wanted) or term_id.casefold() == wanted
    ][:limit]
