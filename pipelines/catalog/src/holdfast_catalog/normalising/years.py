"""Finds years that a part fits: 2021-2024, 2021-24."""

from __future__ import annotations

import re

_RANGE = re.compile(r"\b((?:19|20)\d\d)\s*[-\u2013/]\s*((?:19|20)?\d\d)\b")
_MOST_YEARS = 60


def with_whole_years(text: str) -> str:
    """Writes 2021-24 as 2021-2024."""
    return _RANGE.sub(lambda found: f"{found[1]}-{_end_of(found)}", text)


def years_in(text: str) -> frozenset[str]:
    """Returns every year of the ranges that a text names."""
    years: set[str] = set()
    for found in _RANGE.finditer(text):
        first, last = int(found[1]), int(_end_of(found))
        if 0 < last - first <= _MOST_YEARS:
            years.update(map(str, range(first, last + 1)))
    return frozenset(years)


def _end_of(found: re.Match[str]) -> str:
    end = found[2]
    whole = end if len(end) == 4 else found[1][:2] + end
    return whole if whole > found[1] else end
