"""Reads Vietnamese as it is typed: short forms, English letters for sounds, and repeated
letters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

from holdfast_posts.analysis.text import without_marks

#: what is meant -> how it is typed
_FORMS = {
    "không": "ko k kh kg hk hok hông hổng hem khum khôm hong hăm hôg khg kô kg0",
    "được": "dc đc dk đk đx dx đươc đuợc dược",
    "mọi người": "mn mng",
    "bao nhiêu": "bn bnh bnhiu",
    "sản phẩm": "sp",
    "nhân viên": "nv",
    "rồi": "r rùi rầu gòi",
    "với": "vs vz",
    "người": "ng ngừi",
    "gì": "j gj zì rì",
    "vậy": "z v zậy dậy zay vại zị dzậy",
    "quá": "wá wa qá qa quớ quóa",
    "làm": "lm",
    "trước": "trc",
    "như thế nào": "ntn",
    "mình": "mk mik mềnh",
    "giờ": "h",
    "bao giờ": "bh",
    "sử dụng": "sd sdung",
    "điện thoại": "đt",
    "số điện thoại": "sđt sdt",
    "thích": "thik thjk thix",
    "yêu": "iu iêu",
    "biết": "bít bik bjt",
    "buồn": "bùn",
    "inbox": "ib inb ibx",
    "trả lời": "rep reply trl tl",
    "cũng": "cg cx",
    "nhưng": "nhg nhưg",
    "nhưng mà": "nhma nma",
    "bình thường": "bthg bth btg",
    "luôn": "lun",
    "vãi": "vl vcl vkl",
    "thôi": "hoi thoy thui",
    "phải": "fải",
    "phí": "fí",
    "nhắn tin": "nt",
    "nữa": "nx",
    "cảm ơn": "tks thks thanks thank",
    "khuyến mãi": "km",
    "thất vọng": "tv",
}
#: Without marks these are also other words: "hong" is to break.
_OTHER_WORDS = frozenset(("hong", "hoi", "thui", "lun"))


def _by_form() -> dict[str, tuple[str, ...]]:
    return {form: tuple(meant.split()) for meant, forms in _FORMS.items() for form in forms.split()}


_TONED: Mapping[str, tuple[str, ...]] = _by_form()
_TONELESS: Mapping[str, tuple[str, ...]] = {
    form: tuple(map(without_marks, meant))
    for form, meant in _TONED.items()
    if form.isascii() and form not in _OTHER_WORDS
}


def written_out(words: Sequence[str], toneless: bool) -> tuple[str, ...]:
    """Returns the words that are meant."""
    forms = _TONELESS if toneless else _TONED
    if forms.keys().isdisjoint(words) and not any(map(_is_drawn_out, words)):
        return tuple(words)
    spoken = (_without_runs(word) if _is_drawn_out(word) else word for word in words)
    return tuple(chain.from_iterable(forms.get(word, (word,)) for word in spoken))


def _is_drawn_out(word: str) -> bool:
    return len(word) > 2 and word[-1] == word[-2] and not word.isdigit()


def _without_runs(word: str) -> str:
    """Returns the word without the letters at its end that repeat the last letter, with or without
    its mark."""
    last = word[-1]
    stem = word.rstrip(last)
    if stem and without_marks(stem[-1]) == last:
        return stem  # quáaaa
    runs = len(word) - len(stem)
    return word if runs < 3 and word.isascii() else stem + last
