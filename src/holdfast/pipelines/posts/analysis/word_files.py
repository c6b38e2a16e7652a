"""Opens the word lists of the analysis, which are in `words/`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from holdfast.word_lists import WordList

_FOLDER = Path(__file__).with_name("words")
_PHRASE = re.compile(r"[^\W_]+(?: [^\W_]+)*\*?")


@cache
def word_list(name: str) -> WordList:
    return WordList(_FOLDER / f"{name}.toml")


def phrases_in(file: WordList, *path: str) -> Sequence[str]:
    """The phrases of a value. Raises if one can never be found among the words of a post."""
    phrases = file.words(*path)
    for phrase in phrases:
        require_phrase(file, phrase, *path)
    return phrases


def require_phrase(file: WordList, phrase: str, *path: str) -> None:
    if not _PHRASE.fullmatch(phrase) or phrase != phrase.lower():
        raise file.mistake(
            f"{phrase!r} is never found in a post",
            *path,
            word=phrase,
            hint="Write small letters and digits, with a space in place of all else: can t.",
        )
