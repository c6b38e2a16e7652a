"""Parses fractions as people write sizes: 1/2, 7-1/4, 5 3/8."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from math import gcd

_DENOMINATORS = frozenset(("2", "3", "4", "5", "6", "8", "16", "32", "64"))
_DIGITS = 3
_MOST_WHOLE_DIGITS = 3


def split_fraction(word: str) -> list[str]:
    """Returns the word itself if it is a fraction, else its parts."""
    above, _, below = word.partition("/")
    # There may be a unit after it, as in 1/2in.
    number = below.rstrip("abcdefghijklmnopqrstuvwxyz")
    if is_fraction(f"{above}/{number}"):
        return [f"{above}/{number}", *filter(None, [below[len(number) :]])]
    return [part for part in word.split("/") if part]


def is_fraction(word: str) -> bool:
    above, slash, below = word.partition("/")
    if not slash or below not in _DENOMINATORS or len(above) > 2 or not above.isdecimal():
        return False
    return 0 < int(above) < int(below) and gcd(int(above), int(below)) == 1  # 6/8 qt are two


def as_decimals(words: Iterable[str]) -> Iterator[str]:
    """Yields fractions as decimals; a whole number before one is part of it: 7 1/4 is 7.25."""
    whole = ""
    for word in words:
        if is_fraction(word):
            above, _, below = word.partition("/")
            value = round(Decimal(above) / Decimal(below), _DIGITS) + Decimal(whole or 0)
            yield f"{value.normalize():f}"
            whole = ""
            continue
        if whole:
            yield whole
        is_whole = word.isdecimal() and word.isascii() and len(word) <= _MOST_WHOLE_DIGITS
        whole = word if is_whole else ""
        if not whole:
            yield word
    if whole:
        yield whole
