"""The words of feeling, English and Vietnamese, with their weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from holdfast.word_lists import WordList
from holdfast_posts.analysis.word_files import phrases_in, word_list


@dataclass(frozen=True, slots=True)
class EnglishWords:
    """What VADER does not know. `emoji` has the word that each is read as."""

    words: Mapping[str, float]
    phrases: Mapping[str, float]
    no_feeling: frozenset[str]
    emoji: Mapping[str, str]

    @classmethod
    def read(cls, file: WordList) -> EnglishWords:
        return cls(
            file.weights("words"),
            _weighed_phrases(file, "phrases"),
            frozenset(file.words("no_feeling")),
            file.by_word("emoji"),
        )


@dataclass(frozen=True, slots=True)
class VietnameseWords:
    """`before` and `after` have factors for the word of feeling that follows or precedes."""

    feelings: Mapping[str, float]
    before: Mapping[str, float]
    after: Mapping[str, float]
    turns: Mapping[str, float]
    emoji: Mapping[str, float]
    emoticons: Mapping[str, float]
    negators: frozenset[str]
    clear_without_marks: frozenset[str]

    @classmethod
    def read(cls, file: WordList) -> VietnameseWords:
        return cls(
            _weighed_phrases(file, "feelings"),
            _weighed_phrases(file, "before"),
            _weighed_phrases(file, "after"),
            dict.fromkeys(phrases_in(file, "turns"), 1.0),
            file.weights("emoji"),
            file.weights("emoticons"),
            frozenset(phrases_in(file, "negators")),
            frozenset(phrases_in(file, "clear_without_marks")),
        )


def _weighed_phrases(file: WordList, table: str) -> Mapping[str, float]:
    for name in file.names(table):
        phrases_in(file, table, name)
    return file.weights(table)


@cache
def english_words() -> EnglishWords:
    return EnglishWords.read(word_list("english"))


@cache
def vietnamese_words() -> VietnameseWords:
    return VietnameseWords.read(word_list("vietnamese"))
