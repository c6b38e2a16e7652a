"""What a text says about a product: its words, sizes, and how many pieces it is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise

from holdfast.pipelines.catalog.normalising.packs import pack_of
from holdfast.pipelines.catalog.normalising.units import base_unit, is_number, size_of, unit_of
from holdfast.pipelines.catalog.normalising.words import (
    STOP_WORDS,
    compact,
    has_digit,
    joined_words,
    tokens_of,
)

_MOST_WORDS = 60
_LONGEST_JOIN = 3
_CACHED = 4096
_FOR = frozenset(("for", "fits", "compatible"))


@dataclass(frozen=True, slots=True)
class Wording:
    """`joins` are words that are written apart or with a joint, joined, with their parts: et2850
    of ET-2850. `head` is what comes before "for": what an accessory is, not what it is for."""

    text: str
    tokens: Sequence[str]
    words: frozenset[str]
    joins: Mapping[str, frozenset[str]]
    measured: Mapping[str, tuple[str, Decimal]]  # numbers that have a unit
    sizes: Mapping[str, frozenset[Decimal]]
    head: frozenset[str] | None
    pack: int | None

    @classmethod
    @lru_cache(maxsize=_CACHED)
    def of(cls, text: str) -> Wording:
        """The same offers come for many rows."""
        tokens = tokens_of(text)
        measured = _measured(tokens)
        kept = [token for token in tokens if token not in STOP_WORDS]
        at = next((at for at, token in enumerate(tokens) if token in _FOR and at), None)
        return cls(
            compact(text),
            tokens,
            frozenset(dict.fromkeys(kept[:_MOST_WORDS])),
            _joins(kept[:_MOST_WORDS], text),
            measured,
            _sizes(measured.values()),
            None if at is None else frozenset(tokens[:at]) - STOP_WORDS,
            pack_of(text),
        )

    def has(self, word: str) -> bool:
        """With digits only as a whole: 4070 is not in 4070ti."""
        return word in self.words or word in self.joins

    def has_size(self, word: str, other: Wording) -> bool:
        """Whether another text has this size, or one in this unit: 0.5 l is 500 ml."""
        if word in self.measured:
            unit, number = self.measured[word]
            return number in other.sizes.get(unit, ())
        return unit_of(word) is not None and base_unit(word) in other.sizes

    def covered(self, other: Wording) -> frozenset[str]:
        """Its own words that another text writes in one."""
        parts = [own for joined, own in self.joins.items() if joined in other.words]
        return frozenset().union(*parts)


def _joins(words: Sequence[str], text: str) -> dict[str, frozenset[str]]:
    joins = dict.fromkeys(joined_words(text), frozenset[str]())
    for start in range(len(words)):
        for end in range(start + 2, min(start + _LONGEST_JOIN, len(words)) + 1):
            part = words[start:end]
            joined = "".join(part)
            if has_digit(joined) and not joined.isdecimal():
                joins[joined] = frozenset(part)
    return joins


def _measured(tokens: Sequence[str]) -> dict[str, tuple[str, Decimal]]:
    return {
        number: size_of(number, unit)
        for number, unit in pairwise(tokens)
        if is_number(number) and unit_of(unit) and unit != "pack"
    }


def _sizes(measured: Iterable[tuple[str, Decimal]]) -> dict[str, frozenset[Decimal]]:
    """Unit -> numbers."""
    sizes: defaultdict[str, set[Decimal]] = defaultdict(set)
    for unit, number in measured:
        sizes[unit].add(number)
    return {unit: frozenset(numbers) for unit, numbers in sizes.items()}
