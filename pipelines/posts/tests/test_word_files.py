"""Every word list of the analysis can be used, and a mistake in one is said with its line."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import InputError
from holdfast.word_lists import WordList
from holdfast_posts.analysis import word_files
from holdfast_posts.analysis.aspects import AspectWords
from holdfast_posts.analysis.intent_phrases import IntentPhrases
from holdfast_posts.analysis.lexicons import EnglishWords, VietnameseWords
from holdfast_posts.analysis.questions import QuestionWords
from holdfast_posts.analysis.teencode import Teencode
from holdfast_posts.analysis.text import LanguageWords

Read = Callable[[WordList], Any]
READERS: dict[str, Read] = {
    "aspects": AspectWords.read,
    "english": EnglishWords.read,
    "intents": IntentPhrases.read,
    "languages": LanguageWords.read,
    "questions": QuestionWords.read,
    "teencode": Teencode.read,
    "vietnamese": VietnameseWords.read,
}
FOLDER = Path(word_files.__file__).parent / "words"


def test_each_list_has_a_reader_and_can_be_read() -> None:
    assert {file.stem for file in FOLDER.iterdir()} == set(READERS)
    for name, read in READERS.items():
        read(WordList(FOLDER / f"{name}.toml"))


@pytest.mark.parametrize(
    ("name", "before", "after", "message"),
    [
        ("intents", "CRISIS =", "CRISYS =", "'CRISYS' is not an intent"),
        ("intents", "\ntaken to hospital,", "\nCan't stop,", '"Can\'t stop" is never found'),
        ("aspects", "PRICE =", "PRICES =", "'PRICES' is not an aspect"),
        ("english", '"1.2" =', "rather =", "'rather' is not a number"),
        ("english", "goated,", "goated, goated,", "2.6 in words has 'goated' twice"),
        ("vietnamese", "[after]", "[behind]", "the table [after] is missing"),
        ("vietnamese", "tuyệt vời,", "tuyệt-vời,", "'tuyệt-vời' is never found in a post"),
        ("teencode", '"mn, mng"', '"mn, ko"', "'ko' is in two lists of forms: không and mọi người"),
        ("questions", "greetings =", "greeting =", "greetings in english is missing"),
        ("languages", "invitations =", "invitation =", "invitations is missing"),
    ],
)
def test_mistake_in_a_list_is_said_with_its_line(
    tmp_path: Path, name: str, before: str, after: str, message: str
) -> None:
    text = (FOLDER / f"{name}.toml").read_text("utf-8")
    assert before in text
    broken = tmp_path / f"{name}.toml"
    broken.write_text(text.replace(before, after, 1), "utf-8")
    with pytest.raises(InputError) as caught:
        READERS[name](WordList(broken))
    place = re.fullmatch(rf"{re.escape(str(broken))}, line (\d+): (.*)", str(caught.value))
    assert place is not None and message in place[2]
    line = broken.read_text("utf-8").splitlines()[int(place[1]) - 1]
    assert after.strip() in line or "missing" in message
