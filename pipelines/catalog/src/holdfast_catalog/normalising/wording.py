"""Reads what a text says about a product: its words, sizes, and how many pieces it is."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from holdfast_catalog.normalising.packs import pack_of
from holdfast_catalog.normalising.units import (
    base_unit,
    has_size,
    is_number,
    size_of,
    unit_of,
)
from holdfast_catalog.normalising.vocabulary import Kind, kind_of
from holdfast_catalog.normalising.wearing import worn_sizes
from holdfast_catalog.normalising.words import (
    STOP_WORDS,
    TIMES,
    compact,
    has_digit,
    joined_words,
    telling_words,
    tokens_of,
)
from holdfast_catalog.normalising.years import with_whole_years, years_in

_MOST_WORDS = 60
_LONGEST_JOIN = 3
_LONGEST_USER = 3
_LONGEST_NUMBER = 12
_ABOUT = 0.04
_FOOT = 12
_CACHED = 4096
_FOR = frozenset(("for", "fits", "compatible"))
_WITH = frozenset(("with", "without"))
#: Who or what a thing is for, which does not make it an accessory.
_USERS = frozenset(
    ["adults", "men", "women", "kids", "children", "boys", "girls", "home", "office", "indoor",
     "outdoor", "beginners", "dogs", "cats", "skin", "hair", "teeth", "players", "people"]
)  # fmt: skip
_PARTS = re.compile(r",|;| - |\(| for | with | w/|\u2013")
#: What a title mentions only to exclude it: (jars not included).
_EXCLUDED = re.compile(r"[(,;]\s*(?:[\w-]+ ){1,4}not included\)?")
_LENGTHS = frozenset(("in", "ft", "mm", "cm", "m"))
_NOT_NOUNS = STOP_WORDS | {"designed", "made", "compatible", "suitable"}


@dataclass(frozen=True, slots=True)
class Wording:
    """What a text says about a product.

    `joins` are words that are written apart or with a joint, joined, with their parts: et2850 of
    ET-2850. `head` is what comes before "for": what an accessory is, not what it is for; `noun` is
    its last word. `main` is what comes before "with": the thing, not what belongs to it."""

    text: str
    tokens: Sequence[str]
    words: frozenset[str]
    joins: Mapping[str, frozenset[str]]
    measured: Mapping[str, tuple[str, Decimal]]  # numbers with a unit
    sizes: Mapping[str, frozenset[Decimal]]
    main: Sequence[str]
    head: frozenset[str] | None
    noun: str
    for_at: int  # the position of "for" among the tokens; 0: none
    thing: str  # what it is: the last name of a thing in the first part of the text
    pack: int | None
    years: frozenset[str]
    initials: str
    worn: Mapping[str, str]  # words that give a size of clothes, with the size

    @classmethod
    @lru_cache(maxsize=_CACHED)
    def of(cls, text: str) -> Wording:
        """Returns the wording of a text; cached, because the same offers come for many rows."""
        text = with_whole_years(_EXCLUDED.sub(" ", text) if "not included" in text else text)
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
            len(head or ()),
            _thing(text),
            pack_of(text),
            years_in(text),
            "".join(token[0] for token in tokens),
            worn_sizes(tokens),
        )

    def has(self, word: str) -> bool:
        """Whether it has the word; with digits only as a whole: 4070 is not in 4070ti."""
        return word in self.words or word in self.joins

    def has_size(self, word: str, other: Wording) -> bool:
        """Whether another text has this size, or one in this unit: 0.5 l is 500 ml."""
        if word in self.measured:
            unit, number = self.measured[word]
            return has_size(other.sizes, unit, number)
        if TIMES in self.tokens and is_number(word) and "mm" in other.sizes:
            return has_size(other.sizes, "mm", 10 * Decimal(word[:_LONGEST_NUMBER]))  # 45 x 30
        if word.isdecimal() and len(word) > 1:  # 13 for 13.6, 15 for 14.8
            return any(_rounds_to(word, token) for token in other.tokens if "." in token)
        if unit_of(word) is None:
            return False
        own = self.sizes.get(base_unit(word), ())  # none: a quart is not a pint
        return bool(own) and (
            base_unit(word) in other.sizes
            or any(has_size(other.sizes, base_unit(word), number) for number in own)
        )

    @property
    def has_bare_number(self) -> bool:
        """Whether it may be a size of clothes: in a title, the last of its words."""
        last = self.tokens[-1] if self.tokens else ""
        return last.isdecimal() and last not in self.measured

    def covered(self, other: Wording) -> frozenset[str]:
        """Returns its own words that another text writes as one."""
        parts = [own for joined, own in self.joins.items() if joined in other.words]
        return frozenset().union(*parts)


def _rounds_to(word: str, token: str) -> bool:
    if token.startswith(f"{word}."):
        return True
    number = int(word[:_LONGEST_NUMBER])
    return is_number(token) and abs(float(token[:_LONGEST_NUMBER]) - number) <= _ABOUT * number


def _thing(text: str) -> str:
    """Returns the thing; one behind a number is a measure, if there is another: food processor 14
    cup."""
    first = next(filter(None, map(str.strip, _PARTS.split(text.casefold()))), "")
    words = [word for part in first.split() for word in telling_words(part)]
    things = [
        (has_digit(before), word)
        for before, word in zip(("", *words), words, strict=False)
        if kind_of(word) is Kind.THING
    ]
    whole = [word for is_measure, word in things if not is_measure]
    return whole[-1] if whole else things[-1][1] if things else ""


def _before(words: frozenset[str], tokens: Sequence[str]) -> Sequence[str] | None:
    """Returns the words before one of these; None if none of them is there, or if it is the
    first."""
    found = (at for at, word in enumerate(tokens) if word in words and _separates(tokens, at))
    at = next(found, 0)
    return tokens[:at] if at else None


def _separates(tokens: Sequence[str], at: int) -> bool:
    """Whether the word separates a thing from what it is for.

    It does not in "for adults", "for dry skin" or "service for 4", nor in HE compatible, which
    describes the thing itself."""
    after = tokens[at + 1 : at + 1 + _LONGEST_USER]
    if tokens[at] == "compatible":
        return after[:1] == ["with"]
    return _USERS.isdisjoint(after) and not (at and tokens[at - 1] == "service")


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
    """Returns numbers with their units, without the parts of a sum: 64 GB (2 x 32 GB) is 64 GB."""
    measured: dict[str, tuple[str, Decimal]] = {}
    for at, unit in enumerate(tokens):
        if at and is_number(tokens[at - 1]) and unit_of(unit) and unit != "pack":
            for number in _before_unit(tokens, at):
                measured.setdefault(number, size_of(number, unit))
    for feet, foot, inches, inch in zip(tokens, tokens[1:], tokens[2:], tokens[3:], strict=False):
        if (foot, inch) == ("ft", "in") and _is_rest(feet, inches):  # 6 ft 6 in
            whole = size_of(feet, foot)[1] + size_of(inches, inch)[1]
            measured |= dict.fromkeys((feet, inches), ("in", whole))
    for count, times, part in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if times == TIMES and part in measured and is_number(count):
            kind, size = measured[part]
            if (kind, size * Decimal(count[:4])) in measured.values():
                del measured[part]
    return measured


def _is_rest(feet: str, inches: str) -> bool:
    return is_number(feet) and is_number(inches) and Decimal(inches[:_LONGEST_NUMBER]) < _FOOT


def _before_unit(tokens: Sequence[str], at: int) -> Iterator[str]:
    """Yields all numbers that a unit belongs to: 55 x 28 inches."""
    unit = tokens[at]
    yield tokens[at - 1]
    while at > _LONGEST_JOIN and tokens[at - 2] == TIMES and is_number(tokens[at - 3]):
        at -= 2
        if unit_of(tokens[at]) is None and unit in _LENGTHS:
            yield tokens[at - 1]


def _sizes(measured: Iterable[tuple[str, Decimal]]) -> dict[str, frozenset[Decimal]]:
    """Returns the numbers of each unit."""
    sizes: defaultdict[str, set[Decimal]] = defaultdict(set)
    for unit, number in measured:
        sizes[unit].add(number)
    return {unit: frozenset(numbers) for unit, numbers in sizes.items()}
