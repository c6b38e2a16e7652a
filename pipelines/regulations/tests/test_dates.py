"""Publication dates: forms that sites use, days of Zagreb, ranges with both ends included."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime

import pytest

from holdfast.errors import UserError
from holdfast_regulations.dates import (
    DateFilter,
    DateRange,
    Fit,
    Period,
    date_in_url,
    period,
    read_date,
    zagreb_day,
)


def day(text: str) -> Period:
    return Period(date.fromisoformat(text), date.fromisoformat(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12.3.2024.", day("2024-03-12")),
        ("Zagreb, 12. 03. 2024.", day("2024-03-12")),
        ("31/01/2020", day("2020-01-31")),
        ("Objavljeno: 5. ožujka 2024.", day("2024-03-05")),
        ("1. studenoga 2023. godine", day("2023-11-01")),
        ("9. STUDENOG 2023", day("2023-11-09")),
        ("2024-02-29", day("2024-02-29")),
        ("2024-03", Period(date(2024, 3, 1), date(2024, 3, 31))),
        ("2024-01-01T23:30:00Z", day("2024-01-02")),
        ("2024-07-01T22:30:00+00:00", day("2024-07-02")),
        ("2024-07-01T23:30:00", day("2024-07-01")),
        ("Mon, 01 Jan 2024 23:30:00 GMT", day("2024-01-02")),
        ("30.2.2024.", None),
        ("2023-02-29", None),
        ("12.13.2024", None),
        ("112.3.20245", None),
        ("yesterday", None),
        ("", None),
        (None, None),
    ],
)
def test_date_is_read(text: str | None, expected: Period | None) -> None:
    assert read_date(text) == expected


def test_day_is_the_one_in_zagreb_on_both_sides_of_summer_time() -> None:
    assert zagreb_day(datetime(2024, 1, 31, 22, 59, tzinfo=UTC)) == date(2024, 1, 31)
    assert zagreb_day(datetime(2024, 1, 31, 23, 0, tzinfo=UTC)) == date(2024, 2, 1)
    assert zagreb_day(datetime(2024, 7, 31, 21, 59, tzinfo=UTC)) == date(2024, 7, 31)
    assert zagreb_day(datetime(2024, 7, 31, 22, 0, tzinfo=UTC)) == date(2024, 8, 1)


def test_date_stands_in_the_url_as_exactly_as_it_is_given() -> None:
    patterns = [
        re.compile(r"/(?P<year>\d{4})_(?P<month>\d{2})_"),
        re.compile(r"/eli/(?P<year>\d{4})/"),
    ]
    assert date_in_url("https://a.hr/2024_02_25_1.html", patterns) == period(2024, 2)
    assert date_in_url("https://a.hr/eli/2024/25/1", patterns) == period(2024)
    assert date_in_url("https://a.hr/2024_13_25_1.html", patterns) is None
    assert date_in_url("https://a.hr/x", patterns) is None


@pytest.mark.parametrize(
    ("published", "fit"),
    [
        (day("2024-03-09"), Fit.OUTSIDE),
        (day("2024-03-10"), Fit.INSIDE),
        (day("2024-03-20"), Fit.INSIDE),
        (day("2024-03-21"), Fit.OUTSIDE),
        (period(2024, 3), Fit.EDGE),
        (period(2024), Fit.EDGE),
        (period(2024, 4), Fit.OUTSIDE),
        (None, Fit.UNDATED),
    ],
)
def test_both_ends_belong_to_the_range(published: Period | None, fit: Fit) -> None:
    assert DateRange(date(2024, 3, 10), date(2024, 3, 20)).fit(published) is fit


def test_undated_items_are_counted_and_left_out_only_where_a_range_is_given() -> None:
    filtered = DateFilter(DateRange(first=date(2024, 1, 1)))
    assert not filtered.admits(None)
    assert filtered.admits(day("2024-01-01"))
    assert filtered.counts == {Fit.UNDATED: 1, Fit.INSIDE: 1}
    assert DateFilter(DateRange()).admits(None)


def test_range_as_moments_covers_the_whole_last_day_even_when_it_has_23_hours() -> None:
    begins, ends = DateRange(date(2024, 3, 31), date(2024, 3, 31)).moments()
    assert begins is not None
    assert ends is not None
    assert begins.astimezone(UTC) == datetime(2024, 3, 30, 23, tzinfo=UTC)
    assert ends.astimezone(UTC) == datetime(2024, 3, 31, 22, tzinfo=UTC)


def test_range_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(UserError, match="before it begins"):
        DateRange(date(2024, 2, 1), date(2024, 1, 1))
