"""Compares one value that a row gives with one value of a candidate. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from urllib.parse import unquote, urlsplit

from holdfast_linker.dates import (
    BadDate,
    PartialDate,
    Precision,
    compare_dates,
    parse_date,
    to_gregorian,
)
from holdfast_linker.entities import Kind, Value
from holdfast_linker.entries import GivenValue, item_of
from holdfast_linker.names import likeness

_SEPARATORS = re.compile(r"[\s\-–]+")
_POINT = re.compile(
    r"(?:point\()?\s*(-?\d{1,3}(?:\.\d+)?)(?:\s*[,;/]\s*|\s+)(-?\d{1,3}(?:\.\d+)?)\s*\)?"
)
_EARTH_KILOMETRES = 6371.0
_SAME_PLACE_KILOMETRES = 1.0

#: How much an agreement tells: roughly how often the number of those who would agree by chance is
#: halved. An occupation or a country is shared by many; a day of birth by few; an identifier by
#: none.
STRENGTH_OF_DATE = {
    Precision.CENTURY: 0.0,
    Precision.DECADE: 1.0,
    Precision.YEAR: 3.0,
    Precision.MONTH: 4.0,
    Precision.DAY: 5.0,
}
STRENGTH_OF_KIND = {
    Kind.ITEM: 1.0,
    Kind.TEXT: 2.0,
    Kind.QUANTITY: 2.0,
    Kind.PLACE: 4.0,
    Kind.URL: 5.0,
    Kind.IDENTIFIER: 10.0,
}


@dataclass(frozen=True, slots=True)
class Comparison:
    score: float  # 0 to 100
    shown: str  # the candidate's value
    note: str
    strength: float  # what an agreement tells


def compare(given: GivenValue, values: Sequence[Value]) -> Comparison | None:
    """Returns the best agreement with any of the values; None if nothing can be compared."""
    results = [result for value in values if (result := _compare_one(given, value)) is not None]
    return max(results, key=lambda result: (result.score, result.strength), default=None)


def same_identifier(given: GivenValue, values: Sequence[Value]) -> Value | None:
    """Returns the value that is this identifier, written with or without separators or as an
    address."""
    wanted = {_identifier(given.text), _identifier(bare_identifier(given.text))}
    for value in values:
        if value.kind in (Kind.IDENTIFIER, Kind.TEXT) and _identifier(value.text) in wanted:
            return value
    return None


def bare_identifier(text: str) -> str:
    """Returns the last part of an address: identifiers are often given as links."""
    if not text.startswith(("http://", "https://")):
        return text
    return unquote(urlsplit(text).path.rstrip("/").rpartition("/")[2]) or text


def _compare_one(given: GivenValue, value: Value) -> Comparison | None:
    if value.kind is Kind.UNKNOWN:
        return None
    if value.kind is Kind.NONE:
        return Comparison(0.0, "none", "the candidate has none", 0.0)
    if value.kind is Kind.DATE:
        return _compare_date(given, value)
    if value.kind is Kind.ITEM:
        return _compare_item(given, value)
    if value.kind is Kind.PLACE:
        return _compare_place(given, value)
    score = _SCORES[value.kind](given.text, value.text)
    return Comparison(score, value.text, _note(score), STRENGTH_OF_KIND[value.kind])


def _note(score: float) -> str:
    if score >= 100:
        return "equal"
    return f"{score:.0f} % alike" if score else "different"


def _compare_date(given: GivenValue, value: Value) -> Comparison | None:
    date = given.date or _date_or_none(given.text)
    if date is None or value.date is None:
        return None
    choices = [value.date, to_gregorian(value.date)]
    agreement = max((compare_dates(date, right) for right in choices), key=lambda a: a.score)
    strength = STRENGTH_OF_DATE[agreement.shared]
    return Comparison(agreement.score, value.text, agreement.note, strength)


def _date_or_none(text: str) -> PartialDate | None:
    try:
        return parse_date(text)
    except BadDate as error:
        return error.rest


def _compare_item(given: GivenValue, value: Value) -> Comparison | None:
    item = item_of(given.text)
    shown = f"{value.names[0]} ({value.text})" if value.names else value.text
    if item is not None:
        score = 100.0 if item == value.text else 0.0
    elif value.names:
        score = max(likeness(given.text, name) for name in value.names)
        score = score if score >= 80 else 0.0  # "painter" is not partly "printer"
    else:
        return None  # the item's name is not known, so a text says nothing about it
    return Comparison(score, shown, _note(score), STRENGTH_OF_KIND[Kind.ITEM])


def _compare_place(given: GivenValue, value: Value) -> Comparison | None:
    match = _POINT.fullmatch(given.text.casefold())
    if match is None or value.point is None:
        return None
    distance = _kilometres((float(match[1]), float(match[2])), value.point)
    score = max(0.0, 100.0 * (1 - distance / _SAME_PLACE_KILOMETRES))
    note = f"{distance:.1f} km apart"
    return Comparison(score, value.text, note, STRENGTH_OF_KIND[Kind.PLACE])


def _kilometres(left: tuple[float, float], right: tuple[float, float]) -> float:
    (latitude, longitude), (latitude2, longitude2) = left, right
    phi, phi2 = math.radians(latitude), math.radians(latitude2)
    half = math.sin((phi2 - phi) / 2) ** 2
    half += math.cos(phi) * math.cos(phi2) * math.sin(math.radians(longitude2 - longitude) / 2) ** 2
    return 2 * _EARTH_KILOMETRES * math.asin(min(1.0, math.sqrt(half)))


def _compare_identifier(left: str, right: str) -> float:
    return 100.0 if _identifier(left) == _identifier(right) else 0.0


def _identifier(text: str) -> str:
    return _SEPARATORS.sub("", text).casefold()


def _compare_url(left: str, right: str) -> float:
    return 100.0 if _address(left) == _address(right) else 0.0


def _address(text: str) -> str:
    """Returns the address without scheme, `www.`, fragment and final slash."""
    rest = text.strip().partition("#")[0]
    rest = rest.partition("://")[2] or rest
    host, slash, path = rest.partition("/")
    return (host.casefold().removeprefix("www.") + slash + path).rstrip("/")


def _compare_quantity(left: str, right: str) -> float:
    try:
        return 100.0 if Decimal(left.replace(" ", "")) == Decimal(right) else 0.0
    except InvalidOperation:
        return 0.0


_SCORES = {
    Kind.TEXT: likeness,
    Kind.IDENTIFIER: _compare_identifier,
    Kind.URL: _compare_url,
    Kind.QUANTITY: _compare_quantity,
}
