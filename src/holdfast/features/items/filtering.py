"""Parses the filter line of the grid: `status:ERROR code:TIMEOUT brand:acme`.

Words other than the filter's own name a column of the pipeline. A value with spaces is quoted:
`brand:"acme inc"`. So is the name of a column that has spaces or that is also a word of the filter:
`"status":sold`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from holdfast.errors import UserError
from holdfast.features.items.item_filters import in_utc, rulings_of, statuses_of
from holdfast.features.items.items import ItemFilter
from holdfast.features.items.value_search import Value, column_and_pattern
from holdfast.model import ItemStatus

_EXAMPLE = "status:ERROR code:TIMEOUT since:2026-11-15 until:2026-11-15T09:30 row:500"
_OWN_WORDS = frozenset({"status", "code", "since", "until", "row", "ruling"})
_CODE = re.compile(r"[A-Za-z0-9_.-]{1,60}\Z")
_WORD = re.compile(r'(?:[^\s"]|"[^"]*(?:"|$))+')

#: Makes the value to search for from the name of a column and a pattern.
Columns = Callable[[str, str], Value]


@dataclass(frozen=True, slots=True)
class GridFilter:
    """What `text` means; `row` is the first row to show."""

    text: str
    items: ItemFilter
    row: int | None = None
    values: tuple[Value, ...] = ()

    @property
    def is_empty(self) -> bool:
        return self.items.is_empty and not self.values

    @property
    def statuses(self) -> str:
        return ",".join(self.items.statuses)

    @property
    def value_words(self) -> list[str]:
        """The searched values as the API accepts them."""
        return [f"{column_word(value.column)}:{value.pattern}" for value in self.values]

    def with_status(self, status: str) -> str:
        """Returns the line with this status instead of its own; without a status if empty."""
        others = [word for word in _words(self.text) if not word.lower().startswith("status:")]
        return " ".join([*([f"status:{status}"] if status else []), *others])


NO_FILTER = GridFilter("", ItemFilter())


def parse_filter(text: str, columns: Columns | None = None) -> GridFilter:
    """Parses the line; without `columns`, words cannot name columns."""
    filter, row, values = ItemFilter(), None, []
    for word in _words(text):
        column = _column(word)
        if column is not None and columns is not None:
            values.append(_value(columns, *column))
            continue
        name, colon, value = word.partition(":")
        if not colon and name.upper() in set(ItemStatus):
            name, value = "status", name
        if name.lower() == "row":
            row = _row(value)
        else:
            filter = _own_word(filter, name.lower(), value, word, columns)
    if row is not None and not (filter.is_empty and not values):
        raise UserError(
            "row: cannot be combined with other words", "Rows are numbered without a filter."
        )
    return GridFilter(" ".join(_words(text)), filter, row, tuple(values))


def _words(text: str) -> list[str]:
    return _WORD.findall(text)


def column_word(name: str) -> str:
    """Returns the name of a column as written in the filter."""
    plain = name.lower() not in _OWN_WORDS and not re.search(r'[\s":]', name)
    return name if plain else f'"{name}"'


def _column(word: str) -> tuple[str, str] | None:
    """Returns the column that a word names, and the pattern of its value."""
    pair = column_and_pattern(word)
    if pair is None or (not word.startswith('"') and pair[0].lower() in _OWN_WORDS):
        return None
    return pair[0], pair[1].replace('"', "")


def _value(columns: Columns, name: str, value: str) -> Value:
    try:
        return columns(name, value)
    except UserError as error:
        hint = f"{error.hint or ''} The filter also knows: {_EXAMPLE}"
        raise UserError(error.message, hint.strip()) from None


def _own_word(
    filter: ItemFilter, name: str, value: str, word: str, columns: Columns | None
) -> ItemFilter:
    try:
        return _narrowed(filter, name, value, word)
    except UserError as error:
        if columns is None or name not in _OWN_WORDS:
            raise
        with suppress(UserError):
            column = column_word(columns(name, value).column)
            hint = f"{error.hint or ''} If you mean the column: {column}:{value}"
            error = UserError(error.message, hint.strip())
        raise error from None


def _narrowed(filter: ItemFilter, name: str, value: str, word: str) -> ItemFilter:
    if name == "status" and value:
        return replace(filter, statuses=(*filter.statuses, *statuses_of(value)))
    if name == "code" and _CODE.match(value):
        return replace(filter, code=value.upper())
    if name == "since":
        return replace(filter, since=parse_instant(value))
    if name == "until":
        return replace(filter, until=parse_instant(value))
    if name == "ruling" and value:
        return replace(filter, rulings=(*filter.rulings, *rulings_of(value)))
    raise UserError(f"{word!r} is not a valid filter", f"For example: {_EXAMPLE}")


def parse_instant(value: str) -> datetime:
    try:
        instant = datetime.fromisoformat(value)
    except ValueError:
        raise UserError(
            f"{value!r} is not a time", "For example: 2026-11-15 or 2026-11-15T09:30."
        ) from None
    return in_utc(instant) or instant


def _row(value: str) -> int:
    if not (value.isascii() and value.isdecimal() and len(value) < 17 and 0 < int(value) < 2**53):
        raise UserError(f"{value[:50]!r} is not a row number", "For example: row:500.")
    return int(value)
