"""Reads when something was published, in days of Zagreb, and whether that is within a run's range.

A source says days, months or only years; each is a period, not a point. `lastmod` is never taken
for a publication date.
"""

from __future__ import annotations

import calendar
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from email.utils import parsedate_to_datetime
from enum import StrEnum
from functools import lru_cache
from zoneinfo import ZoneInfo

from holdfast.errors import UserError

ZAGREB = ZoneInfo("Europe/Zagreb")

_MONTHS = (
    "sijecanj veljaca ozujak travanj svibanj lipanj srpanj kolovoz rujan listopad studeni prosinac",
    "sijecnja veljace ozujka travnja svibnja lipnja srpnja kolovoza rujna listopada studenoga "
    "prosinca",
    "sijecnja veljace ozujka travnja svibnja lipnja srpnja kolovoza rujna listopada studenog "
    "prosinca",
)
_MONTH_OF = {name: i for form in _MONTHS for i, name in enumerate(form.split(), 1)}
_ISO = re.compile(r"(?<!\d)(\d{4})-(\d{2})(?:-(\d{2}))?(T\d{2}:\d{2}\S*)?(?!\d)")
_NUMERIC = re.compile(r"(?<!\d)(\d{1,2})\s*[./]\s*(\d{1,2})\s*[./]\s*(\d{4})(?!\d)")
_WORDED = re.compile(r"(?<!\d)(\d{1,2})\.?\s+([a-z]+)\s+(\d{4})(?!\d)")
_SEARCHED_CHARACTERS = 2_000  # of an element that a selector names
_FIRST_YEAR = 1850
_LAST_YEAR = 2200


@dataclass(frozen=True, slots=True)
class Period:
    """Days from the first to the last, both included."""

    first: date
    last: date

    @property
    def is_day(self) -> bool:
        return self.first == self.last

    def __str__(self) -> str:
        return str(self.first) if self.is_day else f"{self.first}..{self.last}"


@lru_cache(maxsize=4096)
def period(year: int, month: int | None = None, day: int | None = None) -> Period | None:
    """Returns the year, month or day; None if the calendar has no such thing."""
    try:
        if not _FIRST_YEAR <= year <= _LAST_YEAR:
            return None
        if month is None:
            return Period(date(year, 1, 1), date(year, 12, 31))
        if day is None:
            return Period(
                date(year, month, 1), date(year, month, calendar.monthrange(year, month)[1])
            )
        return Period(date(year, month, day), date(year, month, day))
    except (ValueError, IndexError):
        return None


def zagreb_day(moment: datetime) -> date:
    """Returns the day in Zagreb; a moment without a zone is Zagreb's own."""
    return (moment.astimezone(ZAGREB) if moment.tzinfo else moment).date()


def read_date(text: str | None) -> Period | None:
    """Parses a date in one of the forms that Croatian sites and feeds use."""
    if not text:
        return None
    text = text[:_SEARCHED_CHARACTERS]
    plain = _without_accents(text)
    return _iso(plain) or _numeric(plain) or _worded(plain) or _of_feed(text)


def date_in_url(url: str, patterns: Sequence[re.Pattern[str]]) -> Period | None:
    """Returns the date by the named groups year, month and day of the first pattern that
    matches."""
    for pattern in patterns:
        match = pattern.search(url)
        if match is not None:
            parts = {name: int(value) for name, value in match.groupdict().items() if value}
            return period(parts["year"], parts.get("month"), parts.get("day"))
    return None


class Fit(StrEnum):
    INSIDE = "INSIDE"
    EDGE = "EDGE"  # a month or year that lies only partly inside; accepted, and its day shows later
    OUTSIDE = "OUTSIDE"
    UNDATED = "UNDATED"


@dataclass(frozen=True, slots=True)
class DateRange:
    """Days of Zagreb, both ends included; None leaves an end open."""

    first: date | None = None
    last: date | None = None

    def __post_init__(self) -> None:
        if self.first and self.last and self.last < self.first:
            raise UserError(
                f"the date range ends ({self.last}) before it begins ({self.first})",
                "Give the earlier day first.",
            )

    @property
    def is_open(self) -> bool:
        return self.first is None and self.last is None

    def fit(self, published: Period | None) -> Fit:
        if self.is_open:
            return Fit.INSIDE
        if published is None:
            return Fit.UNDATED
        first, last = self.first or date.min, self.last or date.max
        if published.last < first or published.first > last:
            return Fit.OUTSIDE
        inside = first <= published.first and published.last <= last
        return Fit.INSIDE if inside else Fit.EDGE

    def moments(self) -> tuple[datetime | None, datetime | None]:
        """Returns the range as a half-open interval of time, for comparing with timestamps."""
        begins = datetime.combine(self.first, time(), ZAGREB) if self.first else None
        after = self.last and self.last + timedelta(days=1)
        ends = datetime.combine(after, time(), ZAGREB) if after else None
        return begins, ends


class DateFilter:
    """Accepts what may lie in the range and counts all four cases.

    Undated items are left out if a range is given: no one could tell that they belong to it."""

    def __init__(self, wanted: DateRange) -> None:
        self._wanted = wanted
        self.counts: Counter[Fit] = Counter()

    def admits(self, published: Period | None) -> bool:
        fit = self._wanted.fit(published)
        self.counts[fit] += 1
        return fit in (Fit.INSIDE, Fit.EDGE)


def _iso(text: str) -> Period | None:
    match = _ISO.search(text)
    if match is None:
        return None
    if match[3] and match[4]:
        try:
            day = zagreb_day(datetime.fromisoformat(match[0]))
        except ValueError:
            pass
        else:
            return Period(day, day)
    return period(int(match[1]), int(match[2]), int(match[3]) if match[3] else None)


def _numeric(text: str) -> Period | None:
    match = _NUMERIC.search(text)
    return match and period(int(match[3]), int(match[2]), int(match[1]))


def _worded(text: str) -> Period | None:
    for match in _WORDED.finditer(text.lower()):
        month = _MONTH_OF.get(match[2])
        if month is not None:
            return period(int(match[3]), month, int(match[1]))
    return None


def _of_feed(text: str) -> Period | None:
    try:
        day = zagreb_day(parsedate_to_datetime(text))
    except (ValueError, IndexError, OverflowError):
        return None
    return Period(day, day)


def _without_accents(text: str) -> str:
    decomposed = unicodedata.normalize("NFD", text)
    return "".join(c for c in decomposed if not unicodedata.combining(c))
