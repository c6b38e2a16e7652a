"""Dates: what tables write, what exists, how well two agree."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast_linker.dates import (
    BadDate,
    PartialDate,
    Precision,
    compare_dates,
    parse_date,
    to_gregorian,
)

DAY, MONTH, YEAR = Precision.DAY, Precision.MONTH, Precision.YEAR


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("1952-03-11", "1952-03-11"),
        ("1952-03-11T00:00:00Z", "1952-03-11"),
        ("+1952-00-00T00:00:00Z", "1952"),
        ("1952-03", "1952-03"),
        ("1952", "1952"),
        ("19520311", "1952-03-11"),
        ("11.3.1952", "1952-03-11"),
        ("1952/3/11", "1952-03-11"),
        ("31/12/1952", "1952-12-31"),
        ("12/31/1952", "1952-12-31"),
        ("3/3/1952", "1952-03-03"),
        ("11 March 1952", "1952-03-11"),
        ("March 11th, 1952", "1952-03-11"),
        ("Mar. 1952", "1952-03"),
        ("c. 1952", "c. 1952"),
        ("1952?", "c. 1952"),
        ("1950s", "1950s"),
        ("19th century", "century of 1900"),
        ("44 BC", "-0044"),
        ("-0044-03-15", "-0044-03-15"),
        ("29 February 1700", "1700-02-29"),
    ],
)
def test_dates_are_read_in_the_forms_that_tables_have(text: str, shown: str) -> None:
    assert str(parse_date(text)) == shown


@pytest.mark.parametrize(
    ("text", "code", "rest"),
    [
        ("1952-02-30", "DATE_DOES_NOT_EXIST", "1952"),
        ("1951-02-29", "DATE_DOES_NOT_EXIST", "1951"),
        ("2100-02-29", "DATE_DOES_NOT_EXIST", "2100"),
        ("1952-13-01", "DATE_DOES_NOT_EXIST", "1952"),
        ("31.4.1952", "DATE_DOES_NOT_EXIST", "1952"),
        ("0000-01-01", "DATE_DOES_NOT_EXIST", "None"),
        ("3/4/1952", "DATE_AMBIGUOUS", "1952"),
        ("soon", "DATE_UNREADABLE", "None"),
        ("", "DATE_UNREADABLE", "None"),
        ("0th century", "DATE_UNREADABLE", "None"),
    ],
)
def test_what_is_not_a_date_says_why_and_keeps_what_can_be_used(
    text: str, code: str, rest: str
) -> None:
    with pytest.raises(BadDate) as raised:
        parse_date(text)
    assert (raised.value.code, str(raised.value.rest)) == (code, rest)


@settings(deadline=None)
@given(st.text(max_size=30))
def test_no_text_makes_reading_fail_otherwise(text: str) -> None:
    try:
        parse_date(text)
    except BadDate as error:
        assert error.code


def _agreement(one: str, other: str) -> tuple[float, Precision]:
    result = compare_dates(parse_date(one), parse_date(other))
    assert result == compare_dates(parse_date(other), parse_date(one))
    return result.score, result.shared


@pytest.mark.parametrize(
    ("one", "other", "score", "shared"),
    [
        ("1952-03-11", "1952-03-11", 100, DAY),
        ("1952-03-11", "1952-03-13", 90, DAY),
        ("1951-12-31", "1952-01-02", 90, DAY),
        ("1952-03-11", "1952-03", 90, MONTH),
        ("1952-03-11", "1952", 80, YEAR),
        ("1952-03-11", "1952-01-01", 80, YEAR),
        ("c. 1952", "1952-03-11", 75, YEAR),
        ("1952-03-11", "1952-11-03", 70, YEAR),
        ("c. 1952", "1954", 60, Precision.DECADE),
        ("1950s", "1952-03-11", 60, Precision.DECADE),
        ("20th century", "1952", 40, Precision.CENTURY),
        ("1952-03-11", "1952-07-20", 40, YEAR),
        ("1952-03", "1952-04-20", 40, YEAR),
        ("1952", "1953", 40, Precision.DECADE),
        ("1952-03-11", "1953-03-11", 0, DAY),
        ("1952", "1962", 0, YEAR),
        ("44 BC", "44", 0, YEAR),
    ],
)
def test_dates_agree_as_far_as_both_are_known(
    one: str, other: str, score: float, shared: Precision
) -> None:
    assert _agreement(one, other) == (score, shared)


def test_other_calendar_is_recognized_where_it_was_in_use() -> None:
    assert _agreement("1840-04-25", "1840-05-07") == (90, DAY)
    assert _agreement("1990-04-25", "1990-05-08") == (40, YEAR)


def test_julian_day_is_turned_into_the_gregorian_one() -> None:
    julian = PartialDate(1685, 3, 21, DAY, julian=True)
    assert str(to_gregorian(julian)) == "1685-03-31"
    assert str(to_gregorian(PartialDate(1700, 2, 29, DAY, julian=True))) == "1700-03-11"
    assert to_gregorian(PartialDate(1685, julian=True)).year == 1685
