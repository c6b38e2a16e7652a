"""Opens the word lists of everyday English, which are in `english/`."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from holdfast.word_lists import WordList

FOLDER = Path(__file__).with_name("english")


@cache
def word_list(name: str) -> WordList:
    return WordList(FOLDER / f"{name}.toml")
