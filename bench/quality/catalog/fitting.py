"""Fits the weights of an offer's evidence, and of accepting it, to labelled lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.quality.catalog.measuring import REVIEW, Accuracy, Label, add_result
from holdfast_catalog.choosing import choose, compared, is_identified, wanted_among
from holdfast_catalog.deciding import evidence, likeliest
from holdfast_catalog.offers import Offer
from holdfast_catalog.rivals import Rules, far_from_target
from holdfast_catalog.scoring import Score, Wanted
from holdfast_catalog.weighing import is_same_thing, likelihood

Weights = dict[str, dict[str, float]]
_ROUNDS = 30
_SMALL = 1e-6
_DIGITS = 3
#: How much an example counts if its right offer was taken away: few rows are of products that no
#: shop has, and those are different.
_WITHOUT_AS_OFFER, _WITHOUT_AS_CHOICE = 0.1, 0.05
#: Keeps weights small that few rows support.
_PENALTY_OF_OFFER, _PENALTY_OF_CHOICE = 3.0, 10.0
#: Makes 0.5 the likelihood from which a price is accepted: a wrong price costs more than one that
#: is left to a person.
_BIAS_OF_CHOICE = -0.9
_LEAST_SPREAD = 0.05


@dataclass(slots=True)
class Row:
    """A row and its offers. `without` are the scores of the other offers without the right one."""

    label: Label
    rules: Rules
    weight: float
    wanted: Wanted
    scores: Sequence[Score]
    right: Score | None
    without: Sequence[Score]
    chosen: str | None  # by its number or model, whatever the weights are; None: by its words


@dataclass(frozen=True, slots=True)
class Example:
    features: Mapping[str, float]
    is_right: bool
    weight: float


def row_of(label: Label, offers: Sequence[Offer], rules: Rules, weight: float) -> Row:
    wanted = wanted_among(label.product, offers)
    scores = compared(wanted, offers, rules)
    if any(is_identified(each, rules) or each.contradictions for each in scores):
        choice = choose(label.product, offers, rules)
        chosen = choice.offer.sku if choice.is_priced and choice.offer else ""
        return Row(label, rules, weight, wanted, scores, None, (), chosen)
    is_named = label.expected not in ("", REVIEW)
    right = next((each for each in scores if is_named and each.offer.sku == label.expected), None)
    others = [
        each.offer
        for each in scores
        if right is not None and each is not right and not is_same_thing(each, right)
    ]
    without = compared(wanted, others, rules) if right is not None else []
    return Row(label, rules, weight, wanted, scores, right, without, None)


def fitted(rows: Sequence[Row]) -> Weights:
    """Returns the weights: first those of an offer; those of the choice build on them."""
    offer = _regression(list(_examples_of_offers(rows)), _PENALTY_OF_OFFER, is_scaled=False)
    for row in rows:
        _weigh(row, offer)
    choice = _regression(list(_examples_of_choices(rows)), _PENALTY_OF_CHOICE, is_scaled=True)
    choice["bias"] = round(choice["bias"] + _BIAS_OF_CHOICE, _DIGITS)
    return {"offer": offer, "choice": choice}


def crossed(lists: Mapping[str, Sequence[Row]]) -> Iterator[tuple[str, Accuracy]]:
    """Yields each list measured with weights that were fitted to the others."""
    for name, rows in lists.items():
        weights = fitted([row for other in lists if other != name for row in lists[other]])
        accuracy = Accuracy()
        for row in rows:
            _weigh(row, weights["offer"])
            chosen = _choice(row, weights["choice"]) if row.chosen is None else row.chosen
            add_result(accuracy, row.label, chosen)
        yield name, accuracy


def _choice(row: Row, weights: Mapping[str, float]) -> str:
    best = likeliest(row.scores)
    if best is None or far_from_target(row.wanted.product, best):
        return ""
    value = likelihood(evidence(row.wanted, best, row.scores, row.rules), weights)
    return best.offer.sku if value >= row.rules.accept else ""


def _weigh(row: Row, weights: Mapping[str, float]) -> None:
    for each in (*row.scores, *row.without):
        if each.features:
            each.value = likelihood(each.features, weights)


def _examples_of_offers(rows: Sequence[Row]) -> Iterator[Example]:
    for row in rows:
        for each in row.scores if row.chosen is None else ():
            is_right = each is row.right
            is_same = row.right is not None and not is_right and is_same_thing(each, row.right)
            if each.features and not is_same:
                yield Example(each.features, is_right, row.weight)
        for each in row.without:
            if each.features:
                yield Example(each.features, False, _WITHOUT_AS_OFFER * row.weight)


def _examples_of_choices(rows: Sequence[Row]) -> Iterator[Example]:
    for row in rows:
        best = likeliest(row.scores) if row.chosen is None else None
        if best is not None:
            values = evidence(row.wanted, best, row.scores, row.rules)
            yield Example(values, best.offer.sku == row.label.expected, row.weight)
        best = likeliest(row.without)
        if best is not None:
            values = evidence(row.wanted, best, row.without, row.rules)
            yield Example(values, False, _WITHOUT_AS_CHOICE * row.weight)


def _regression(examples: Sequence[Example], penalty: float, is_scaled: bool) -> dict[str, float]:
    """Returns the weights of a logistic regression, by Newton's method.

    The first is that of the bias, which has no penalty; if scaled, the others are penalised by
    their effect, not by their size."""
    names = list(examples[0].features)
    values = np.array([[each.features[name] for name in names] for each in examples])
    right = np.array([each.is_right for each in examples], dtype=np.float64)
    counts = np.array([each.weight for each in examples])
    middle, spread = np.zeros(len(names)), np.ones(len(names))
    if is_scaled:
        middle[1:], spread[1:] = values[:, 1:].mean(0), values[:, 1:].std(0).clip(_LEAST_SPREAD)
    weights = _newton((values - middle) / spread, right, counts, penalty) / spread
    weights[0] -= (weights * middle).sum()
    return {name: round(float(each), _DIGITS) for name, each in zip(names, weights, strict=True)}


def _newton(
    values: NDArray[np.float64], right: NDArray[np.float64], counts: NDArray[np.float64],
    penalty: float,
) -> NDArray[np.float64]:  # fmt: skip
    size = values.shape[1]
    weights, penalties = np.zeros(size), np.full(size, penalty)
    penalties[0] = _SMALL
    for _ in range(_ROUNDS):
        likely = 1.0 / (1.0 + np.exp(-(values @ weights).clip(-50, 50)))
        slope = values.T @ (counts * (likely - right)) + penalties * weights
        spread = (counts * likely * (1.0 - likely))[:, None]
        step = np.linalg.solve((values * spread).T @ values + np.diag(penalties), slope)
        weights -= step
        if np.abs(step).max() < _SMALL:
            break
    return weights
