"""The words by which the intent of a post is recognised, English and Vietnamese.

They are ordered by occasion: delivery, support, money, faults, danger, purchase, questions,
advertising.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from holdfast.word_lists import WordList
from holdfast_posts.analysis.word_files import phrases_in, word_list


class Intent(StrEnum):
    CRISIS = "CRISIS"
    SEEDING = "SEEDING"
    SPAM = "SPAM"
    COMPLAINT = "COMPLAINT"
    LEAD = "LEAD"
    SUPPORT = "SUPPORT"
    DISCUSSION = "DISCUSSION"


@dataclass(frozen=True, slots=True)
class IntentPhrases:
    """Phrases as `Phrases` searches for them. With `harmless` ones, others mean nothing bad;
    anger about `goods` is a complaint."""

    of_intents: Mapping[Intent, Sequence[str]]
    harmless: Sequence[str]
    goods: Sequence[str]
    clear_without_marks: frozenset[str]

    @classmethod
    def read(cls, file: WordList) -> IntentPhrases:
        return cls(
            {
                _intent(file, name): phrases_in(file, "phrases", name)
                for name in file.names("phrases")
            },
            phrases_in(file, "harmless"),
            phrases_in(file, "goods"),
            frozenset(phrases_in(file, "clear_without_marks")),
        )


def _intent(file: WordList, name: str) -> Intent:
    try:
        return Intent(name)
    except ValueError:
        hint = f"Known are {', '.join(Intent)}."
        raise file.mistake(f"{name!r} is not an intent", "phrases", name, hint=hint) from None


@cache
def intent_phrases() -> IntentPhrases:
    return IntentPhrases.read(word_list("intents"))


def phrases_of(intent: Intent) -> Sequence[str]:
    return intent_phrases().of_intents.get(intent, ())
