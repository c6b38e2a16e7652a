"""Decides whether a title has a word of a row, however the two write it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from string import ascii_lowercase, digits

from holdfast_catalog.normalising.vocabulary import (
    COLOR,
    Kind,
    Phrase,
    exclusive_group,
    is_color_of,
    kind_of,
    phrases_in,
    synonyms,
)
from holdfast_catalog.normalising.wording import Wording
from holdfast_catalog.normalising.words import compact, has_digit
from holdfast_catalog.variants import begins_code

_SHORTEST_MODEL = 3
_SHORTEST_PREFIX = 3
_SHORTEST_STEM = 4
_LONGEST_INITIALS = 5
_DIGITS_OF_ROUND = 4
_ROUNDED = 0.02
_LONGEST_NAME = 3
_SHORTEST_NAME = 6
_SHORTEST_MISSPELT = 5
_CACHED_WORDS = 8192
_CACHED_PAIRS = 65536
_LETTER_SIZES = {
    "s": "small", "m": "medium", "l": "large", "small": "s", "medium": "m", "large": "l",
}  # fmt: skip
#: What titles say instead of a number of parts.
_NUMBER_NAMES = {"1": ("single", "one"), "2": ("double", "dual", "twin"), "3": ("triple", "tri")}
_VOWELS = frozenset("aeiou")
_ENDINGS = ("able", "ings", "ing", "ers", "er", "ors", "or", "es", "ed", "s", "e")
#: Letters that sound alike.
_SOUNDS = (
    ("ght", "t"), ("ph", "f"), ("ck", "k"), ("qu", "k"), ("q", "k"), ("c", "k"), ("z", "s"),
    ("y", "i"),
)  # fmt: skip
#: First letters that sound alike.
_STARTS = {"c": "ckq", "k": "ckq", "q": "ckq", "f": "fp", "p": "fp", "s": "sz", "z": "sz"}
_SERIES = frozenset(("series", "gen", "generation", "mark", "mk", "version"))


def missing_words(wanted: Wording, offered: Wording) -> frozenset[str]:
    """Returns the words of a row that a title does not have, under any name."""
    joined = wanted.covered(offered) | _joined(wanted.tokens, offered)
    missing = {
        word
        for word in wanted.words
        if not (word in joined or occurs(word, wanted, offered) or wanted.has_size(word, offered))
        and not (word in ("pack", "count") and offered.pack)
    }
    if not (offered.worn or offered.has_bare_number):
        missing.difference_update(wanted.worn)
    if not missing:
        return frozenset()
    missing = {word for word in missing if not shades_of(word, offered)}
    for phrase, names in phrases_in(tuple(wanted.tokens)).items():
        if not missing.isdisjoint(phrase) and _has_any(names, offered):
            missing.difference_update(phrase)
    return frozenset(word for word in missing if not _has_any(synonyms(word), offered))


def shades_of(word: str, offered: Wording) -> frozenset[str]:
    """Returns the words of a title that people may call by the name of this color."""
    if exclusive_group(word) != COLOR:
        return frozenset()
    return frozenset(other for other in offered.words if is_color_of(other, word))


def _joined(tokens: Sequence[str], offered: Wording) -> frozenset[str]:
    """Returns words that the title writes as one: paper white, night stand."""
    words = offered.words
    pairs = [
        pair
        for pair in pairwise(tokens)
        if (joined := "".join(pair)) in words or joined.removesuffix("s") in words
    ]
    return frozenset(word for pair in pairs for word in pair)


def _has_any(names: Iterable[Phrase], offered: Wording) -> bool:
    return any(all(map(offered.has, name)) for name in names)


def in_any(word: str, wanted: Wording, titles: Iterable[Wording]) -> bool:
    """Whether one of the titles has the word, under any name."""
    names = synonyms(word)
    return any(occurs(word, wanted, title) or _has_any(names, title) for title in titles)


def occurs(word: str, wanted: Wording, offered: Wording) -> bool:
    """Whether the title has the word; within a longer word only if it is not a number."""
    if offered.has(word) or word in offered.years or offered.has(word.removesuffix("s")):
        return True
    if word.endswith("ies") and offered.has(f"{word[:-3]}y"):
        return True
    if has_digit(word):
        return any(map(offered.tokens.__contains__, _NUMBER_NAMES.get(word, ()))) or (
            _is_abbreviated_number(word, offered)
            or _is_acronym(word, offered.tokens)
            or _is_rounded(word, offered)
        )
    if word in _LETTER_SIZES:
        return _LETTER_SIZES[word] in offered.words
    if len(word) == 1:
        return False
    if _are_initials(word, offered.initials):
        return True
    if len(word) <= _SHORTEST_MODEL:
        return len(word) == _SHORTEST_PREFIX and any(_is_short_for(word, o) for o in offered.words)
    if _is_within(word, wanted, offered) or _is_compound(word, offered):
        return True
    starts = _STARTS.get(word[0], word[0])
    return any(_is_alike(word, other) for other in offered.words if other[0] in starts)


@lru_cache(maxsize=_CACHED_PAIRS)
def _is_alike(word: str, other: str) -> bool:
    return (
        is_misspelt(word, other)
        or is_misspelt(word.removesuffix("s"), other.removesuffix("s"))
        or _is_short_for(word, other)
        or has_same_stem(word, other)
        or _sound(word) == _sound(other)
    )


def _is_compound(word: str, offered: Wording) -> bool:
    """Whether the title writes the word's parts apart, perhaps with others between: firestick."""
    words = offered.words
    return any(
        word[:at] in words and (word[at:] in words or word[at:].removesuffix("s") in words)
        for at in range(_SHORTEST_PREFIX, len(word) - _SHORTEST_PREFIX + 1)
    )


def _is_within(word: str, wanted: Wording, offered: Wording) -> bool:
    """Whether the word is written apart there, or at the start of a word, or as its end if the list
    has the rest: maker of coffeemaker; not style of freestyle."""
    if word not in offered.text:
        return False
    holders = [other for other in offered.words if word in other]
    return not holders or any(
        _begins_compound(word, other) or wanted.has(other.removesuffix(word)) for other in holders
    )


def _begins_compound(word: str, other: str) -> bool:
    """Whether the word begins the compound: coffee of coffeemaker, but not stand of standard.

    A name may be cut anywhere."""
    rest = other.removeprefix(word)
    if rest == other:
        return False
    return kind_of(word) is Kind.NAME or rest in _ENDINGS or kind_of(rest) is not Kind.NAME


def _is_abbreviated_number(word: str, offered: Wording) -> bool:
    """Whether the word abbreviates a number: 18pc is 18 piece, 60t is 60 tooth, s9 is series 9;
    DCD996 is DCD996B."""
    if any(begins_code(word, other) or _ends_code(word, other) for other in offered.words):
        return True
    if any(begins_code(word, other) for other in offered.joins):
        return True
    number = word.rstrip(ascii_lowercase)
    unit, name = word[len(number) :], word.rstrip(digits)
    for before, first, second in zip(
        ("", *offered.tokens), offered.tokens, offered.tokens[1:], strict=False
    ):
        if unit and first == number and second.isalpha() and _begins_with(unit, second):
            return True
        is_name = first.startswith(name) or before == name  # s9 is series 9, io7 is iO series 7
        if first in _SERIES and name + second == word and is_name:
            return True
    return False


def _is_rounded(word: str, offered: Wording) -> bool:
    """Whether the word rounds a number: 7500 pieces are 7541."""
    if not (word.isdecimal() and len(word) >= _DIGITS_OF_ROUND and word.endswith("00")):
        return False
    number = int(word)
    return any(
        token.isdecimal() and abs(int(token) - number) <= _ROUNDED * number
        for token in offered.tokens
    )


def _ends_code(word: str, other: str) -> bool:
    """Whether the word ends the code: XM5 is WH-1000XM5, 12 is HERO12."""
    if not other.endswith(word) or len(other) == len(word):
        return False
    if word.isdecimal():
        return len(word) > 1 and other.removesuffix(word).isalpha()
    return len(word) >= _SHORTEST_MODEL and word[0].isalpha()


def _begins_with(unit: str, word: str) -> bool:
    return word.startswith(unit) or (len(unit) > 1 and word[0] == unit[0] and unit[1] in word)


def _is_short_for(word: str, other: str) -> bool:
    """Whether the word shortens the other: gen is generation; a word without vowels leaves them
    out: stnls."""
    if not (word.isalpha() and len(other) > len(word)):
        return False
    if other.startswith(word):
        return kind_of(word) is not Kind.THING
    if _VOWELS & set(word) or word[0] != other[0]:
        return False
    rest = iter(other)
    return all(letter in rest for letter in word)


def _is_acronym(word: str, tokens: Sequence[str]) -> bool:
    """Whether the word is an acronym: gp5000 is Grand Prix 5000."""
    letters = word.rstrip(digits)
    if not (len(letters) > 1 and letters.isalpha() and len(letters) < len(word)):
        return False
    number, size = word[len(letters) :], len(letters)
    return any(
        tokens[at] == number and "".join(token[0] for token in tokens[at - size : at]) == letters
        for at in range(size, len(tokens))
    )


def _are_initials(word: str, initials: str) -> bool:
    """Whether the word consists of initials: lotr is Lord of the Rings."""
    return _SHORTEST_PREFIX <= len(word) <= _LONGEST_INITIALS and word in initials


def has_same_stem(word: str, other: str) -> bool:
    """Whether the stems are the same: pruner and pruning, measure and measuring, liners and
    liner."""
    if word[0] != other[0]:
        return False
    if _stem_of_plural(word) == _stem_of_plural(other):
        return True
    stem = _stem(word)
    return len(stem) >= _SHORTEST_STEM and stem == _stem(other)


def _stem_of_plural(word: str) -> str:
    return word[:-1] if len(word) > _SHORTEST_PREFIX and word[-1] == "s" else word


@lru_cache(maxsize=_CACHED_WORDS)
def _stem(word: str) -> str:
    if not word.isalpha():
        return ""
    for ending in _ENDINGS:
        if word.endswith(ending):
            return word.removesuffix(ending)
    return word


@lru_cache(maxsize=_CACHED_WORDS)
def _sound(word: str) -> str:
    """Returns a text that is the same for words that sound alike: light and lite, fryer and
    frier."""
    for written, spoken in _SOUNDS:
        word = word.replace(written, spoken)
    kept = (letter for letter, before in zip(word, f" {word}", strict=False) if letter != before)
    return "".join(kept).removesuffix("e")


def with_names_as_written(text: str, names: Mapping[str, str]) -> str:
    """Returns the text with names, compared by their letters alone, as they are written
    elsewhere."""
    words = text.split()
    short = [compact(word) for word in words]
    at = 0
    while at < len(words):
        for size in range(1, min(_LONGEST_NAME, len(words) - at) + 1):
            joined = "".join(short[at : at + size])
            name = names.get(joined) or (_like_name(joined, names) if size == 1 else None)
            if name:
                end = words[at + size - 1][len(words[at + size - 1].rstrip(",;.")) :]
                words[at : at + size] = [name + end]
                short[at : at + size] = [joined]
                break
        at += 1
    return " ".join(words)


def _like_name(word: str, names: Mapping[str, str]) -> str | None:
    if len(word) < _SHORTEST_NAME or kind_of(word) is not Kind.NAME:
        return None
    return next((name for short, name in names.items() if is_misspelt(word, short)), None)


def is_misspelt(word: str, other: str) -> bool:
    """Whether one letter is wrong, missing or too many, or two have changed places."""
    if len(word) < _SHORTEST_MISSPELT or abs(len(word) - len(other)) > 1 or word[0] != other[0]:
        return False
    at = next((at for at, (a, b) in enumerate(zip(word, other, strict=False)) if a != b), None)
    if at is None:
        return True
    a, b = word[at:], other[at:]
    return a[1:] == b[1:] or a[1:] == b or a == b[1:] or (a[:2] == b[1::-1] and a[2:] == b[2:])
