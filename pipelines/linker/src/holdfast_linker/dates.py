"""Dates that are known to the day, the year or only the century, and how well two of them agree."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import date, timedelta
from enum import IntEnum


class Precision(IntEnum):
    """How exactly a date is known, in Wikidata's numbers."""

    CENTURY = 7
    DECADE = 8
    YEAR = 9
    MONTH = 10
    DAY = 11


@dataclass(frozen=True, slots=True)
class PartialDate:
    """A date of which a part is known. Years before our era are negative; there is no year 0."""

    year: int
    month: int = 0
    day: int = 0
    precision: Precision = Precision.YEAR
    julian: bool = False
    circa: bool = False

    def __str__(self) -> str:
        sign = "-" if self.year < 0 else ""
        year = f"{sign}{abs(self.year):04}"
        if self.precision is Precision.DAY:
            return f"{year}-{self.month:02}-{self.day:02}"
        if self.precision is Precision.MONTH:
            return f"{year}-{self.month:02}"
        if self.precision is Precision.DECADE:
            return f"{year[:-1]}0s"
        if self.precision is Precision.CENTURY:
            return f"century of {year}"
        return f"c. {year}" if self.circa else year


class BadDate(ValueError):
    """Raised for a text that is not a date. `rest` is what of it can still be used."""

    def __init__(self, code: str, detail: str, rest: PartialDate | None = None) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.rest = rest


_LONGEST = 100  # in characters; the expressions below would take long for a megabyte of blanks
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_CIRCA = re.compile(r"^(?:c\.|ca\.?|circa|about|around|approx\.?|~)\s*|\s*\?$", re.IGNORECASE)
_ERA = re.compile(r"\s*\b(bce?|b\.c\.(?:e\.)?|ce|ad|a\.d\.)$", re.IGNORECASE)
_ISO = re.compile(
    r"(?P<year>[+-]?\d{4,6})(?:-(?P<month>\d{1,2})(?:-(?P<day>\d{1,2})(?:[t ]\d\d:?\d\d.*)?)?)?"
)
_SHORT_YEAR = re.compile(r"(?P<year>-?\d{1,4})")
_COMPACT = re.compile(r"(?P<year>[12]\d{3})(?P<month>\d\d)(?P<day>\d\d)")
_YEAR_FIRST = re.compile(r"(?P<year>\d{4})[./](?P<month>\d{1,2})[./](?P<day>\d{1,2})")
_DOTTED = re.compile(r"(?P<day>\d{1,2})\.\s?(?P<month>\d{1,2})\.\s?(?P<year>\d{4})")
_SLASHED = re.compile(r"(?P<left>\d{1,2})[/-](?P<right>\d{1,2})[/-](?P<year>\d{4})")
_DAY_NAMED = re.compile(
    r"(?P<day>\d{1,2})(?:st|nd|rd|th|\.)?\s+(?:of\s+)?(?P<name>[a-z]{3,9})\.?,?\s+(?P<year>\d{1,4})"
)
_NAMED_DAY = re.compile(
    r"(?P<name>[a-z]{3,9})\.?\s+(?P<day>\d{1,2})(?:st|nd|rd|th)?,?\s+(?P<year>\d{3,4})"
)
_NAMED = re.compile(r"(?P<name>[a-z]{3,9})\.?,?\s+(?P<year>\d{3,4})")
_DECADE = re.compile(r"(?P<year>\d{3}0)'?s")
_CENTURY = re.compile(r"(?P<number>\d{1,2})(?:st|nd|rd|th)\s+c(?:ent(?:ury|\.)|\.)")
_LAST_JULIAN_YEAR = 1923  # Greece was the last to change


def parse_date(text: str) -> PartialDate:
    """Parses a date in the forms that tables have; raises BadDate if there is none.

    If day and month cannot be told apart, or the day does not exist, the year is what can be
    used."""
    rest = text.strip().lower()
    if len(rest) > _LONGEST:
        raise BadDate("DATE_UNREADABLE", f"{text[:50]!r} is not a date")
    circa = _CIRCA.search(rest) is not None
    rest = _CIRCA.sub("", rest)
    era = _ERA.search(rest)
    rest = _ERA.sub("", rest).strip()
    result = _parse_plain(rest, text)
    if era and era[1].startswith("b"):
        result = replace(result, year=-abs(result.year))
    return replace(result, circa=circa) if circa else result


def _parse_plain(text: str, shown: str) -> PartialDate:
    for form in (_COMPACT, _ISO, _YEAR_FIRST, _DOTTED, _SHORT_YEAR):
        match = form.fullmatch(text)
        if match:
            parts = {name: int(part or 0) for name, part in match.groupdict().items()}
            return _checked(shown, **parts)
    for form in (_DAY_NAMED, _NAMED_DAY, _NAMED):
        match = form.fullmatch(text)
        if match and match["name"][:3] in _MONTHS:
            month = _MONTHS.index(match["name"][:3]) + 1
            day = int(match.groupdict().get("day") or 0)
            return _checked(shown, int(match["year"]), month, day)
    return _parse_unclear(text, shown)


def _parse_unclear(text: str, shown: str) -> PartialDate:
    match = _SLASHED.fullmatch(text)
    if match:
        return _by_order(shown, int(match["year"]), int(match["left"]), int(match["right"]))
    match = _DECADE.fullmatch(text)
    if match:
        return PartialDate(int(match["year"]), precision=Precision.DECADE)
    match = _CENTURY.fullmatch(text)
    if match and int(match["number"]):
        return PartialDate(int(match["number"]) * 100, precision=Precision.CENTURY)
    raise BadDate("DATE_UNREADABLE", f"{shown[:50]!r} is not a date")


def _by_order(shown: str, year: int, left: int, right: int) -> PartialDate:
    if left > 12 or left == right:
        return _checked(shown, year, right, left)
    if right > 12:
        return _checked(shown, year, left, right)
    rest = _checked(shown, year)
    raise BadDate("DATE_AMBIGUOUS", f"{shown[:50]!r}: day and month cannot be told apart", rest)


def _checked(shown: str, year: int, month: int = 0, day: int = 0) -> PartialDate:
    if year == 0:
        raise BadDate("DATE_DOES_NOT_EXIST", f"{shown[:50]!r}: there is no year 0")
    if month == 0:
        return PartialDate(year)
    if not (1 <= month <= 12 and (day == 0 or _exists(year, month, day))):
        detail = f"{shown[:50]!r} does not exist in the calendar"
        raise BadDate("DATE_DOES_NOT_EXIST", detail, PartialDate(year))
    if day == 0:
        return PartialDate(year, month, precision=Precision.MONTH)
    return PartialDate(year, month, day, Precision.DAY)


def _exists(year: int, month: int, day: int) -> bool:
    if _ordinal(year, month, day) is not None:
        return True
    julian_leap_day = (month, day) == (2, 29) and year % 4 == 0
    return julian_leap_day and 0 < year <= _LAST_JULIAN_YEAR


def _ordinal(year: int, month: int, day: int) -> int | None:
    """Returns the number of the day; None if Python's calendar has no such day.

    Years outside 1..9999 are moved by whole cycles of the calendar, which keeps distances."""
    moved = year if 1 <= year <= 9999 else year % 400 + 2000
    try:
        return date(moved, month, day).toordinal()
    except ValueError:
        return None


#: How well two dates agree that are equal as far as both are known.
_EQUAL = {
    Precision.DAY: 100.0,
    Precision.MONTH: 90.0,
    Precision.YEAR: 80.0,
    Precision.DECADE: 60.0,
    Precision.CENTURY: 40.0,
}
_NEAR_DAYS = 3
_OTHER_CALENDAR = 90.0
_SWAPPED = 70.0
_SAME_YEAR = 40.0
_NEXT_YEAR = 40.0
_CIRCA_YEARS = 2
_CIRCA_NEAR = 60.0


@dataclass(frozen=True, slots=True)
class Agreement:
    score: float
    shared: Precision
    note: str


def compare_dates(left: PartialDate, right: PartialDate) -> Agreement:
    """Returns how well two dates agree, judged at the precision that both have.

    The first of January is what tables say if they know only the year, so against another day of
    that year it counts as the year."""
    shared = min(left.precision, right.precision)
    if shared is Precision.DAY and not _same(left, right, shared):
        return _compare_days(left, right)
    if _same(left, right, shared):
        score = _EQUAL[shared] - (5.0 if left.circa or right.circa else 0.0)
        return Agreement(score, shared, f"the same {shared.name.lower()}")
    if shared is Precision.MONTH and left.year == right.year:
        return Agreement(_SAME_YEAR, Precision.YEAR, "only the same year")
    return _compare_years(left, right, shared)


def _same(left: PartialDate, right: PartialDate, shared: Precision) -> bool:
    if shared is Precision.CENTURY:
        return (left.year - 1) // 100 == (right.year - 1) // 100
    if shared is Precision.DECADE:
        return left.year // 10 == right.year // 10
    if left.year != right.year:
        return False
    if shared is Precision.YEAR:
        return True
    return left.month == right.month and (shared is Precision.MONTH or left.day == right.day)


def _compare_days(left: PartialDate, right: PartialDate) -> Agreement:
    first = _ordinal(left.year, left.month, left.day)
    second = _ordinal(right.year, right.month, right.day)
    apart = abs(first - second) if first is not None and second is not None else None
    if apart is not None and abs(left.year - right.year) <= 1:
        if apart <= _NEAR_DAYS:
            note = f"{apart} day{'s' if apart > 1 else ''} apart"
            return Agreement(100.0 - 5 * apart, Precision.DAY, note)
        if apart == _calendar_shift(left.year) and min(left.year, right.year) <= _LAST_JULIAN_YEAR:
            return Agreement(_OTHER_CALENDAR, Precision.DAY, "the same day in the other calendar")
    if left.year != right.year:
        return _compare_years(left, right, Precision.DAY)
    if (1, 1) in ((left.month, left.day), (right.month, right.day)):
        return Agreement(_EQUAL[Precision.YEAR], Precision.YEAR, "the same year")
    if (left.month, left.day) == (right.day, right.month):
        return Agreement(_SWAPPED, Precision.YEAR, "day and month swapped")
    return Agreement(_SAME_YEAR, Precision.YEAR, "only the same year")


def _calendar_shift(year: int) -> int:
    """Returns by how many days the Julian calendar is behind in this year."""
    return year // 100 - year // 400 - 2


def _compare_years(left: PartialDate, right: PartialDate, shared: Precision) -> Agreement:
    apart = abs(left.year - right.year)
    about = left.circa or right.circa
    if about and apart <= _CIRCA_YEARS:
        return Agreement(_CIRCA_NEAR, Precision.DECADE, "about the same year")
    if apart == 1 and shared is Precision.YEAR:
        return Agreement(_NEXT_YEAR, Precision.DECADE, "one year apart")
    return Agreement(0.0, shared, "another date")


def to_gregorian(value: PartialDate) -> PartialDate:
    """Returns a Julian day as the Gregorian calendar names it; other dates unchanged."""
    if not value.julian or value.precision is not Precision.DAY or not 1 <= value.year <= 9998:
        return value
    number = _ordinal(value.year, value.month, value.day)
    if number is None:  # the leap day that only the Julian calendar has
        number = date(value.year, 3, 1).toordinal() - 1
    moved = date.fromordinal(number) + timedelta(days=_calendar_shift(value.year))
    return PartialDate(moved.year, moved.month, moved.day, Precision.DAY)
