"""Recognizes what a post asks for if no phrase says it: to buy something, or help with
something."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from holdfast.word_lists import WordList
from holdfast_posts.analysis.intent_phrases import Intent
from holdfast_posts.analysis.phrases import Phrases
from holdfast_posts.analysis.text import without_marks
from holdfast_posts.analysis.word_files import phrases_in, word_list


@dataclass(frozen=True, slots=True)
class QuestionWords:
    """Sentences with `loose_openers` are questions only with a question mark. In Vietnamese, a
    question is one of `ends`, and after it those who are `addressed`."""

    greetings: frozenset[str]
    openers: frozenset[str]
    loose_openers: frozenset[str]
    addressed: frozenset[str]
    ends: frozenset[str]
    reproaches: Sequence[str]
    asking: Sequence[str]
    opinions: Sequence[str]
    purchase: Sequence[str]

    @classmethod
    def read(cls, file: WordList) -> QuestionWords:
        return cls(
            frozenset(phrases_in(file, "english", "greetings")),
            frozenset(phrases_in(file, "english", "openers")),
            frozenset(phrases_in(file, "english", "loose_openers")),
            frozenset(phrases_in(file, "vietnamese", "addressed")),
            frozenset(phrases_in(file, "vietnamese", "ends")),
            phrases_in(file, "vietnamese", "reproaches"),
            phrases_in(file, "vietnamese", "asking"),
            phrases_in(file, "both", "opinions"),
            phrases_in(file, "both", "purchase"),
        )


@cache
def question_words() -> QuestionWords:
    return QuestionWords.read(word_list("questions"))


def asked_for(
    text: str, words: Sequence[str], language: str | None, toneless: bool
) -> Intent | None:
    if not is_question(text, words, language, toneless):
        return None
    phrases = _phrases(toneless)
    if any(True for _ in phrases[0].found(words)):
        return None
    return Intent.LEAD if any(True for _ in phrases[1].found(words)) else Intent.SUPPORT


def is_question(text: str, words: Sequence[str], language: str | None, toneless: bool) -> bool:
    if language == "vi":
        return _asks_in_vietnamese(text, words, toneless)
    return language == "en" and _asks_in_english(text, words)


def _asks_in_english(text: str, words: Sequence[str]) -> bool:
    known = question_words()
    start = next((at for at, word in enumerate(words) if word not in known.greetings), 0)
    first, second = (*words[start : start + 2], "", "")[:2]
    if text.rstrip().endswith("?"):
        return first in known.openers or _asks_at_last(text)
    return first in known.openers - known.loose_openers and second != "t"  # can't


def _asks_at_last(text: str) -> bool:
    """Whether the last sentence, or the part after its last comma, begins as a question does."""
    ending = text.rstrip("? ").replace("!", ".").replace(",", ".").replace("?", ".")
    return next(iter(ending.rpartition(".")[2].lower().split()), "") in question_words().openers


def _asks_in_vietnamese(text: str, words: Sequence[str], toneless: bool) -> bool:
    addressed, ends, phrases, reproaches = _vietnamese(toneless)
    at = len(words)
    while at and words[at - 1] in addressed:
        at -= 1
    if at and words[at - 1] in ends:
        last_two = tuple(words[max(0, at - 2) : at])
        return last_two not in reproaches and not last_two[0].isdigit()  # 5 sao: five stars
    if text.rstrip().endswith("?"):
        return True
    politely = at < len(words)
    return politely and any(True for _ in phrases.found(words))


@cache
def _vietnamese(
    toneless: bool,
) -> tuple[frozenset[str], frozenset[str], Phrases[None], list[tuple[str, ...]]]:
    form, known = without_marks if toneless else str, question_words()
    return (
        frozenset(map(form, known.addressed)),
        frozenset(map(form, known.ends)),
        Phrases((form(phrase), None) for phrase in known.asking),
        [tuple(map(form, phrase.split())) for phrase in known.reproaches],
    )


@cache
def _phrases(toneless: bool) -> tuple[Phrases[None], Phrases[None]]:
    form, known = without_marks if toneless else str, question_words()
    opinions = Phrases((form(phrase), None) for phrase in known.opinions)
    return opinions, Phrases((form(phrase), None) for phrase in known.purchase)
