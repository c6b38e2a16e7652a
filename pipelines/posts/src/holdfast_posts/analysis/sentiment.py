"""Finds sentiment by lexicon: VADER for English, our own words for Vietnamese, others by
registration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import chain
from math import sqrt
from typing import Any, NamedTuple

from holdfast_posts.analysis.intent_phrases import Intent, phrases_of
from holdfast_posts.analysis.labels import Sentiment
from holdfast_posts.analysis.lexicons import english_words, vietnamese_words
from holdfast_posts.analysis.phrases import Phrases
from holdfast_posts.analysis.questions import is_question
from holdfast_posts.analysis.syllables import is_syllable
from holdfast_posts.analysis.teencode import written_out
from holdfast_posts.analysis.text import WORD, is_toneless, without_marks, words_of

VERSION = "lexicon-3"
#: Turns a sum of weights into -1 to 1, as VADER does.
_ALPHA = 15.0
_NEGATED = -0.74
_NEGATOR_REACH = 3
_BEFORE_TURN = 0.5
#: Words of feeling in a question are about its subject: "does it cover a cracked screen?"
_ASKED = 0.4
_MILD = 0.6

#: Maps a text of one language to its sentiment.
Model = Callable[[str], Sentiment]


def models() -> dict[str, Model]:
    """Returns the models that come with the pipeline, by language. A program may add its own."""
    return {"en": english, "vi": vietnamese}


def english(text: str) -> Sentiment:
    """Returns VADER's sentiment with idioms added: a complaint need not contain a word of
    feeling."""
    text = text.replace("\u2019", "'")  # as phones write it
    words = words_of(text)
    scores = _polarity(_without_idioms(text, words))
    total = scores["pos"] + scores["neu"] + scores["neg"] or 1.0
    if abs(scores["compound"]) < _MILD and is_question(text, words, "en", False):
        scores["compound"] *= _ASKED
    idioms = sum(weight for _, weight in _english_idioms().found(words))
    share = abs(idioms) / (len(text.split()) + abs(idioms) + 1)  # of the text, as VADER's shares
    positive, negative = (share, 0.0) if idioms > 0 else (0.0, share)
    return Sentiment(
        _added(scores["compound"], idioms) if idioms else scores["compound"],
        round((1 - share) * scores["pos"] / total + positive, 4),
        round((1 - share) * (scores["neu"] / total if scores["neu"] or scores["pos"] else 1.0), 4),
        round((1 - share) * scores["neg"] / total + negative, 4),
    )


def _added(compound: float, weight: float) -> float:
    """Adds a weight to the sum from which VADER computed a value between -1 and 1."""
    limited = max(-0.9999, min(0.9999, compound))
    total = limited * sqrt(_ALPHA / (1 - limited * limited)) + weight
    return round(total / sqrt(total * total + _ALPHA), 4)


@cache
def _english_idioms() -> Phrases[float]:
    """Returns idioms, and the phrases by which complaints and crises are recognised."""
    weights = dict(english_words().phrases)
    for intent, weight in ((Intent.COMPLAINT, -1.9), (Intent.CRISIS, -2.2)):
        for phrase in phrases_of(intent):
            if phrase.isascii() and phrase not in weights and not _has_feeling(phrase):
                weights[phrase] = weight
    return Phrases(weights.items())


def _without_idioms(text: str, words: Sequence[str]) -> str:
    """Removes idioms: VADER would read the words of "could not be happier" one by one."""
    idioms = [phrase.split() for phrase, _ in _feelings().found(words)]
    if not idioms:
        return text
    places = [match.span() for match in WORD.finditer(text.lower())]
    for idiom in idioms:
        for at in range(len(words) - len(idiom) + 1):
            if list(words[at : at + len(idiom)]) == idiom:
                start, end = places[at][0], places[at + len(idiom) - 1][1]
                text = text[:start] + "_" * (end - start) + text[end:]
    return text


@cache
def _feelings() -> Phrases[float]:
    return Phrases(english_words().phrases.items())


def _has_feeling(phrase: str) -> bool:
    return any(word in _vader().lexicon for word in phrase.split())


def _polarity(text: str) -> dict[str, float]:
    """Computes VADER's `polarity_scores`, which looks at each letter and word; this looks only at
    words of its lexicon."""
    vader, (boosters, split) = _vader(), _vader_parts()
    if not text.isascii():
        text = "".join(f" {vader.emojis[x]} " if x in vader.emojis else x for x in text).strip()
    parts = split(text)
    words = parts.words_and_emoticons
    valences: list[float] = []
    for at, word in enumerate(words):
        lowered = word.lower()
        if lowered not in vader.lexicon or lowered in boosters or _is_no_feeling(words, at):
            valences.append(0)
        else:
            valences = vader.sentiment_valence(0, parts, word, at, valences)
    scores: dict[str, float] = vader.score_valence(vader._but_check(words, valences), text)
    return scores


def _is_no_feeling(words: Sequence[str], at: int) -> bool:
    """Whether the word expresses no feeling: "kind of", and "like" in a comparison."""
    word = words[at].lower()
    if word == "kind":
        return [after.lower() for after in words[at + 1 : at + 2]] == ["of"]
    return word == "like" and [w.lower() for w in words[max(0, at - 1) : at]] not in _WHO_LIKES


_WHO_LIKES = [[word] for word in str.split(
    "i we they you people really do don't dont didn't always to also would i'd kids who"
)]  # fmt: skip


@cache
def _vader_parts() -> tuple[Any, Any]:
    from vaderSentiment.vaderSentiment import BOOSTER_DICT, SentiText

    return BOOSTER_DICT, SentiText


@cache
def _vader() -> Any:
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

    vader = SentimentIntensityAnalyzer()
    own = english_words()
    vader.lexicon.update(own.words)
    for word in own.no_feeling:
        vader.lexicon.pop(word, None)
    vader.emojis.update(own.emoji)
    check = vader._negation_check

    def check_nearby(valence: float, words: Sequence[str], start: int, at: int) -> Any:
        """Checks the neighbours.

        VADER looks at three words, and lowers everything that it is given."""
        near = words[max(0, at - 3) : at]
        return check(valence, near, start, len(near))

    vader._negation_check = check_nearby
    return vader


def vietnamese(text: str) -> Sentiment:
    toneless = is_toneless(text)
    clauses = [written_out(words_of(clause), toneless) for clause in _clauses(text)]
    words = tuple(chain.from_iterable(clauses))
    weights = _weights(clauses, _toneless() if toneless else _toned())
    if len(weights) == 1 and is_question(text, words, "vi", toneless):
        weights = [weights[0] * _ASKED]
    own = vietnamese_words()
    weights += [own.emoji[letter] for letter in text if letter in own.emoji]
    weights += [weight for emoticon, weight in own.emoticons.items() if emoticon in text]
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


class _Group(NamedTuple):
    """Phrases by their words, and the lengths of those that begin with a word."""

    weights: Mapping[tuple[str, ...], float]
    longest: Mapping[str, int]


class _Lexicon(NamedTuple):
    weights: _Group
    before: _Group
    after: _Group
    turns: _Group


@cache
def _toned() -> _Lexicon:
    own = vietnamese_words()
    groups = (_all_weights(), own.before, own.after, own.turns)
    return _Lexicon(*map(_by_words, groups))


@cache
def _all_weights() -> Mapping[str, float]:
    """Returns the weights with the phrases by which complaints and crises are recognised."""
    weights = dict(vietnamese_words().feelings)
    for intent, weight in ((Intent.COMPLAINT, -1.9), (Intent.CRISIS, -2.2)):
        for phrase in phrases_of(intent):
            if not phrase.isascii():
                weights.setdefault(phrase, weight)
    return weights


@cache
def _toneless() -> _Lexicon:
    clear = {phrase: weight for phrase, weight in _all_weights().items() if _is_clear(phrase)}
    own = vietnamese_words()
    groups = (clear, own.before, own.after, own.turns)
    return _Lexicon(*(_by_words({without_marks(p): w for p, w in g.items()}) for g in groups))


def _is_clear(phrase: str) -> bool:
    if " " in phrase or phrase in vietnamese_words().clear_without_marks:
        return True
    return phrase.isascii() and not is_syllable(phrase)  # "sai" is false, Saigon, to send


def _by_words(phrases: Mapping[str, float]) -> _Group:
    weights = {tuple(phrase.split()): weight for phrase, weight in phrases.items()}
    longest: dict[str, int] = {}
    for words in weights:
        longest[words[0]] = max(len(words), longest.get(words[0], 0))
    return _Group(weights, longest)


_CLAUSE_ENDS = str.maketrans(dict.fromkeys(".!?;,…", "\n"))


def _clauses(text: str) -> list[str]:
    """Splits a text into clauses: a negator affects nothing beyond the end of its clause."""
    return text.translate(_CLAUSE_ENDS).split("\n")


def _weights(clauses: Sequence[Sequence[str]], lexicon: _Lexicon) -> list[float]:
    weights: list[float] = []
    for words in clauses:
        weights = _with_clause(weights, words, lexicon)
    return weights


def _with_clause(weights: list[float], words: Sequence[str], lexicon: _Lexicon) -> list[float]:
    at = since = 0
    while at < len(words):
        turn = _longest(words, at, lexicon.turns)[0]
        if turn:  # what comes after "but" counts more than what came before, as in VADER
            weights = [weight * _BEFORE_TURN for weight in weights]
            at += turn
            continue
        length, weight = _longest(words, at, lexicon.weights)
        if not length:
            at += 1
            continue
        weight *= _factor_before(words, at, lexicon.before)
        weight *= _longest(words, at + length, lexicon.after)[1] or 1.0
        if vietnamese_words().negators.intersection(words[max(since, at - _NEGATOR_REACH) : at]):
            weight *= _NEGATED
        weights.append(weight)
        at = since = at + length  # a negator belongs to the first word of feeling after it
    return weights


def _longest(words: Sequence[str], at: int, group: _Group) -> tuple[int, float]:
    most = group.longest.get(words[at], 0) if at < len(words) else 0
    for length in range(min(most, len(words) - at), 0, -1):
        weight = group.weights.get(tuple(words[at : at + length]))
        if weight is not None:
            return length, weight
    return 0, 0.0


def _factor_before(words: Sequence[str], at: int, group: _Group) -> float:
    for length in (2, 1):
        if at >= length and (factor := group.weights.get(tuple(words[at - length : at]))):
            return factor
    return 1.0
