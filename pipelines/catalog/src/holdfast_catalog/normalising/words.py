"""Splits titles and descriptions into words, as they are compared and searched for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from typing import Any

from holdfast.text_forms import normal_form
from holdfast_catalog.normalising.fractions import as_decimals, split_fraction
from holdfast_catalog.normalising.units import is_number, spelled_alike, unit_of
from holdfast_catalog.normalising.word_files import word_list

_LONGEST = 2000
_MOST_WORDS = 60
_CACHED = 8192  # the same offers come for many rows
#: Words that say nothing about which product it is.
STOP_WORDS = frozenset(
    ["a", "an", "and", "the", "of", "for", "with", "in", "on", "by", "to", "or", "from", "new",
     "item", "pc", "pcs", "piece", "pieces", "set", "\u00d7", "each", "approx", "brand", "model",
     "single"]
)  # fmt: skip
#: "x" between numbers; elsewhere it is a name: Series X.
TIMES = "\u00d7"
_NUMERALS = {"iii": "3", "ii": "2", "iv": "4"}
_JOINTS = frozenset("-/._+")
_MARKS = (
    (" x-large", " xl"), (" extra large", " xl"), (" extra-large", " xl"), (" xx-large", " xxl"),
    (" w/o ", " without "), (" w/", " with "), ("''", " in "), ('"', " in "), ("\u201d", " in "),
    ("\u2033", " in "), ("\u2032", "'"), ("\u2044", "/"), ("\u2019", "'"), ("&", " and "),
    ("\u00d7", " x "), (" s/s ", " stainless "),
)  # fmt: skip
_SHORTEST_JOINED = 4
_ORDINALS = frozenset(("st", "nd", "rd", "th"))
_PRINTING = frozenset(("ink", "inks", "toner", "cartridge", "cartridges", "printer", "laser"))
#: In carats of gold, k does not mean a thousand.
_CARATS = frozenset(("10", "14", "18", "22", "24"))


def text_of(value: Any) -> str:
    """Returns the value on one line without control characters."""
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return " ".join(str(value)[:_LONGEST].replace("\0", " ").split())


def tokens_of(text: str) -> list[str]:
    """Returns all words in order.

    Marks are removed: Nestlé is nestle. A number is separated from its unit, however they are
    written: 128GB and 128 gb are the same two words."""
    parts = [part for word in _spaced(text).split() for part in _parts(word)]
    split = [part.removesuffix(".0") if is_number(part) else part for part in parts]  # 5.0 Ah
    return list(_fluid(spelled_alike(_named_alike(_with_times(as_decimals(split))))))


def words_of(text: str) -> list[str]:
    """Returns the words, each once."""
    return list(dict.fromkeys(tokens_of(text)))[:_MOST_WORDS]


@lru_cache(maxsize=_CACHED)
def telling_words(text: str) -> tuple[str, ...]:
    return tuple(word for word in words_of(text) if word not in STOP_WORDS)


def joined_words(text: str) -> list[str]:
    """Returns words that people write with and without joints, as written: ET-2850 is also et2850.

    A plus at the end is a word, not a joint."""
    words = (word for word in text[:_LONGEST].split() if not word.endswith("+"))
    joined = (word for word in words if _JOINTS & set(word.strip("-")))
    known = {compact(word): word for word in joined}
    return [word for short, word in known.items() if len(short) >= _SHORTEST_JOINED][:_MOST_WORDS]


@lru_cache(maxsize=_CACHED)
def compact(text: str) -> str:
    """Returns letters and digits alone, as model numbers are compared."""
    folded = normal_form("NFKD", text[:_LONGEST]).casefold()
    return "".join(character for character in folded if character.isalnum())


@lru_cache(maxsize=_CACHED)
def has_digit(word: str) -> bool:
    return any(map(str.isdigit, word))


def _spaced(text: str) -> str:
    """Returns the text with spaces for everything that is not a letter, a digit, or a point within
    a number."""
    folded = normal_form("NFKD", f" {text[:_LONGEST]}").casefold()
    for written, meant in _MARKS:
        folded = folded.replace(written, meant)
    return "".join(_kept(folded, at) for at in range(len(folded)))


def _kept(text: str, at: int) -> str:
    character = text[at]
    if character.isalnum():
        return character
    before, after = text[at - 1 : at] if at else "", text[at + 1 : at + 2]
    if character == "," and _is_enumerated(text, at):
        return " "
    if character in ".," and before.isdecimal() and after.isdecimal():
        is_thousands = character == "," and _digits_at(text, at + 1) == 3
        return "" if is_thousands else "."
    if character == "." and after.isdecimal() and not before.isalnum():
        return "0."  # .7 mm
    if character == "/" and before.isdecimal() and after.isdecimal():
        return character
    if character == "/" and before == "f" and after.isdecimal() and _begins_word(text, at - 1):
        return ""  # f/1.8
    if character == "'":
        return " ft " if before.isdecimal() and not after.isalpha() else ""
    if character == "+" and before.isalnum() and not after.isalnum():
        return " plus "
    return "" if "\u0300" <= character <= "\u036f" else " "


def _begins_word(text: str, at: int) -> bool:
    return not text[at - 1 : at].isalnum()


def _is_enumerated(text: str, at: int) -> bool:
    """Whether the comma separates numbers: 1,2,4 are three."""
    before, after = text[max(at - 2, 0) : at], text[at + 1 : at + 3]
    is_last = before[:1] == "," and before[1:].isdecimal() and after[:1].isdecimal()
    return is_last or (after[1:] == "," and after[:1].isdecimal() and before[-1:].isdecimal())


def _digits_at(text: str, at: int) -> int:
    count = 0
    while count < 4 and text[at + count : at + count + 1].isdecimal():
        count += 1
    return count


def _parts(word: str) -> Iterator[str]:
    """Yields the parts of a word: 77x147 is two numbers, 128gb a number and its unit, f1.8 an
    aperture, 1/2 a fraction."""
    if "/" in word:
        for part in split_fraction(word):
            yield from [part] if "/" in part else _parts(part)
        return
    if word[:1] == "f" and "." in word and is_number(word[1:].rstrip("l")):
        word = word[1:].rstrip("l")  # f/2.8L is an aperture of a line of lenses, not a volume
    if "." in word:  # XC5.0
        name = word.rstrip("0123456789.")
        if name.isalpha() and is_number(word[len(name) :]):
            yield name
            word = word[len(name) :]
    if word.startswith("sz") and word[2:].isdecimal():
        yield "size"
        word = word[2:]
    if word[-2:] in _ORDINALS and word[:-2].isdecimal():
        word = word[:-2]  # 3rd generation, gen 3
    numeral = next((end for end in _NUMERALS if word.endswith(end)), "")
    if numeral and word[: -len(numeral)][-1:].isdecimal():  # a7iii
        yield from (word[: -len(numeral)], numeral)
        return
    pieces = word.split("x")
    if "x" in word and all(_is_size(piece) for piece in pieces if piece) and has_digit(word):
        for number, piece in enumerate(filter(None, pieces)):
            if number or not word.split("x")[0]:
                yield TIMES
            yield from _with_unit(piece)
    else:
        yield from _with_unit(word)


def _is_size(piece: str) -> bool:
    """Whether the piece is a number, or one with a unit."""
    number = piece.rstrip("abcdefghijklmnopqrstuvwxyz")
    unit = piece[len(number) :]
    return is_number(number) and (not unit or unit_of(unit) is not None)


def _with_unit(word: str) -> Iterator[str]:
    number = word.rstrip("abcdefghijklmnopqrstuvwxyz")
    unit = word[len(number) :]
    if unit == "k" and len(number) > 1 and number.isdecimal() and number not in _CARATS:
        number, unit, word = "", "", f"{number}000"  # 15k; 4k is a resolution
    is_model = unit == "t" and len(number) == 1  # 5T is a telephone, 51T a gear
    if unit and is_number(number) and unit_of(unit) and not is_model:
        yield number
        yield unit
    else:
        yield word


@cache
def _same_words() -> Mapping[str, str]:
    """Returns each spelling of a word, with the words that it is read as."""
    return word_list("spellings").by_word("same")


def _named_alike(words: Iterable[str]) -> Iterator[str]:
    """Drops "color", because a colour is named by itself: the word matters only if it is one of the
    colours, or says what prints: color ink."""
    before, waiting, same = "", False, _same_words()
    for word in words:
        name = _NUMERALS.get(word, same.get(word, word))
        if waiting and name in _PRINTING:
            yield "color"
        waiting = name == "color" and before != "and"
        if not waiting:
            yield from name.split()
        before = word


def _fluid(words: Iterable[str]) -> Iterator[str]:
    """Yields units without "fl": 12 fl oz are 12 oz, because what a unit measures is beside it."""
    held = ""
    for word in words:
        if held and word != "oz":
            yield held
        held = word if word in ("fl", "fluid") else ""
        if not held:
            yield word
    if held:
        yield held


def _with_times(words: Iterable[str]) -> Iterator[str]:
    """Marks an x that follows a number: 3 x 500 ml."""
    before = ""
    for word in words:
        yield TIMES if word == "x" and is_number(before) else word
        before = word
