"""Finds phrases in a text.

It looks them up by their first word, because most words of a text begin none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class Phrases(Generic[T]):
    """Phrases with the values that they stand for.

    A phrase is words with a space between them; `*` at its end stands for the rest of a word."""

    def __init__(self, pairs: Iterable[tuple[str, T]]) -> None:
        self._by_word: dict[str, list[tuple[str, T]]] = {}
        self._beginnings: list[tuple[str, T]] = []
        for phrase, value in pairs:
            if phrase.endswith("*"):
                self._beginnings.append((f" {phrase[:-1]}", value))
            else:
                word = phrase.partition(" ")[0]
                self._by_word.setdefault(word, []).append((f" {phrase} ", value))

    def found(self, words: Sequence[str]) -> Iterator[tuple[str, T]]:
        """Yields each phrase that is there, once, in the order of the text."""
        line = f" {' '.join(words)} "
        for word in dict.fromkeys(words):
            for phrase, value in self._by_word.get(word, ()):
                if phrase in line:
                    yield phrase[1:-1], value
        for beginning, value in self._beginnings:
            if beginning in line:
                yield beginning[1:], value
