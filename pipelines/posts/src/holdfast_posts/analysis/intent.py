"""Predicts what a post is about to do to a brand, by rules in the order of their priority."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from holdfast_posts.analysis.intent_phrases import (
    Intent,
    intent_phrases,
)
from holdfast_posts.analysis.labels import Label, Sentiment
from holdfast_posts.analysis.phrases import Phrases
from holdfast_posts.analysis.questions import asked_for
from holdfast_posts.analysis.teencode import written_out
from holdfast_posts.analysis.text import Prepared, without_marks

PRIORITIES = {
    Intent.CRISIS: 10,
    Intent.SEEDING: 9,
    Intent.SPAM: 9,
    Intent.COMPLAINT: 7,
    Intent.LEAD: 5,
    Intent.SUPPORT: 4,
    Intent.DISCUSSION: 1,
}
#: Posts with these intents are not analysed further.
SKIPPED = frozenset({Intent.SEEDING, Intent.SPAM})


@dataclass(frozen=True, slots=True)
class Found:
    intent: Intent
    confidence: float


_UNSURE = 0.5
#: How a post is marked if someone paid for it.
_PAID = ("#ad ", "#sponsored", "#paidpartnership", "#gifted", "#hợptác", "#quảngcáo", "#pr ")


#: Signs of an advertisement that an angry or excited customer may show too: one alone proves
#: nothing.
_WEAK_SIGNALS = frozenset({"repeated_letters", "capitals", "hashtags", "phone_number"})


def intent_of(prepared: Prepared) -> Found:
    """Returns the first rule that applies, more confidently the more of its phrases are there."""
    words = _meant(prepared)
    hits = _hits(words, prepared.toneless)
    hits[Intent.SPAM] += _spam_weight(prepared.spam_signals)
    if "#" in prepared.text:
        tags = f"{prepared.text.lower()} "
        hits[Intent.SEEDING] += sum(mark in tags for mark in _PAID)
    for intent in sorted(PRIORITIES, key=lambda name: (-PRIORITIES[name], -hits[name])):
        if hits[intent]:
            return Found(intent, min(0.95, 0.6 + 0.15 * (hits[intent] - 1)))
    asked = asked_for(prepared.text, words, prepared.language, prepared.toneless)
    return Found(asked or Intent.DISCUSSION, _UNSURE)


def with_feeling(found: Found, prepared: Prepared, sentiment: Sentiment | None) -> Found:
    """Returns a complaint for a post that no phrase decides, but that is angry about goods or
    service."""
    if found.confidence > _UNSURE or sentiment is None:
        return found
    if sentiment.label is Label.NEGATIVE and _is_about_goods(_meant(prepared), prepared.toneless):
        return Found(Intent.COMPLAINT, _UNSURE)
    return found


def _meant(prepared: Prepared) -> tuple[str, ...]:
    if prepared.language == "vi":
        return written_out(prepared.words, prepared.toneless)
    return prepared.words


def _spam_weight(signals: Sequence[str]) -> int:
    weak = sum(map(_WEAK_SIGNALS.__contains__, signals))
    strong = len(signals) - weak
    return strong + weak if strong or weak > 1 else 0


def _hits(words: Sequence[str], toneless: bool) -> Counter[Intent]:
    """Counts how many phrases of each intent the post has."""
    for phrase, _ in _harmless(toneless).found(words):
        words = f" {' '.join(words)} ".replace(f" {phrase} ", " . ").split()
    return Counter(intent for _, intent in _phrases(toneless).found(words))


@cache
def _phrases(toneless: bool) -> Phrases[Intent]:
    """Returns the phrases; for posts without marks, in both forms."""
    pairs = [
        (phrase, intent)
        for intent, phrases in intent_phrases().of_intents.items()
        for phrase in phrases
    ]
    if toneless:
        pairs += [
            (bare, intent) for phrase, intent in pairs if (bare := _clear_without_marks(phrase))
        ]
    return Phrases(dict.fromkeys(pairs))


def _clear_without_marks(phrase: str) -> str | None:
    """Returns the phrase without its marks, if it stays clear.

    One syllable without marks can be many words: "toi" is I, evening, dark and miserable."""
    clear = " " in phrase or phrase in intent_phrases().clear_without_marks
    return without_marks(phrase) if clear else None


@cache
def _harmless(toneless: bool) -> Phrases[None]:
    pairs = [(phrase, None) for phrase in intent_phrases().harmless]
    return Phrases(pairs + [(without_marks(phrase), None) for phrase, _ in pairs if toneless])


def _is_about_goods(words: Sequence[str], toneless: bool) -> bool:
    return next(_goods(toneless).found(words), None) is not None


@cache
def _goods(toneless: bool) -> Phrases[None]:
    return Phrases(
        (without_marks(word) if toneless else word, None) for word in intent_phrases().goods
    )
