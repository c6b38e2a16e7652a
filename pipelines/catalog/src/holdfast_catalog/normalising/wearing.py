"""Recognizes sizes of clothes and shoes: people give theirs, shops sell all sizes under one
title."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from string import digits

from holdfast_catalog.normalising.units import is_number
from holdfast_catalog.normalising.vocabulary import is_worn
from holdfast_catalog.normalising.words import TIMES

_SIZE = "size"
_LETTERS = {
    "xs": "xs", "s": "s", "m": "m", "l": "l", "xl": "xl", "xxl": "xxl", "small": "s",
    "medium": "m", "large": "l",
}  # fmt: skip
#: Words before a number: women's, men's, or of a country.
_SYSTEMS = frozenset(("w", "m", "us", "uk", "eu"))


def worn_sizes(tokens: Sequence[str]) -> Mapping[str, str]:
    """Returns the words that give a size, each with the size."""
    sizes = dict(_named(tokens))
    if any(map(is_worn, tokens)):
        return sizes | dict(_plain(tokens))
    last = tokens[-1] if tokens else ""  # Helmet, Matte Black, Large
    return sizes | {last: _LETTERS[last]} if last in _LETTERS else sizes


def _named(tokens: Sequence[str]) -> Iterator[tuple[str, str]]:
    for before, word in pairwise(tokens):
        if before == _SIZE and (is_number(word) or word in _LETTERS):
            size = _LETTERS.get(word, word)
            yield from ((before, size), (word, size))


def _plain(tokens: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yields sizes such as XL, 34 x 32 and W8."""
    yield from ((word, _LETTERS[word]) for word in tokens if word in _LETTERS)
    for width, times, length in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if times == TIMES:
            size = f"{width} x {length}"
            yield from ((width, size), (length, size))
    for word in tokens:
        system = word.rstrip(digits)
        if system in _SYSTEMS and system != word:
            yield word, word.removeprefix(system)
