"""Opens the word lists of the analysis, which are in `words/`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from holdfast.word_lists import WordList

_FOLDER = Path(__file__).with_name("words")
_PHRASE = re.compile(r"[^\W_]+(?: [^\W_]+)*\*?")

_HINT = "Write small letters and digits, with a space in place of all else: can t."


@cache
def word_list(name: str) -> WordList:
    return WordList(_FOLDER / f"{name}.toml")


def phrases_in(file: WordList, *path: str) -> Sequence[str]:
    """Returns the phrases of a value. Raises if one can never be found in a post."""
    phrases = file.words(*path)
    for phrase in phrases:
        if not _PHRASE.fullmatch(phrase) or phrase != phrase.lower():
            message = f"{phrase!r} is never found in a post"
            raise file.mistake(message, *path, word=phrase, hint=_HINT)
    return phrases
