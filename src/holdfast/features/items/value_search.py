"""Searches items by what a column contains.

No index covers that, so a page looks through a bounded number of rows and says where to continue;
it never looks through them all."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from holdfast.errors import UserError
from holdfast.features.items.grid import Sift, result_of
from holdfast.features.items.items import ItemFilter, ItemView, Position, Sizes
from holdfast.model import ItemStatus, Job
from holdfast.pipeline import Pipeline
from holdfast.rulings import RulingKind

if TYPE_CHECKING:
    from holdfast.features.console import Console

_ROWS = 500  # how many are read together
MOST_ROWS = 10_000
_MOST_CHARACTERS = 16_000_000
_MOST_VALUES = 10
_QUOTED = re.compile(r'"([^"]+)":(.*)', re.DOTALL)
_SIZES = Sizes(100_000, 100_000)


@dataclass(frozen=True, slots=True)
class Value:
    """The whole value that a column has to contain, ignoring case; `*` matches anything."""

    column: str
    pattern: str

    def fits(self, text: str) -> bool:
        first, *others = self.pattern.casefold().split("*")
        text = text.casefold()
        if not others:
            return text == first
        *middle, last = others
        end = len(text) - len(last)
        if not text.startswith(first) or not text.endswith(last) or end < len(first):
            return False
        place = len(first)
        for piece in middle:
            place = text.find(piece, place, end)
            if place < 0:
                return False
            place += len(piece)
        return True


class Searched(NamedTuple):
    items: list[ItemView]
    next: Position | None
    looked: int  # how many rows were examined


def searchable_columns(job: Job, pipeline: Pipeline | None) -> list[str]:
    """Returns what the pipeline declares: its results' columns and its rows' fields."""
    inputs = pipeline.inputs if pipeline else ()
    return list(dict.fromkeys([*job.columns, *inputs]))


def value_named(name: str, pattern: str, job: Job, columns: Sequence[str]) -> Value:
    """Returns the value to search for.

    A job without declared columns has whatever its results have."""
    if name in columns or not job.columns:
        return Value(name, pattern)
    alike = [column for column in columns if column.casefold() == name.casefold()]
    if not alike:
        raise UserError(
            f"the pipeline {job.pipeline} has no column {name!r}", f"Columns: {', '.join(columns)}."
        )
    return Value(alike[0], pattern)


def column_and_pattern(text: str) -> tuple[str, str] | None:
    """Splits `brand:acme` into column and pattern; a name can be in quotes: `"a: b":acme`."""
    quoted = _QUOTED.fullmatch(text)
    if quoted:
        return quoted[1], quoted[2]
    name, colon, pattern = text.partition(":")
    return (name, pattern) if name and colon else None


def values_of(texts: Sequence[str], job: Job, pipeline: Pipeline | None) -> tuple[Value, ...]:
    if len(texts) > _MOST_VALUES:
        raise UserError(f"more than {_MOST_VALUES} values were requested", "Request fewer.")
    columns = searchable_columns(job, pipeline)
    values = []
    for text in texts:
        pair = column_and_pattern(text)
        if pair is None:
            raise UserError(f"{text!r} names no column and value", "E.g. brand:acme.")
        values.append(value_named(*pair, job, columns))
    return tuple(values)


async def search(
    console: Console,
    job: Job,
    filter: ItemFilter,
    values: Sequence[Value],
    position: Position | None,
    limit: int,
) -> Searched:
    """Returns the next items that match the filter and whose columns contain these values."""
    matches: list[ItemView] = []
    looked = characters = 0
    for _ in range(MOST_ROWS // _ROWS):
        page = await console.items.page(job, filter, position, _ROWS, _SIZES)
        fitting = await _fitting(console, job, page.items, values)
        if len(matches) + len(fitting) >= limit:
            # Read again up to the last match that fits: the next page begins right after it.
            last = fitting[limit - len(matches) - 1]
            page = await console.items.page(job, filter, position, last + 1, _SIZES)
            fitting = await _fitting(console, job, page.items, values)
        matches += [page.items[index] for index in fitting]
        looked += len(page.items)
        characters += sum(len(item.input) + len(item.result or "") for item in page.items)
        position = page.next
        if position is None or len(matches) >= limit or characters > _MOST_CHARACTERS:
            break
    return Searched(matches, position, looked)


def sifted_by(console: Console, job: Job, values: Sequence[Value]) -> Sift:
    """Returns a filter for exports, which read all items anyway."""

    async def sift(items: Sequence[ItemView]) -> list[ItemView]:
        return [items[place] for place in await _fitting(console, job, items, values)]

    return sift


async def _fitting(
    console: Console, job: Job, items: Sequence[ItemView], values: Sequence[Value]
) -> list[int]:
    """Returns the positions of matching items.

    The result decides; if there is none, as after an error, the normalized row, and before there is
    one, the input."""
    results = [result_of(item) for item in items]
    lacking = [
        item.seq
        for item, result in zip(items, results, strict=True)
        if any(value.column not in result for value in values)
    ]
    normalized = await console.items.normalized(job.id, lacking) if lacking else {}
    fitting = []
    for place, (item, result) in enumerate(zip(items, results, strict=True)):
        rows: list[Mapping[str, Any]] = [result]
        if any(value.column not in result for value in values):
            rows += [_record(normalized.get(item.seq)), _record(item.input)]
        if all(value.fits(_text(rows, value.column)) for value in values):
            fitting.append(place)
    return fitting


def _record(text: str | None) -> Mapping[str, Any]:
    """Returns the row's values.

    Only the first part of an oversized row is loaded, so it never matches."""
    try:
        record = orjson.loads(text or "{}")
    except orjson.JSONDecodeError:
        return {}
    return record if isinstance(record, dict) else {}


def _text(rows: Sequence[Mapping[str, Any]], column: str) -> str:
    for row in rows:
        if column in row:
            value = row[column]
            if isinstance(value, str):
                return value
            return "" if value is None else orjson.dumps(value).decode()
    return ""


def filter_of(target: Mapping[str, Any]) -> ItemFilter:
    return ItemFilter(
        statuses=tuple(ItemStatus(status) for status in target.get("statuses", ())),
        code=target.get("code"),
        since=_instant(target.get("since")),
        until=_instant(target.get("until")),
        rulings=tuple(RulingKind(kind) for kind in target.get("rulings", ())),
    )


def values_in(target: Mapping[str, Any]) -> tuple[Value, ...]:
    return tuple(Value(column, pattern) for column, pattern in target.get("values", ()))


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
