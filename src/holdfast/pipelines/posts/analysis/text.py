"""Preprocessing: the text of a post, its words, its language, and signs of spam."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from holdfast.text_forms import normal_form

LONGEST = 5_000  # characters that are analysed
_WORD = re.compile(r"[^\W_]+")
_LONG_RUN = re.compile(r"([^\W_])\1{6}")
_VIETNAMESE = frozenset("ăâđêôơưàảãáạằẳẵắặầẩẫấậèẻẽéẹềểễếệìỉĩíịòỏõóọồổỗốộờởỡớợùủũúụừửữứựỳỷỹýỵ")
#: Letters that hardly any other language has.
_ONLY_VIETNAMESE = frozenset("ăđơưảạằẳẵắặầẩẫấậẻẽẹềểễếệỉĩịỏọồổỗốộờởỡớợủũụừửữứựỳỷỹỵ")
_ENGLISH_WORDS = frozenset(
    str.split(
        """
    the is are was were and to of in it this that you i my me we they he she not for with on
    have has had do does did be been so but just very what how when why your their its an at
    from or can will would should could if about more than there here all any some no yes really
    """
    )
)
_TONELESS_WORDS = frozenset(
    str.split(
        """
    khong ko duoc nhung cua minh cho nay voi nguoi qua roi lam thi rat nhieu cung gia mua ban
    hang ship ngon dep xau te oi nhe nha a ma vay sao gi the xe may tot san pham lai den tien
    hoi shop ad toi chua se bi da cam on moi van chi noi biet thich
    mot hai nam nua dang duong nhu khi nao cach xin giup ai het suc phut ngay thang hom nay mai
    day do dau vao ra len xuong di ve nhin thay nghe ngoai trong tren duoi truoc sau chut ay
    cai chiec con nguoi nha cong ty dich vu giao nhan dat dung xai mau phim nhac khach quan chat
    luong gia re dat mac thu tra doi sua loi hong buc minh chan vui buon khoc cuoi muon can phai
    nen dc mn vs ket tai vi neu tuy rang
    """
    )
)
_INVITATIONS = (
    "follow me", "follow back", "f4f", "link in bio", "inbox me", "dm me", "check inbox", "zalo",
    "telegram", "whatsapp", "kiem tien", "kiếm tiền", "viec nhe luong cao", "việc nhẹ lương cao",
    "click link", "bấm link", "nhấn link", "join now", "earn money",
)  # fmt: skip
_MANY_HASHTAGS = 15


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
        """Vietnamese written without its marks."""
        return self.language == "vi" and self.text.isascii()


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
    return tuple(_WORD.findall(text.lower()))


@cache
def _marks_removed(word: str) -> str:
    letters = unicodedata.normalize("NFD", word.replace("đ", "d"))
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


def without_marks(text: str) -> str:
    """Vietnamese as it is written without its marks."""
    return text if text.isascii() else " ".join(map(_marks_removed, text.split(" ")))


def language_of(text: str, words: Sequence[str], hint: str | None = None) -> str | None:
    """By letters and frequent words where they decide; otherwise by a model; else as stated."""
    letters = sum(map(str.isalpha, text))
    if not letters:
        return None
    ascii_only = text.isascii()
    if not ascii_only and _is_vietnamese(text.lower(), letters):
        return "vi"
    english = sum(map(_ENGLISH_WORDS.__contains__, words))
    toneless = sum(map(_TONELESS_WORDS.__contains__, words))
    if ascii_only and toneless > english and toneless >= max(2, len(words) // 4):
        return "vi"
    if english and english >= max(1, len(words) // 8) and (ascii_only or _is_latin(text, letters)):
        return "en"
    return _by_model(text) or _stated(hint)


def _is_vietnamese(lowered: str, letters: int) -> bool:
    if _ONLY_VIETNAMESE.isdisjoint(lowered):
        return False
    return sum(map(_VIETNAMESE.__contains__, lowered)) * 25 >= letters


def _is_latin(text: str, letters: int) -> bool:
    return sum(1 for letter in text if letter.isascii() and letter.isalpha()) * 10 >= letters * 9


_MODEL_FROM_CHARACTERS = 12
_SURE = 0.8


def _by_model(text: str) -> str | None:
    if len(text) < _MODEL_FROM_CHARACTERS:
        return None
    language, probability = _model().classify(text[:500])
    return str(language) if probability >= _SURE else None


@cache
def _model() -> Any:
    """Loaded by the first post that needs it: it takes a second and 60 MB."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def _stated(hint: str | None) -> str | None:
    code = (hint or "").strip().lower().replace("_", "-").partition("-")[0]
    return code if code.isascii() and code.isalpha() and 2 <= len(code) <= 3 else None


def _spam_signals(text: str, words: Sequence[str], hashtags: Sequence[str]) -> list[str]:
    signals = []
    line = f" {' '.join(words)} "
    if any(f" {phrase} " in line for phrase in _INVITATIONS):
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
