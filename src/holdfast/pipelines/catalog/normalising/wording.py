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
    TIMES,
    compact,
    has_digit,
    joined_words,
    tokens_of,
)
from holdfast.pipelines.catalog.normalising.years import with_whole_years, years_in

_MOST_WORDS = 60
_LONGEST_JOIN = 3
_CACHED = 4096
_FOR = frozenset(("for", "fits", "compatible"))
_WITH = frozenset(("with", "without"))
#: Who or where a thing is for, which makes it no accessory.
_USERS = frozenset(
    ["adults", "men", "women", "kids", "children", "boys", "girls", "home", "office", "indoor",
     "outdoor", "beginners", "dogs", "cats"]
)  # fmt: skip
_NOT_NOUNS = STOP_WORDS | {"designed", "made", "compatible", "suitable"}


@dataclass(frozen=True, slots=True)
class Wording:
    """`joins` are words that are written apart or with a joint, joined, with their parts: et2850
    of ET-2850. `head` is what comes before "for": what an accessory is, not what it is for; `noun`
    is its last word. `main` is what comes before "with": the thing, not what belongs to it."""

    text: str
    tokens: Sequence[str]
    words: frozenset[str]
    joins: Mapping[str, frozenset[str]]
    measured: Mapping[str, tuple[str, Decimal]]  # numbers that have a unit
    sizes: Mapping[str, frozenset[Decimal]]
    main: Sequence[str]
    head: frozenset[str] | None
    noun: str
    pack: int | None
    years: frozenset[str]

    @classmethod
    @lru_cache(maxsize=_CACHED)
    def of(cls, text: str) -> Wording:
        """The same offers come for many rows."""
        text = with_whole_years(text)
        tokens = tokens_of(text)
        measured = _measured(tokens)
        kept = [token for token in tokens if token not in STOP_WORDS]
        head = _before(_FOR, tokens)
        return cls(
            compact(text),
            tokens,
            frozenset(dict.fromkeys(kept[:_MOST_WORDS])),
            _joins(kept[:_MOST_WORDS], text),
            measured,
            _sizes(measured.values()),
            _before(_WITH, tokens) or tokens,
            None if head is None else frozenset(head) - STOP_WORDS,
            next((token for token in reversed(head or ()) if token not in _NOT_NOUNS), ""),
            pack_of(text),
            years_in(text),
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


def _before(words: frozenset[str], tokens: Sequence[str]) -> Sequence[str] | None:
    """None if none of the words is there, or if it is the first."""
    pairs = enumerate(zip(tokens, (*tokens[1:], ""), strict=False))
    at = next((at for at, (word, after) in pairs if word in words and _separates(word, after)), 0)
    return tokens[:at] if at else None


def _separates(word: str, after: str) -> bool:
    """Not "for adults", nor HE compatible, which says what the thing itself is."""
    return after == "with" if word == "compatible" else after not in _USERS


def _joins(words: Sequence[str], text: str) -> dict[str, frozenset[str]]:
    joins = {compact(word): frozenset(tokens_of(word)) for word in joined_words(text)}
    for start in range(len(words)):
        for end in range(start + 2, min(start + _LONGEST_JOIN, len(words)) + 1):
            part = words[start:end]
            joined = "".join(part)
            if has_digit(joined) and not joined.isdecimal():
                joins[joined] = frozenset(part)
    return joins


def _measured(tokens: Sequence[str]) -> dict[str, tuple[str, Decimal]]:
    """Without the parts of a sum: 64 GB (2 x 32 GB) is 64 GB."""
    measured = {
        number: size_of(number, unit)
        for number, unit in pairwise(tokens)
        if is_number(number) and unit_of(unit) and unit != "pack"
    }
    for count, times, part in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if times == TIMES and part in measured and is_number(count):
            unit, number = measured[part]
            if (unit, number * Decimal(count[:4])) in measured.values():
                del measured[part]
    return measured


def _sizes(measured: Iterable[tuple[str, Decimal]]) -> dict[str, frozenset[Decimal]]:
    """Unit -> numbers."""
    sizes: defaultdict[str, set[Decimal]] = defaultdict(set)
    for unit, number in measured:
        sizes[unit].add(number)
    return {unit: frozenset(numbers) for unit, numbers in sizes.items()}
