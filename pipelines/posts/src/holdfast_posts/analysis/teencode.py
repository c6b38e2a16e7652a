"""Reads Vietnamese as it is typed: short forms, English letters for sounds, and repeated
letters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain

from holdfast.word_lists import WordList
from holdfast_posts.analysis.text import without_marks
from holdfast_posts.analysis.word_files import phrases_in, word_list


@dataclass(frozen=True, slots=True)
class Teencode:
    """The words that each short form means. Some forms without marks are also other words."""

    meanings: Mapping[str, tuple[str, ...]]
    other_words: frozenset[str]

    @classmethod
    def read(cls, file: WordList) -> Teencode:
        for meaning in file.names("forms"):
            phrases_in(file, "forms", meaning)
        meanings = {form: tuple(words.split()) for form, words in file.by_word("forms").items()}
        return cls(meanings, frozenset(phrases_in(file, "other_words_without_marks")))


@cache
def _forms(toneless: bool) -> Mapping[str, tuple[str, ...]]:
    known = Teencode.read(word_list("teencode"))
    if not toneless:
        return known.meanings
    return {
        form: tuple(map(without_marks, words))
        for form, words in known.meanings.items()
        if form.isascii() and form not in known.other_words
    }


def written_out(words: Sequence[str], toneless: bool) -> tuple[str, ...]:
    """Returns the words that are meant."""
    forms = _forms(toneless)
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
