"""Fits the weights of what speaks for an offer and against it to labelled lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp

from holdfast.pipelines.catalog.accuracy.measuring import Label
from holdfast.pipelines.catalog.choosing import Rules, compared, is_unclear, wanted_among
from holdfast.pipelines.catalog.offers import Offer
from holdfast.pipelines.catalog.scoring import Score, Wanted
from holdfast.pipelines.catalog.weighing import Field, features, is_same_thing, is_weighed

_ROUNDS = 30
_SMALL = 1e-6
_DIGITS = 3
#: How much an example counts whose right offer was taken away.
_WEIGHT_WITHOUT = 0.3
#: Makes up for those examples: so that 0.5 is the score from which accepting pays.
_BIAS = 0.7
#: Keeps weights small that few rows speak for.
_PENALTY = 0.5


@dataclass(frozen=True, slots=True)
class Example:
    """An offer that only the weights can accept or refuse."""

    features: Mapping[str, float]
    is_right: bool
    weight: float


def examples_of(
    label: Label, offers: Sequence[Offer], rules: Rules, weight: float
) -> Iterator[Example]:
    """Without offers that are refused or left to a person whatever the weights are. Each row counts
    a second time without the right offer: few rows of lists are of products that no shop has."""
    wanted = wanted_among(label.product, offers)
    scores = compared(wanted, offers, rules)
    if any(each.identity and each.fits for each in scores):
        return
    right = next((each for each in scores if each.offer.sku == label.expected), None)
    yield from _examples(wanted, scores, right, rules, weight)
    if right is not None:
        others = [
            each.offer for each in scores if each is not right and not is_same_thing(each, right)
        ]
        scores = compared(wanted, others, rules)
        yield from _examples(wanted, scores, None, rules, _WEIGHT_WITHOUT * weight)


def _examples(
    wanted: Wanted, scores: Sequence[Score], right: Score | None, rules: Rules, weight: float
) -> Iterator[Example]:
    field = Field.of(wanted.wording.words, scores)
    for each in scores:
        is_same = right is not None and each is not right and is_same_thing(each, right)
        if is_weighed(each) and not is_same and not is_unclear(each, scores, rules):
            values = features(wanted, each, scores, field)
            yield Example(values, each is right, weight)


def fitted(examples: Sequence[Example]) -> dict[str, float]:
    """The weights of a logistic regression, by Newton's method."""
    names = list(examples[0].features)
    rows = [[each.features[name] for name in names] for each in examples]
    weights = [0.0] * len(names)
    for _ in range(_ROUNDS):
        slope, bend = _derivatives(rows, examples, weights)
        step = _solved(bend, slope)
        weights = [weight - change for weight, change in zip(weights, step, strict=True)]
        if max(map(abs, step)) < _SMALL:
            break
    weights[0] += _BIAS
    return {name: round(weight, _DIGITS) for name, weight in zip(names, weights, strict=True)}


def _derivatives(
    rows: Sequence[Sequence[float]], examples: Sequence[Example], weights: Sequence[float]
) -> tuple[list[float], list[list[float]]]:
    size = len(weights)
    slope = [_PENALTY * weight if at else 0.0 for at, weight in enumerate(weights)]
    bend = [[_PENALTY if a == b else 0.0 for b in range(size)] for a in range(size)]
    for row, example in zip(rows, examples, strict=True):
        used = [at for at, value in enumerate(row) if value]
        likely = 1.0 / (1.0 + exp(-sum(row[at] * weights[at] for at in used)))
        error = example.weight * (likely - example.is_right)
        spread = example.weight * likely * (1.0 - likely)
        for a in used:
            slope[a] += error * row[a]
            for b in used:
                bend[a][b] += spread * row[a] * row[b]
    return slope, bend


def _solved(matrix: Sequence[Sequence[float]], values: Sequence[float]) -> list[float]:
    """The solution of linear equations, by elimination. The penalty keeps pivots from 0."""
    rows = [[*row, value] for row, value in zip(matrix, values, strict=True)]
    size = len(rows)
    for at in range(size):
        for below in range(at + 1, size):
            share = rows[below][at] / rows[at][at]
            rows[below] = [b - share * a for a, b in zip(rows[at], rows[below], strict=True)]
    solution = [0.0] * size
    for at in reversed(range(size)):
        rest = sum(rows[at][other] * solution[other] for other in range(at + 1, size))
        solution[at] = (rows[at][size] - rest) / rows[at][at]
    return solution
