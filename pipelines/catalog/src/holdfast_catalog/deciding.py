"""Decides whether the likeliest offer is accepted: by its evidence, and by how far the other offers
are behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, log

from holdfast_catalog.normalising.remarks import is_unsure
from holdfast_catalog.rivals import (
    Rules,
    across,
    alike_offers,
    differ,
    far_from_target,
    has_other_sizes,
    is_as_likely,
    is_variant_unknown,
    nearest_to_target,
    prices_differ,
)
from holdfast_catalog.scoring import Score, Wanted
from holdfast_catalog.weighing import (
    FEWEST,
    Field,
    is_same_thing,
    likelihood,
    weights,
)

_LEAST = 1e-9
_FAR_BEHIND = -12.0
_WIDE = 8.0
_MANY, _MOST = 6, 20
_NOT_MUCH_WORSE = 1.0
_EXACT, _CLOSE = 0.03, 0.11
_FAR, _FARTHEST = 1.5, 2.0
_NOT_STATED = -0.1
_LIKELY = 0.3
_LEAST_SHARED = 0.3
#: A row with these words names several things.
_SEVERAL = frozenset(("various", "misc", "miscellaneous", "assorted", "several", "etc", "mixed"))


def likeliest(scores: Sequence[Score]) -> Score | None:
    """Returns the likeliest of the offers that only their words identify."""
    weighed = [each for each in scores if each.features and not each.vetoes and _is_like(each)]
    return min(weighed, key=_order, default=None)


def _is_like(each: Score) -> bool:
    """Whether it contains enough of the row to be accepted at all."""
    return each.shared >= _LEAST_SHARED or bool(each.brand or each.same_model)


def _order(each: Score) -> tuple[float, int, int, bool, int]:
    offer = each.offer
    return (
        -each.value,
        each.surplus,
        len(each.extra),
        not offer.trusted,
        offer.price_minor or 0,
    )


def sureness(evidence: Mapping[str, float]) -> float:
    """Returns how likely it is that accepting the offer is right."""
    return likelihood(evidence, weights()["choice"])


def evidence(
    wanted: Wanted, best: Score, scores: Sequence[Score], rules: Rules
) -> dict[str, float]:
    """Returns the evidence about the likeliest offer that is weighed in addition to what is weighed
    for all."""
    others = [
        each
        for each in scores
        if each.features and not each.vetoes and each is not best and not is_same_thing(each, best)
    ]
    return {
        **best.features,
        **_lead(best, others),
        **_company(wanted, best, scores, rules),
        **_prices(wanted, best, others),
        "asked": float(is_unsure(wanted.product)),
        "several": float(not _SEVERAL.isdisjoint(wanted.wording.tokens)),
        "doubts": float(len(best.doubts)),
        "unnamed": float(len(best.unnamed)),
        "excess": float(min(best.excess, _MANY)),
        "extra": float(min(len(best.extra), 2 * _MANY)),
    }


def _lead(best: Score, others: Sequence[Score]) -> dict[str, float]:
    own = _odds(best.value)
    odds = [_odds(each.value) for each in others]
    second = max(odds, default=_FAR_BEHIND)
    total = 1.0 + exp(own) + sum(map(exp, odds))
    return {
        "odds": own,
        "margin": max(-_WIDE, min(own - second, _WIDE)),
        "second": max(second, _FAR_BEHIND),
        "share": exp(own) / total,
        "odds_of_share": _odds(exp(own) / total),
        "likely_others": float(sum(each.value > _LIKELY * best.value for each in others)),
    }


def _odds(value: float) -> float:
    within = min(max(value, _LEAST), 1.0 - _LEAST)
    return log(within / (1.0 - within))


def _company(
    wanted: Wanted, best: Score, scores: Sequence[Score], rules: Rules
) -> dict[str, float]:
    """Returns the reasons why a person might have to choose."""
    field = Field.of(wanted.wording.words, scores)
    alike = alike_offers(best, scores, rules)
    nearest = nearest_to_target(wanted.product, alike, rules) if len(alike) > 1 else None
    return {
        "offers": float(min(len(scores), _MOST)),
        "few": float(len(scores) < FEWEST),
        "known": field.known / field.total,
        "alike": float(min(len(alike), _MANY - 1)),
        "alike_sizes": float(has_other_sizes(best, alike)),
        "alike_prices": float(prices_differ(alike, rules)),
        "alike_others": float(sum(differ(each, best) for each in alike)),
        "alike_variants": float(bool(is_variant_unknown(best, alike))),
        "as_likely": float(any(is_as_likely(each, best) for each in scores)),
        "across": float(bool(across(wanted.product, best, scores))),
        "nearest": float(nearest is best),
        "far": float(bool(far_from_target(wanted.product, best))),
    }


def _prices(wanted: Wanted, best: Score, others: Sequence[Score]) -> dict[str, float]:
    target = wanted.product.price_minor or 0
    rivals = [each for each in others if each.missed - best.missed < _NOT_MUCH_WORSE]
    ratios = [_distance(each, best.offer.price_minor or 1) for each in rivals]
    own = _distance(best, target) if target else None
    away = min((_distance(each, target) for each in rivals), default=_FAR) if target else None
    return {
        "price_distance": _NOT_STATED if own is None else min(own, _FAR),
        "price_exact": float(own is not None and own < _EXACT),
        "price_close": float(own is not None and own < _CLOSE),
        "rivals": float(min(len(rivals), _MANY)),
        "rival_distance": _NOT_STATED if away is None else away,
        "rival_ratio": min(ratios, default=_FARTHEST),
        "rival_ratio_most": max(ratios, default=0.0),
    }


def _distance(each: Score, price: int) -> float:
    return abs(log((each.offer.price_minor or 1) / price))
