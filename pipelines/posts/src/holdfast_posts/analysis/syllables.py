"""Decides whether a word can be Vietnamese that is written without its marks.

A Vietnamese syllable is one of few beginnings and one of few rhymes; most English words are not.
"""

from __future__ import annotations

from functools import cache, lru_cache

from holdfast_posts.analysis.word_files import phrases_in, word_list


@cache
def _parts() -> tuple[frozenset[str], frozenset[str]]:
    file = word_list("languages")
    beginnings = phrases_in(file, "syllables", "beginnings")
    return frozenset(("", *beginnings)), frozenset(phrases_in(file, "syllables", "rhymes"))


@lru_cache(4096)
def is_syllable(word: str) -> bool:
    beginnings, rhymes = _parts()
    return any(
        word[:length] in beginnings and word[length:] in rhymes
        for length in range(min(4, len(word)))
    )
