"""Data extension of the Reconciliation protocol, version 0.2: values of entities that were linked.

OpenRefine requests it with "Add columns from reconciled values".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from holdfast_linker.answering import BadQueries, KnownEntity, Repository
from holdfast_linker.dates import PartialDate, Precision
from holdfast_linker.entities import Kind, Value

_MOST_PROPERTIES = 100
_MOST_VALUES = 100
_LATEST_YEAR = 9999


@dataclass(frozen=True, slots=True)
class Extension:
    """A request: the values of these properties, of these entities."""

    ids: tuple[str, ...]
    properties: tuple[str, ...]


def read_extension(text: str, most_ids: int) -> Extension:
    """Returns the request, checked; raises BadQueries with what is wrong."""
    try:
        given = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise BadQueries(f"`extend` is not JSON: {error}") from None
    if not isinstance(given, dict):
        raise BadQueries("`extend` must be an object with `ids` and `properties`")
    ids, properties = given.get("ids"), given.get("properties")
    if not isinstance(ids, list) or not all(isinstance(each, str) for each in ids):
        raise BadQueries("`ids` must be a list of ids")
    if any("\0" in each for each in ids):
        raise BadQueries("an id contains a NUL character")
    if not isinstance(properties, list) or not all(map(_is_property, properties)):
        raise BadQueries("`properties` must be a list of objects with an `id`")
    if len(ids) > most_ids or len(properties) > _MOST_PROPERTIES:
        raise BadQueries(
            f"the request has {len(ids):,} ids and {len(properties):,} properties, where "
            f"{most_ids:,} and {_MOST_PROPERTIES} are allowed",
            "Send smaller requests.",
            status=413,
        )
    return Extension(tuple(dict.fromkeys(ids)), tuple(each["id"] for each in properties))


def _is_property(given: Any) -> bool:
    return isinstance(given, dict) and isinstance(given.get("id"), str)


async def extend(
    request: Extension, repository: Repository, names: Mapping[str, str]
) -> dict[str, Any]:
    """Returns a row for every entity, an empty one if it is not known.

    `names` are those of properties."""
    known = {entity.id: entity for entity in await repository.get_many(request.ids)}
    labels = await _labels(known.values(), request.properties, repository)
    return {
        "meta": [{"id": pid, "name": names.get(pid, pid)} for pid in request.properties],
        "rows": {
            entity_id: {
                pid: _cells(known.get(entity_id), pid, labels) for pid in request.properties
            }
            for entity_id in request.ids
        },
    }


async def _labels(
    entities: Any, properties: Sequence[str], repository: Repository
) -> dict[str, str]:
    """Returns the labels of items that are values, as far as they are known."""
    items = {
        value.text
        for entity in entities
        for pid in properties
        for value in entity.values.get(pid, ())
        if value.kind is Kind.ITEM and not value.names
    }
    return {known.id: known.name for known in await repository.get_many(sorted(items))}


def _cells(
    entity: KnownEntity | None, property_id: str, labels: Mapping[str, str]
) -> list[dict[str, Any]]:
    values = entity.values.get(property_id, ()) if entity is not None else ()
    cells = [_cell(value, labels) for value in values[:_MOST_VALUES]]
    return [cell for cell in cells if cell is not None]


def _cell(value: Value, labels: Mapping[str, str]) -> dict[str, Any] | None:
    match value.kind:
        case Kind.NONE:
            return None
        case Kind.UNKNOWN:
            return {}
        case Kind.ITEM:
            name = value.names[0] if value.names else labels.get(value.text, value.text)
            return {"id": value.text, "name": name}
        case Kind.DATE if value.date is not None:
            return _date_cell(value.date)
        case Kind.QUANTITY:
            return _number_cell(value.text)
        case Kind.PLACE if value.point is not None:
            return {"str": f"{value.point[0]},{value.point[1]}"}
    return {"str": value.text}


def _date_cell(date: PartialDate) -> dict[str, Any]:
    """Returns a date as the protocol has it, if it is a day.

    A year stays a text: it is not the first of January."""
    is_day = date.precision is Precision.DAY and 0 < date.year <= _LATEST_YEAR and not date.julian
    return {"date": f"{date}T00:00:00Z"} if is_day else {"str": str(date)}


def _number_cell(text: str) -> dict[str, Any]:
    try:
        number = float(text)
    except ValueError:
        return {"str": text}
    if not math.isfinite(number):
        return {"str": text}
    return {"int": int(number)} if number.is_integer() else {"float": number}


async def propose_properties(type_id: str, limit: int, repository: Repository) -> dict[str, Any]:
    """Returns properties that entities of the project have, for a type or in general."""
    terms = await repository.properties_of(type_id, limit)
    found = [term.to_json() for term in terms]
    return {"type": type_id, "limit": limit, "properties": found}
