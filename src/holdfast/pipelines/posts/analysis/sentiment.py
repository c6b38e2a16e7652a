"""Sentiment by lexicon: VADER for English, our own words for Vietnamese, others by registration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from math import sqrt
from typing import Any, NamedTuple

from holdfast.pipelines.posts.analysis.labels import Sentiment
from holdfast.pipelines.posts.analysis.text import without_marks, words_of
from holdfast.pipelines.posts.analysis.vietnamese_words import (
    AFTER,
    BEFORE,
    EMOJI,
    NEGATORS,
    UNCLEAR,
    WEIGHTS,
)

VERSION = "lexicon-1"
#: Turns a sum of weights into -1 to 1, as VADER does.
_ALPHA = 15.0
_NEGATED = -0.74
_NEGATOR_REACH = 3
_LONGEST_PHRASE = 6

#: A text of one language to its sentiment.
Model = Callable[[str], Sentiment]


def models() -> dict[str, Model]:
    """The models that come with the pipeline, by language. A program may add its own."""
    return {"en": english, "vi": vietnamese}


def english(text: str) -> Sentiment:
    scores = _vader().polarity_scores(text)
    total = scores["pos"] + scores["neu"] + scores["neg"] or 1.0
    return Sentiment(
        scores["compound"],
        round(scores["pos"] / total, 4),
        round(scores["neu"] / total, 4) if scores["neu"] else 0.0 if scores["pos"] else 1.0,
        round(scores["neg"] / total, 4),
    )


@cache
def _vader() -> Any:
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

    return SentimentIntensityAnalyzer()


def vietnamese(text: str) -> Sentiment:
    words = words_of(text)
    lexicon = _toneless() if text.isascii() else _toned()
    weights = list(_weights(words, lexicon))
    weights += [EMOJI[letter] for letter in text if letter in EMOJI]
    total = sum(weights)
    exclamations = min(text.count("!"), 4) * 0.292
    total += exclamations if total > 0 else -exclamations if total < 0 else 0.0
    positive = sum(weight + 1 for weight in weights if weight > 0)
    negative = sum(1 - weight for weight in weights if weight < 0)
    neutral = max(len(words) - len(weights), 0) or (0 if weights else 1)
    whole = positive + negative + neutral
    return Sentiment(
        round(total / sqrt(total * total + _ALPHA), 4),
        round(positive / whole, 4),
        round(neutral / whole, 4),
        round(negative / whole, 4),
    )


class _Lexicon(NamedTuple):
    weights: Mapping[tuple[str, ...], float]
    before: Mapping[tuple[str, ...], float]
    after: Mapping[tuple[str, ...], float]


@cache
def _toned() -> _Lexicon:
    return _Lexicon(*(_by_words(group) for group in (WEIGHTS, BEFORE, AFTER)))


@cache
def _toneless() -> _Lexicon:
    clear = {phrase: weight for phrase, weight in WEIGHTS.items() if phrase not in UNCLEAR}
    groups = (clear, BEFORE, AFTER)
    return _Lexicon(*(_by_words({without_marks(p): w for p, w in g.items()}) for g in groups))


def _by_words(phrases: Mapping[str, float]) -> dict[tuple[str, ...], float]:
    return {tuple(phrase.split()): weight for phrase, weight in phrases.items()}


def _weights(words: Sequence[str], lexicon: _Lexicon) -> list[float]:
    weights = []
    at = since = 0
    while at < len(words):
        length, weight = _longest(words, at, lexicon.weights)
        if not length:
            at += 1
            continue
        weight *= _factor_before(words, at, lexicon.before)
        weight *= _longest(words, at + length, lexicon.after)[1] or 1.0
        if NEGATORS.intersection(words[max(since, at - _NEGATOR_REACH) : at]):
            weight *= _NEGATED
        weights.append(weight)
        at = since = at + length  # a negator belongs to the first word of feeling after it
    return weights


def _longest(
    words: Sequence[str], at: int, phrases: Mapping[tuple[str, ...], float]
) -> tuple[int, float]:
    for length in range(min(_LONGEST_PHRASE, len(words) - at), 0, -1):
        weight = phrases.get(tuple(words[at : at + length]))
        if weight is not None:
            return length, weight
    return 0, 0.0


def _factor_before(
    words: Sequence[str], at: int, phrases: Mapping[tuple[str, ...], float]
) -> float:
    for length in (2, 1):
        if at >= length and (factor := phrases.get(tuple(words[at - length : at]))):
            return factor
    return 1.0
