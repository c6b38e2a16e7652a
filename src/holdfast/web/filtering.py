"""The one line in which people say which items they mean: `status:ERROR code:TIMEOUT brand:acme`.

Words that are not the filter's own name a column of the pipeline. A value with spaces stands in
quotes: `brand:"acme inc"`. So does the name of a column that has spaces, or that is called as a
word of the filter is: `"status":sold`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from holdfast.api.items import in_utc, rulings_of, statuses_of
from holdfast.console.items import ItemFilter
from holdfast.console.value_search import Value, column_and_pattern
from holdfast.errors import UserError
from holdfast.model import ItemStatus

_WORDS = "status:ERROR code:TIMEOUT since:2026-11-15 until:2026-11-15T09:30 row:500"
_OWN_WORDS = frozenset({"status", "code", "since", "until", "row", "ruling"})
_CODE = re.compile(r"[A-Za-z0-9_.-]{1,60}\Z")
_WORD = re.compile(r'(?:[^\s"]|"[^"]*(?:"|$))+')

#: What a word of the filter that names a column means.
Columns = Callable[[str, str], Value]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which items, as said in `text`; `row` is the first to be shown."""

    text: str
    items: ItemFilter
    row: int | None = None
    values: tuple[Value, ...] = ()

    @property
    def statuses(self) -> str:
        return ",".join(self.items.statuses)

    @property
    def value_words(self) -> list[str]:
        """As the API takes them."""
        return [f"{column_word(each.column)}:{each.pattern}" for each in self.values]

    def with_status(self, status: str) -> str:
        """The line with this status instead of another; without one, any."""
        kept = [word for word in _words(self.text) if not word.lower().startswith("status:")]
        return " ".join([*([f"status:{status}"] if status else []), *kept])


NOTHING_SAID = Wanted("", ItemFilter())


def wanted(text: str, columns: Columns | None = None) -> Wanted:
    """`columns` says which column of the pipeline a word names, where they can be asked for."""
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
        raise UserError("row: stands alone", "Rows are numbered in the list without a filter.")
    return Wanted(" ".join(_words(text)), filter, row, tuple(values))


def _words(text: str) -> list[str]:
    return _WORD.findall(text)


def column_word(name: str) -> str:
    """How a column is called in the filter."""
    plain = name.lower() not in _OWN_WORDS and not re.search(r'[\s":]', name)
    return name if plain else f'"{name}"'


def _column(word: str) -> tuple[str, str] | None:
    """The column that a word names, and what it is to hold."""
    found = column_and_pattern(word)
    if found is None or (not word.startswith('"') and found[0].lower() in _OWN_WORDS):
        return None
    return found[0], found[1].replace('"', "")


def _value(columns: Columns, name: str, value: str) -> Value:
    try:
        return columns(name, value)
    except UserError as error:
        hint = f"{error.hint or ''} Words of the filter: {_WORDS}"
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
            hint = f"{error.hint or ''} If the column is meant: {column}:{value}"
            error = UserError(error.message, hint.strip())
        raise error from None


def _narrowed(filter: ItemFilter, name: str, value: str, word: str) -> ItemFilter:
    if name == "status" and value:
        return replace(filter, statuses=(*filter.statuses, *statuses_of(value)))
    if name == "code" and _CODE.match(value):
        return replace(filter, code=value.upper())
    if name == "since":
        return replace(filter, since=_instant(value))
    if name == "until":
        return replace(filter, until=_instant(value))
    if name == "ruling" and value:
        return replace(filter, rulings=(*filter.rulings, *rulings_of(value)))
    raise UserError(f"{word!r} is not understood", f"Words of the filter: {_WORDS}")


def _instant(value: str) -> datetime:
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        raise UserError(f"{value!r} is no time", "E.g. 2026-11-15 or 2026-11-15T09:30.") from None
    return in_utc(found) or found


def _row(value: str) -> int:
    if not (value.isascii() and value.isdecimal() and 0 < int(value) < 2**53):
        raise UserError(f"{value!r} is no row", "E.g. row:500.")
    return int(value)
