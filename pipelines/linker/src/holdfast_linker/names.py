"""Makes names comparable: cleaned for showing, folded for comparing."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from anyascii import anyascii
from rapidfuzz import fuzz

from holdfast.text_forms import normal_form

#: Wikidata accepts no longer labels, so nothing longer can be equal to one.
NAME_CHARACTERS = 250

_SPACE = re.compile(r"\s+")
_NOT_WORD = re.compile(r"[^0-9a-z]+")
# Characters inside a word: "O'Brien" and "OBrien" are one name, "Jean-Paul" is two words.
_INSIDE_WORDS = re.compile("['`´’‘ʻʼʹʺ\"]+")
_JOINERS = "\u200c\u200d"  # they change how Persian and Indian words look
_REPLACEMENT = "\ufffd"

#: The most likely language for a script's letters, by their Unicode names.
_LANGUAGES = {
    "CYRILLIC": "ru",
    "ARABIC": "ar",
    "HEBREW": "he",
    "CJK": "zh",
    "HIRAGANA": "ja",
    "KATAKANA": "ja",
    "HANGUL": "ko",
    "GREEK": "el",
    "DEVANAGARI": "hi",
    "BENGALI": "bn",
    "TAMIL": "ta",
    "THAI": "th",
    "GEORGIAN": "ka",
    "ARMENIAN": "hy",
}


def clean(text: str) -> str:
    """Returns the text in composed form, without control and direction marks, on one line."""
    composed = normal_form("NFC", text)
    if not composed.isascii() or not composed.isprintable():
        composed = "".join(map(_visible, composed))
    return _SPACE.sub(" ", composed).strip()


def cut(text: str, characters: int = NAME_CHARACTERS) -> str:
    """Returns the beginning of the text, not ending between a letter and its marks."""
    if len(text) <= characters:
        return text
    end = characters
    while end > 0 and unicodedata.combining(text[end]):
        end -= 1
    return text[:end].rstrip()


def _visible(character: str) -> str:
    category = unicodedata.category(character)
    if category in ("Zs", "Zl", "Zp") or character in "\t\n\v\f\r\x85":
        return " "
    if category == "Cs":
        return _REPLACEMENT
    if category == "Cc" or (category == "Cf" and character not in _JOINERS):
        return ""
    return character


@lru_cache(maxsize=16_384)
def fold(text: str) -> str:
    """Returns Latin words in lower case without marks, for comparing only.

    The result is empty if nothing of the text can be written so."""
    plain = normal_form("NFKC", text).casefold()
    latin = anyascii(_INSIDE_WORDS.sub("", plain)).lower()
    return _NOT_WORD.sub(" ", _INSIDE_WORDS.sub("", latin)).strip()


def likeness(left: str, right: str) -> float:
    """Returns how alike two names are, 0 to 100, whatever their script and the order of their
    words.

    Whole names are compared, never parts: "Ann" is not "Ann Arbor". Scripts that write no spaces
    are compared without them."""
    first, second = fold(left), fold(right)
    if not first or not second:
        return 100.0 if left.casefold() == right.casefold() else 0.0
    if first == second:
        return 100.0
    ordered = fuzz.token_sort_ratio(first, second)
    joined = fuzz.ratio(first.replace(" ", ""), second.replace(" ", ""))
    return float(max(ordered, joined))


def language_of(text: str, default: str) -> str:
    """Returns the language to search in: by the script of most letters, else the default."""
    counts: dict[str, int] = {}
    for character in text:
        if character.isascii() or not character.isalpha():
            continue
        script = unicodedata.name(character, "").split(" ", 1)[0].split("-", 1)[0]
        language = _LANGUAGES.get(script)
        if language:
            counts[language] = counts.get(language, 0) + 1
    if "ja" in counts and "zh" in counts:
        return "ja"  # kana distinguish Japanese from Chinese
    return max(counts, key=lambda language: counts[language]) if counts else default


def spoken_order(name: str) -> str:
    """Returns "Adams, Douglas" as "Douglas Adams"; other names unchanged."""
    family, comma, given = name.partition(",")
    if comma and given.strip() and "," not in given:
        return f"{given.strip()} {family.strip()}"
    return name


def latin_form(name: str) -> str:
    """Returns the name in Latin letters, for searching; the name itself if it has those already."""
    return name if name.isascii() else _SPACE.sub(" ", anyascii(name)).strip()
