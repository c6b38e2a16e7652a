"""Everyday English: what people call things, and which words tell products apart."""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from enum import Enum
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path

from holdfast.pipelines.catalog.normalising.words import STOP_WORDS, has_digit, tokens_of

_FILE = Path(__file__).with_name("vocabulary.toml")
_CACHED = 8192
_SHORTEST_PLURAL = 4

#: Things of many kinds, which only the word before them tells apart.
GENERIC = frozenset(("machine", "maker", "set", "kit", "unit", "system", "device", "station"))
#: Words that are said together: record player.
Phrase = tuple[str, ...]


class Kind(Enum):
    """What a word of a row is."""

    NUMBER = "number"
    REMARK = "remark"
    THING = "thing"
    DESCRIBING = "describing"
    NAME = "name"  # of a maker, a line, a model: every word that is not known here


@lru_cache(maxsize=_CACHED)
def kind_of(word: str) -> Kind:
    if has_digit(word):
        return Kind.NUMBER
    for kind in (Kind.THING, Kind.DESCRIBING, Kind.REMARK):
        if not _forms(word).isdisjoint(_words()[kind]):
            return kind
    return Kind.NAME


@lru_cache(maxsize=_CACHED)
def is_remark(word: str) -> bool:
    """Whether people say it of their things, though it may be the name of one: shelf, kids."""
    return not _forms(word).isdisjoint(_words()[Kind.REMARK])


@lru_cache(maxsize=_CACHED)
def synonyms(word: str) -> frozenset[Phrase]:
    return frozenset().union(*(_synonyms().get((form,), ()) for form in _forms(word)))


@lru_cache(maxsize=_CACHED)
def phrases_in(tokens: tuple[str, ...]) -> Mapping[Phrase, frozenset[Phrase]]:
    """Phrases of two words among these, with what else they are called."""
    known: dict[Phrase, frozenset[Phrase]] = {}
    for pair in pairwise(tokens):
        for second in _forms(pair[1]):
            others = _synonyms().get((pair[0], second))
            if others:
                known[pair] = others
    return known


@lru_cache(maxsize=_CACHED)
def exclusive_group(word: str) -> str:
    """The kind of property of which a product has one: the color of black. Empty: none."""
    return _groups().get(word) or _groups().get(word.removesuffix("s"), "")


@lru_cache(maxsize=_CACHED)
def _forms(word: str) -> frozenset[str]:
    """With and without the ending of a plural."""
    if len(word) < _SHORTEST_PLURAL:
        return frozenset((word,))
    return frozenset((word, word.removesuffix("s"), word.removesuffix("es"), f"{word}s"))


@cache
def _read() -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads(_FILE.read_text("utf-8"))


@cache
def _synonyms() -> Mapping[Phrase, frozenset[Phrase]]:
    pairs: defaultdict[Phrase, set[Phrase]] = defaultdict(set)
    for said, names in _read()["synonyms"].items():
        for name in names.split(","):
            own, other = tuple(tokens_of(said)), tuple(tokens_of(name))
            if own != other:
                pairs[own].add(other)
                pairs[other].add(own)
    return {phrase: frozenset(others) for phrase, others in pairs.items()}


@cache
def _words() -> Mapping[Kind, frozenset[str]]:
    data = _read()
    last = {phrase[-1] for phrase in _synonyms()}
    before = {word for phrase in _synonyms() for word in phrase[:-1]}
    describing = _split(data["describing"].values())
    return {
        Kind.THING: _split(data["things"].values()) | last - STOP_WORDS - describing,
        Kind.DESCRIBING: describing | frozenset(_groups()) | before,
        Kind.REMARK: _split(data["remarks"].values()),
    }


@cache
def _groups() -> Mapping[str, str]:
    return {
        word: group for group, words in _read()["exclusive"].items() for word in tokens_of(words)
    }


def _split(texts: Iterable[str]) -> frozenset[str]:
    return frozenset(word for text in texts for word in tokens_of(text))
