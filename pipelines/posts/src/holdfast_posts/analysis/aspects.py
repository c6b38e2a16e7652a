"""Finds what a post says about design, performance, price and service, and in which words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from itertools import pairwise
from typing import Any

from holdfast.word_lists import WordList
from holdfast_posts.analysis.labels import Label, Sentiment
from holdfast_posts.analysis.phrases import Phrases
from holdfast_posts.analysis.text import Prepared, without_marks
from holdfast_posts.analysis.word_files import phrases_in, word_list

_WINDOW = 60
_WINDOWS = 6  # of one post
_KEYWORDS = 10


class Aspect(StrEnum):
    DESIGN = "DESIGN"
    PERFORMANCE = "PERFORMANCE"
    PRICE = "PRICE"
    SERVICE = "SERVICE"
    GENERAL = "GENERAL"


@dataclass(frozen=True, slots=True)
class AspectWords:
    """The words of each aspect, and those that are never keywords."""

    aspects: Mapping[Aspect, Sequence[str]]
    stop_words: frozenset[str]

    @classmethod
    def read(cls, file: WordList) -> AspectWords:
        names = file.names("aspects")
        return cls(
            {_aspect(file, name): phrases_in(file, "aspects", name) for name in names},
            frozenset(phrases_in(file, "stop_words")),
        )


def _aspect(file: WordList, name: str) -> Aspect:
    try:
        return Aspect(name)
    except ValueError:
        hint = f"Known are {', '.join(Aspect)}."
        raise file.mistake(f"{name!r} is not an aspect", "aspects", name, hint=hint) from None


@cache
def aspect_words() -> AspectWords:
    return AspectWords.read(word_list("aspects"))


Judge = Callable[[str], Sentiment]


def aspects_of(prepared: Prepared, whole: Sentiment, judge: Judge) -> dict[str, Any]:
    """Returns the sentiment of each aspect that is mentioned, from the words around it.

    Without any, the whole post is about the brand in general."""
    scores: dict[Aspect, list[tuple[float, float]]] = {}
    judged = {prepared.text: whole}  # the windows of a short post are the whole of it
    for number, (aspect, window) in enumerate(_mentions(prepared)):
        if number == _WINDOWS:
            break
        if window not in judged:
            judged[window] = judge(window)
        sentiment = judged[window]
        scores.setdefault(aspect, []).append((sentiment.score, sentiment.confidence))
    if not scores:
        return {str(Aspect.GENERAL): _described([(whole.score, whole.confidence)])}
    return {str(aspect): _described(found) for aspect, found in scores.items()}


def _mentions(prepared: Prepared) -> Iterator[tuple[Aspect, str]]:
    """Yields one window for each word of an aspect; windows that begin close together count
    once."""
    text = prepared.text
    lowered = text.lower()
    if len(lowered) != len(text):  # a letter that becomes two in lower case
        text = lowered
    last: dict[Aspect, int] = {}
    for word, aspect in _words(prepared.toneless).found(prepared.words):
        at = lowered.find(word)
        if at >= 0 and abs(at - last.get(aspect, -_WINDOW)) >= _WINDOW:
            last[aspect] = at
            yield aspect, text[max(0, at - _WINDOW) : at + len(word) + _WINDOW]


@cache
def _words(toneless: bool) -> Phrases[Aspect]:
    form = without_marks if toneless else str
    aspects = aspect_words().aspects.items()
    return Phrases((form(word), aspect) for aspect, words in aspects for word in words)


def _described(found: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """Returns the mean, weighted by confidence."""
    weight = sum(confidence for _, confidence in found)
    if weight:
        score = sum(score * confidence for score, confidence in found) / weight
    else:
        score = sum(score for score, _ in found) / len(found)
    label: Label = Sentiment(score, 0, 0, 0).label
    return {
        "sentiment": str(label),
        "score": round(score, 4),
        "confidence": round(weight / len(found), 4),
        "mentions": len(found),
    }


def keywords_of(prepared: Prepared, hashtags: Sequence[str]) -> list[str]:
    """Returns hashtags first, then frequent words and pairs of words."""
    words = [word for word in prepared.words if len(word) > 1 and not word.isdigit()]
    stop_words = aspect_words().stop_words
    useful = [word for word in words if word not in stop_words]
    tags = [tag.lower() for tag in hashtags]
    if len(set(words)) == len(words):  # true of most posts: no word and no pair is more frequent
        return list(dict.fromkeys(tags + useful))[:_KEYWORDS]
    counts = Counter(useful)
    pairs = Counter(
        f"{first} {second}"
        for first, second in pairwise(words)
        if first not in stop_words and second not in stop_words
    )
    frequent = [pair for pair, count in pairs.most_common(_KEYWORDS) if count > 1]
    ranked = tags + frequent + [w for w, _ in counts.most_common(20)]
    return list(dict.fromkeys(ranked))[:_KEYWORDS]
