"""Writes reviewed links as QuickStatements: what the dataset says, to be added to the linked items.

It is the tab-separated form, version 1. A value that is already on the item is not added twice by
QuickStatements; a value that was read by guessing is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from holdfast_linker.dates import PartialDate, Precision
from holdfast_linker.entries import Entry, GivenValue, item_of
from holdfast_linker.names import clean

_LANGUAGE = re.compile(r"[a-z]{2,3}(-[a-z0-9]+)*")
_POINT = re.compile(r"\s*(-?\d{1,3}(?:\.\d+)?)(?:\s*[,;/]\s*|\s+)(-?\d{1,3}(?:\.\d+)?)\s*")


@dataclass(frozen=True, slots=True)
class Link:
    """An entry with the item that it was linked to; None: people said that it is a new one."""

    entry: Entry
    item_id: str | None


@dataclass(frozen=True, slots=True)
class Style:
    language: str = "en"  # of labels and aliases of new items
    datatypes: Mapping[str, str] | None = None  # of properties, as Wikidata names them
    stated_in: str | None = None  # an item: the source of every statement
    reference_url: str | None = None

    def __post_init__(self) -> None:
        if not _LANGUAGE.fullmatch(self.language):
            raise ValueError(f"{self.language!r} is not a language code")
        if self.stated_in is not None and item_of(self.stated_in) is None:
            raise ValueError(f"{self.stated_in!r} is not an item id")


def statements(links: Iterable[Link], style: Style) -> Iterator[str]:
    """Yields the lines of the export, without line ends."""
    for link in links:
        if link.item_id is None:
            yield from _creation(link.entry, style)
            subject = "LAST"
        elif item_of(link.item_id) is None:
            continue  # it belongs to another service
        else:
            subject = link.item_id
        for given in (*link.entry.identifiers, *link.entry.dates, *link.entry.properties):
            value = _value(given, style)
            if value is not None:
                yield "\t".join([subject, given.property_id, value, *_reference(style)])


def _creation(entry: Entry, style: Style) -> Iterator[str]:
    yield "CREATE"
    if entry.name:
        yield f"LAST\tL{style.language}\t{_quoted(entry.name)}"
    for alias in entry.aliases:
        yield f"LAST\tA{style.language}\t{_quoted(alias)}"
    if entry.type:
        yield "\t".join(["LAST", "P31", entry.type, *_reference(style)])


def _reference(style: Style) -> list[str]:
    source = ["S248", item_of(style.stated_in) or ""] if style.stated_in else []
    address = ["S854", _quoted(style.reference_url)] if style.reference_url else []
    return source + address


def _value(given: GivenValue, style: Style) -> str | None:
    if given.doubtful:
        return None
    if given.date is not None:
        return _time(given.date)
    datatype = (style.datatypes or {}).get(given.property_id)
    if datatype == "wikibase-item":
        return item_of(given.text)  # a text is not an item
    if datatype == "time":
        return None  # a column that was not mapped as a date was not read as one
    if datatype == "quantity":
        return _quantity(given.text)
    if datatype == "globe-coordinate":
        match = _POINT.fullmatch(given.text)
        return f"@{match[1]}/{match[2]}" if match else None
    if datatype == "monolingualtext":
        return f"{style.language}:{_quoted(given.text)}"
    if datatype is None and item_of(given.text):
        return item_of(given.text)
    return _quoted(given.text)


#: A quantity with more digits before or after its point is none; written out, 1e999999999 is a
#: gigabyte.
_MOST_DIGITS = 50


def _quantity(text: str) -> str | None:
    try:
        number = Decimal(text.replace(" ", ""))
    except InvalidOperation:
        return None
    if not number.is_finite() or abs(number.adjusted()) > _MOST_DIGITS:
        return None
    return format(number, "f")


def _time(date: PartialDate) -> str | None:
    if date.circa:
        return None  # "about" needs a qualifier that people should choose
    sign = "-" if date.year < 0 else "+"
    month = date.month if date.precision >= Precision.MONTH else 0
    day = date.day if date.precision is Precision.DAY else 0
    text = f"{sign}{abs(date.year):04}-{month:02}-{day:02}T00:00:00Z/{int(date.precision)}"
    return f"{text}/J" if date.julian else text


def _quoted(text: str) -> str:
    """Quotes a text.

    QuickStatements reads everything between the outer quotes; tabs and line ends would end the
    value."""
    return f'"{clean(text)}"'
