"""Preprocesses a post: its text, its words, its language, and signs of spam."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from holdfast.text_forms import normal_form
from holdfast.word_lists import WordList
from holdfast_posts.analysis.syllables import is_syllable
from holdfast_posts.analysis.word_files import phrases_in, word_list

LONGEST = 5_000  # how many characters are analysed
WORD = re.compile(r"[^\W_]+")
_LONG_RUN = re.compile(r"([^\W_])\1{6}")
_VIETNAMESE = frozenset("ăâđêôơưàảãáạằẳẵắặầẩẫấậèẻẽéẹềểễếệìỉĩíịòỏõóọồổỗốộờởỡớợùủũúụừửữứựỳỷỹýỵ")
#: Letters that hardly any other language uses.
_ONLY_VIETNAMESE = frozenset("ăđơưảạằẳẵắặầẩẫấậẻẽẹềểễếệỉĩịỏọồổỗốộờởỡớợủũụừửữứựỳỷỹỵ")
_MANY_HASHTAGS = 15
#: Shares of the words of a post; for English posts, half at most.
_SYLLABLES = 0.62


@dataclass(frozen=True, slots=True)
class LanguageWords:
    """`english` words are frequent in no other language that posts are written in;
    `typed_vietnamese` ones are no syllables; `invitations` are what spam asks its readers to do."""

    english: frozenset[str]
    typed_vietnamese: frozenset[str]
    invitations: Sequence[str]

    @classmethod
    def read(cls, file: WordList) -> LanguageWords:
        return cls(
            frozenset(phrases_in(file, "english")),
            frozenset(phrases_in(file, "typed_vietnamese")),
            phrases_in(file, "invitations"),
        )


@cache
def _known() -> LanguageWords:
    return LanguageWords.read(word_list("languages"))


@dataclass(frozen=True, slots=True)
class Prepared:
    """The text of a post, as the other steps read it."""

    text: str  # composed, without control characters, spaces folded
    words: tuple[str, ...]
    language: str | None  # en, vi, or another code; None: not known
    spam_signals: tuple[str, ...]
    truncated: bool = False

    @property
    def line(self) -> str:
        """The words with a space before and after each, to search for phrases."""
        return f" {' '.join(self.words)} "

    @property
    def toneless(self) -> bool:
        """Whether it is Vietnamese written without its marks."""
        return self.language == "vi" and is_toneless(self.text)


def prepare(text: str | None, hashtags: Sequence[str] = (), hint: str | None = None) -> Prepared:
    whole = text or ""
    cleaned = clean(whole[:LONGEST])
    words = words_of(cleaned)
    return Prepared(
        cleaned,
        words,
        language_of(cleaned, words, hint),
        tuple(_spam_signals(cleaned, words, hashtags)),
        len(whole) > LONGEST,
    )


def clean(text: str) -> str:
    composed = normal_form("NFC", text)
    if not composed.isprintable():
        composed = "".join(" " if _is_control(letter) else letter for letter in composed)
    return " ".join(composed.split())


def _is_control(letter: str) -> bool:
    # The joiner is part of emoji.
    return letter != "\u200d" and unicodedata.category(letter) in ("Cc", "Cf", "Zl", "Zp", "Zs")


def words_of(text: str) -> tuple[str, ...]:
    return tuple(WORD.findall(text.lower()))


@lru_cache(8192)  # cached across posts, whose words are endless
def _marks_removed(word: str) -> str:
    letters = unicodedata.normalize("NFD", word.replace("đ", "d"))
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


def without_marks(text: str) -> str:
    """Returns Vietnamese as it is written without its marks."""
    return text if text.isascii() else " ".join(map(_marks_removed, text.split(" ")))


def language_of(text: str, words: Sequence[str], hint: str | None = None) -> str | None:
    """Returns the language by letters and frequent words if they decide; otherwise by a model; else
    as stated."""
    letters = sum(map(str.isalpha, text))
    if not letters:
        return None
    ascii_only = text.isascii()
    if not ascii_only and _is_vietnamese(text.lower(), letters):
        return "vi"
    english = sum(map(_known().english.__contains__, words))
    if not is_toneless(text):
        words = [without_marks(word) for word in words]
    if _reads_as_vietnamese(words, english):
        return "vi"
    if english and english >= max(1, len(words) // 8) and (ascii_only or _is_latin(text, letters)):
        return "en"
    return _by_model(text) or _stated(hint)


def is_toneless(text: str) -> bool:
    return text.isascii() or _VIETNAMESE.isdisjoint(text.lower())


def _reads_as_vietnamese(words: Sequence[str], english: int) -> bool:
    """Whether most words have the form of Vietnamese syllables."""
    known = _known()
    spoken = [word for word in words if not word.isdigit()]
    fitting = sum(
        (word in known.typed_vietnamese or is_syllable(word)) and word not in known.english
        for word in spoken
    )
    return fitting > english and fitting >= max(2, len(spoken) * _SYLLABLES)


def _is_vietnamese(lowered: str, letters: int) -> bool:
    if _ONLY_VIETNAMESE.isdisjoint(lowered):
        return False
    return sum(map(_VIETNAMESE.__contains__, lowered)) * 25 >= letters


def _is_latin(text: str, letters: int) -> bool:
    return sum(1 for letter in text if letter.isascii() and letter.isalpha()) * 10 >= letters * 9


_MODEL_FROM_CHARACTERS = 12
_SURE, _LIKELY = 0.8, 0.3


def _by_model(text: str) -> str | None:
    if len(text) < _MODEL_FROM_CHARACTERS:
        return None
    language, probability = _model().classify(text[:500])
    # Short English posts have words of many languages, and hardly any other post is all ASCII.
    needed = _LIKELY if language == "en" and text.isascii() else _SURE
    return str(language) if probability >= needed else None


@cache
def _model() -> Any:
    """Returns the model, loaded by the first post that needs it: it takes a second and 60 MB."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def _stated(hint: str | None) -> str | None:
    code = (hint or "").strip().lower().replace("_", "-").partition("-")[0]
    return code if code.isascii() and code.isalpha() and 2 <= len(code) <= 3 else None


def _spam_signals(text: str, words: Sequence[str], hashtags: Sequence[str]) -> list[str]:
    signals = []
    line = f" {' '.join(words)} "
    if any(f" {phrase} " in line for phrase in _known().invitations):
        signals.append("invitation")
    if text.count("http://") + text.count("https://") >= 2:
        signals.append("links")
    if len(hashtags) + text.count("#") > _MANY_HASHTAGS:
        signals.append("hashtags")
    if _LONG_RUN.search(text):
        signals.append("repeated_letters")
    if len(words) >= 8 and Counter(words).most_common(1)[0][1] * 2 > len(words):
        signals.append("repeated_words")
    if len(text) >= 30 and sum(map(str.isupper, text)) * 10 > len(text) * 7:
        signals.append("capitals")
    if _has_phone_number(words):
        signals.append("phone_number")
    return signals


def _has_phone_number(words: Sequence[str]) -> bool:
    return any(
        word.isascii() and word.isdigit() and 9 <= len(word) <= 12 and word[0] == "0"
        for word in words
    )
