"""Everyday English: what people call things, and which words distinguish products."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from enum import Enum
from functools import cache, lru_cache

from holdfast_catalog.normalising.word_files import FOLDER, word_list
from holdfast_catalog.normalising.words import STOP_WORDS, has_digit, tokens_of

_CACHED = 8192
_SHORTEST_PLURAL = 4
_LONGEST_PHRASE = 3

#: Things of many kinds, which only the word before them distinguishes.
GENERIC = frozenset(("machine", "maker", "set", "kit", "unit", "system", "device", "station"))
#: The group of words of which a product has one and that have shades.
COLOR = "color"
#: Words that are said together: record player.
Phrase = tuple[str, ...]


class Kind(Enum):
    """The kind of a word in a row."""

    NUMBER = "number"
    REMARK = "remark"
    THING = "thing"
    DESCRIBING = "describing"
    NAME = "name"  # of a maker, a line or a model: every word that is not known here


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
    """Whether people say it about their things, although it may be the name of one: shelf, kids."""
    return not (has_digit(word) or _forms(word).isdisjoint(_words()[Kind.REMARK]))


@lru_cache(maxsize=_CACHED)
def is_worn(word: str) -> bool:
    """Whether it is one of the clothes or shoes."""
    return not _forms(word).isdisjoint(_clothes())


@lru_cache(maxsize=_CACHED)
def synonyms(word: str) -> frozenset[Phrase]:
    return frozenset().union(*(_synonyms().get((form,), ()) for form in _forms(word)))


@lru_cache(maxsize=_CACHED)
def phrases_in(tokens: tuple[str, ...]) -> Mapping[Phrase, frozenset[Phrase]]:
    """Returns phrases of two or three words among these, with their other names."""
    known: dict[Phrase, frozenset[Phrase]] = {}
    for size in range(2, _LONGEST_PHRASE + 1):
        for at in range(len(tokens) - size + 1):
            phrase = tokens[at : at + size]
            for last in _forms(phrase[-1]) if phrase[:-1] in _beginnings() else ():
                if others := _synonyms().get((*phrase[:-1], last)):
                    known[phrase] = known.get(phrase, frozenset()) | others
    return known


@lru_cache(maxsize=_CACHED)
def exclusive_group(word: str) -> str:
    """Returns the kind of property of which a product has only one: the color for black.

    Empty if none."""
    return _groups().get(word) or _groups().get(word.removesuffix("s"), "")


@lru_cache(maxsize=_CACHED)
def is_maker(word: str) -> bool:
    """Whether it is known as the name of a maker, and as nothing else."""
    return word in _makers()


def is_color_of(shade: str, color: str) -> bool:
    """Whether people may call the shade by the name of the color: scarlet red."""
    return color in _colors().get(shade, ())


@lru_cache(maxsize=_CACHED)
def _forms(word: str) -> frozenset[str]:
    """Returns the word with and without the ending of a plural."""
    if len(word) < _SHORTEST_PLURAL:
        return frozenset((word,))
    others = (f"{word[:-3]}y",) if word.endswith("ies") else ()
    return frozenset((word, word.removesuffix("s"), word.removesuffix("es"), f"{word}s", *others))


@cache
def _synonyms() -> Mapping[Phrase, frozenset[Phrase]]:
    pairs: defaultdict[Phrase, set[Phrase]] = defaultdict(set)
    for path in sorted((FOLDER / "synonyms").glob("*.toml")):
        file = word_list(f"synonyms/{path.stem}")
        for said in file.names():
            for name in file.words(said):
                own, other = tuple(tokens_of(said)), tuple(tokens_of(name))
                if own != other:
                    pairs[own].add(other)
                    pairs[other].add(own)
    return {phrase: frozenset(others) for phrase, others in pairs.items()}


@cache
def _beginnings() -> frozenset[Phrase]:
    return frozenset(phrase[:-1] for phrase in _synonyms())


@cache
def _words() -> Mapping[Kind, frozenset[str]]:
    last = {phrase[-1] for phrase in _synonyms()}
    before = {word for phrase in _synonyms() for word in phrase[:-1]}
    describing = _split(word_list("describing").texts("describing").values())
    remarks = _split(word_list("remarks").texts("remarks").values())
    return {
        Kind.THING: _split(word_list("things").texts("things").values())
        | last - STOP_WORDS - describing - remarks,
        Kind.DESCRIBING: describing | frozenset(_groups()) | before,
        Kind.REMARK: remarks,
    }


@cache
def _clothes() -> frozenset[str]:
    things = word_list("things").texts("things")
    return _split((things["clothing"], things["shoes"]))


@cache
def _groups() -> Mapping[str, str]:
    groups = word_list("describing").texts("exclusive").items()
    return {word: group for group, words in groups for word in words.replace(",", " ").split()}


@cache
def _makers() -> frozenset[str]:
    return frozenset(word_list("makers").text("makers").split())


@cache
def _colors() -> Mapping[str, frozenset[str]]:
    """Returns for each shade the colors that people call it."""
    colors: defaultdict[str, set[str]] = defaultdict(set)
    file = word_list("colors")
    for color in file.names():
        for shade in file.words(color):
            colors[tokens_of(shade)[-1]].add(color)
    return {shade: frozenset(names) for shade, names in colors.items()}


def _split(texts: Iterable[str]) -> frozenset[str]:
    lines = (line for text in texts for line in text.splitlines())
    return frozenset(word for line in lines for word in tokens_of(line))
