"""What a post is about to do to a brand, by rules in the order of their priority."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache

from holdfast.pipelines.posts.analysis.intent_phrases import PHRASES, Intent, phrases_of
from holdfast.pipelines.posts.analysis.phrases import Phrases
from holdfast.pipelines.posts.analysis.text import Prepared, without_marks

PRIORITIES = {
    Intent.CRISIS: 10,
    Intent.SEEDING: 9,
    Intent.SPAM: 9,
    Intent.COMPLAINT: 7,
    Intent.LEAD: 5,
    Intent.SUPPORT: 4,
    Intent.DISCUSSION: 1,
}
#: Nothing more is read from these.
SKIPPED = frozenset({Intent.SEEDING, Intent.SPAM})


@dataclass(frozen=True, slots=True)
class Found:
    intent: Intent
    confidence: float


#: What a post is marked with if somebody paid for it.
_PAID = ("#ad ", "#sponsored", "#paidpartnership", "#gifted", "#hợptác", "#quảngcáo", "#pr ")


def intent_of(prepared: Prepared) -> Found:
    """The first rule that applies. The more of its phrases are there, the surer."""
    hits = _hits(prepared)
    if prepared.spam_signals:
        hits[Intent.SPAM] += len(prepared.spam_signals)
    if "#" in prepared.text:
        tags = f"{prepared.text.lower()} "
        hits[Intent.SEEDING] += sum(mark in tags for mark in _PAID)
    for intent in PRIORITIES:
        if hits[intent]:
            return Found(intent, min(0.95, 0.6 + 0.15 * (hits[intent] - 1)))
    return Found(Intent.DISCUSSION, 0.5)


def _hits(prepared: Prepared) -> Counter[Intent]:
    """How many phrases of each intent the post has."""
    return Counter(intent for _, intent in _phrases(prepared.toneless).found(prepared.words))


@cache
def _phrases(toneless: bool) -> Phrases[Intent]:
    """Of posts without marks, both forms."""
    pairs = [(phrase, intent) for intent in PHRASES for phrase in phrases_of(intent)]
    if toneless:
        pairs += [(without_marks(phrase), intent) for phrase, intent in pairs]
    return Phrases(dict.fromkeys(pairs))
