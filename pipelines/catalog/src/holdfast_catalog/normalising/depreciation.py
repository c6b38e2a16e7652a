"""Defines categories of contents and how much of their value is lost, in percent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from holdfast.word_lists import WordList
from holdfast_catalog.normalising.word_files import word_list
from holdfast_catalog.normalising.words import compact, words_of


@dataclass(frozen=True, slots=True)
class Category:
    code: str
    name: str
    percent: int
    words: frozenset[str]


@cache
def categories() -> Sequence[Category]:
    return read_categories(word_list("categories"))


def read_categories(file: WordList) -> Sequence[Category]:
    """Returns the categories in the order in which they are tried; the last fits everything."""
    return [
        Category(
            code,
            file.text(code, "name"),
            int(file.number(code, "percent")),
            frozenset(file.words(code, "words")),
        )
        for code in file.names()
    ]


def depreciation_of(category: str, text: str) -> Category:
    """Returns the given category, or that of the first word of the text that has one."""
    named = compact(category)
    for known in categories():
        if named and named in (compact(known.name), known.code.casefold()):
            return known
    for word in (*words_of(category), *words_of(text)):
        for known in categories():
            if word in known.words:
                return known
    return categories()[-1]


def amount_of(total_minor: int, percent: int) -> int:
    """Returns the amount in minor units, rounded half up."""
    return (total_minor * percent * 2 + 100) // 200
