"""Sizes of clothes and shoes: people say theirs, shops sell all sizes under one title."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from string import digits

from holdfast.pipelines.catalog.normalising.units import is_number
from holdfast.pipelines.catalog.normalising.vocabulary import is_worn
from holdfast.pipelines.catalog.normalising.words import TIMES

_SIZE = "size"
_LETTERS = frozenset(("xs", "s", "m", "l", "xl", "xxl", "small", "medium", "large"))
#: Before a number: women's, men's, or of a country.
_SYSTEMS = frozenset(("w", "m", "us", "uk", "eu"))


def worn_sizes(tokens: Sequence[str]) -> frozenset[str]:
    """With the word "size"."""
    sizes = frozenset(_named(tokens))
    if any(map(is_worn, tokens)):
        sizes |= frozenset(_plain(tokens))
    return sizes


def _named(tokens: Sequence[str]) -> Iterator[str]:
    for before, word in pairwise(tokens):
        if before == _SIZE and (is_number(word) or word in _LETTERS):
            yield from (before, word)


def _plain(tokens: Sequence[str]) -> Iterator[str]:
    """XL, 34 x 32, W8."""
    yield from _LETTERS.intersection(tokens)
    for width, times, length in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if times == TIMES:
            yield from (width, length)
    yield from (word for word in tokens if word.rstrip(digits) in _SYSTEMS and word[-1] in digits)
