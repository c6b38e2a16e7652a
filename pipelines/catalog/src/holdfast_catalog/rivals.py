"""Finds other offers that may be meant as well: what they have, and how their prices differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast_catalog.normalising.money import price_text
from holdfast_catalog.normalising.product import Product
from holdfast_catalog.normalising.vocabulary import Kind, kind_of
from holdfast_catalog.scoring import VAGUE, Score
from holdfast_catalog.variants import is_code
from holdfast_catalog.weighing import (
    SAME_PRICE_OF_VARIANTS,
    TELLING,
    is_same_thing,
    maker,
)

FAR_FROM_TARGET = 3.0
_MOST_DIFFERING = 4
_AS_WELL = 0.02
_AS_LIKELY = 0.6
_ALMOST_AS_WELL = 0.12
_IDENTIFYING = (Kind.NAME, Kind.NUMBER, Kind.THING)
_HARDLY = 0.33
_SAME_PRICE = 0.10
_ABOUT_AS_FAR = 1.5


@dataclass(frozen=True, slots=True)
class Rules:
    currency: str
    accept: float
    review: float
    tolerance: float
    bait: float


def alike_offers(best: Score, scores: Sequence[Score], rules: Rules) -> list[Score]:
    """Returns the offers that fit the list's words as well as the best.

    If there are several, the list is not precise, and may mean a variant that it does not name,
    too."""
    if best.identity:
        same = [each for each in scores if each.identity and not each.vetoes]
        return [each for each in same if each.lacking - best.lacking < _AS_WELL]
    alike = [each for each in scores if _fits_as_well(each, best, rules)]
    several = sum(1 for each in alike if not each.unnamed) > 1
    return [each for each in alike if each is best or several or not each.unnamed]


def _fits_as_well(each: Score, best: Score, rules: Rules) -> bool:
    if each is best:
        return True
    more = (word for word in each.missing - best.missing if kind_of(word) in TELLING)
    most = _AS_WELL if any(more) else _ALMOST_AS_WELL
    as_well = is_near(each, rules) and each.lacking - best.lacking < most
    return as_well and _is_no_worse(each, best) and not says_more(each, best)


def is_as_likely(each: Score, best: Score) -> bool:
    """Whether the offer is as likely as the best, and costs something else or differs from the row
    as the best does: it may be neither."""
    if not (each.by_words and _is_no_worse(each, best)):
        return False
    if each is best or says_more(each, best) or (is_same_thing(each, best) and not best.doubts):
        return False
    one, other = sorted((each.offer.price_minor or 0, best.offer.price_minor or 0))
    is_other = bool(best.doubts) or one < other * (1 - SAME_PRICE_OF_VARIANTS)
    return is_other and each.value >= _AS_LIKELY * best.value


def across(product: Product, best: Score, scores: Sequence[Score]) -> list[Score]:
    """Returns offers of the maker that are about as far from what the list says that it costs, on
    the other side, and lack at most a word: the price does not say which one is meant."""
    target, price = product.price_minor or 0, best.offer.price_minor or 0
    if best.identity or not target or abs(price - target) <= _SAME_PRICE * target:
        return []
    return [
        each
        for each in scores
        if each.fits
        and maker(each.offer) == maker(best.offer)
        and (price < target) is not ((each.offer.price_minor or 0) < target)
        and _differs(each, target) <= _ABOUT_AS_FAR * _differs(best, target)
        and _lacks_little(each.missing - best.missing)
    ]


def _lacks_little(words: frozenset[str]) -> bool:
    return len(words) <= 1 and not any(kind_of(word) in (Kind.NAME, Kind.NUMBER) for word in words)


def _is_no_worse(each: Score, best: Score) -> bool:
    """Whether nothing contradicts it that does not also contradict the best."""
    return not each.vetoes and each.doubts.keys() <= best.doubts.keys()


def says_more(each: Score, best: Score) -> bool:
    """Whether it says all that the best says, and more, so that it is another variant."""
    if _has_other_size(each, best):
        return False
    own, other = ({word for word in score.extra if not is_code(word)} for score in (best, each))
    return own < other or best.extra < each.extra or best.surplus < each.surplus


def why_unclear(best: Score, alike: Sequence[Score], rules: Rules) -> str:
    """Returns why the list does not say which of some offers it means; empty if it does."""
    if has_other_sizes(best, alike):
        return f"{len(alike)} offers of different sizes fit"
    if best.identity:
        return ""
    if prices_differ(alike, rules):
        return f"{len(alike)} offers fit equally well and their prices differ"
    return is_variant_unknown(best, alike)


def is_variant_unknown(best: Score, alike: Sequence[Score]) -> str:
    """Returns why the variant is unknown: the list names something that none of them has, perhaps
    the colour or size in which they differ from each other, which would be yet another one."""
    unknown = _unknown(best)
    others = [each for each in alike if _is_sibling(each, best)]
    if not (unknown and others):
        return ""
    return f"{len(others) + 1} variants fit, and none is said to be {', '.join(unknown[:3])}"


def has_other_sizes(best: Score, alike: Sequence[Score]) -> bool:
    return any(_has_other_size(each, best) for each in alike)


def _unknown(best: Score) -> list[str]:
    return sorted(word for word in best.missing if word.isalpha() and word not in VAGUE)


def _has_other_size(each: Score, best: Score) -> bool:
    """Whether it is another size.

    With the same article number it is the same product, whatever its title says."""
    if each.offer.gtin is not None and each.offer.gtin == best.offer.gtin:
        return False
    return any(
        numbers.isdisjoint(each.sizes.get(unit, numbers)) for unit, numbers in best.sizes.items()
    )


def _is_sibling(each: Score, best: Score) -> bool:
    """Whether the titles are the same except for a word or two."""
    differing = each.extra ^ best.extra
    is_other = bool(each.extra - best.extra) and bool(best.extra - each.extra)
    return is_other and len(differing) <= _MOST_DIFFERING and each.missing == best.missing


def prices_differ(rivals: Sequence[Score], rules: Rules) -> bool:
    """Whether prices differ too much.

    Offers that a list hardly describes, or by a word that none of them has, are different products:
    their prices may not differ."""
    prices = [each.offer.price_minor or 0 for each in rivals]
    is_described = rivals[0].named >= _HARDLY and not _unknown(rivals[0])
    if not is_described:
        tolerance = 0.0
    elif any(differ(each, rivals[0]) for each in rivals):
        tolerance = min(rules.tolerance, SAME_PRICE_OF_VARIANTS)
    else:
        tolerance = rules.tolerance
    return min(prices) < max(prices) * (1 - tolerance)


def differ(each: Score, best: Score) -> bool:
    """Whether each has something that the other does not: two variants, not two offers of one."""
    return bool(each.extra - best.extra) and bool(best.extra - each.extra)


def nearest_to_target(product: Product, alike: Sequence[Score], rules: Rules) -> Score | None:
    """Returns the one that costs what the list says, if the others do not."""
    target = product.price_minor
    if not target:
        return None
    near = [each for each in alike if _differs(each, target) <= _SAME_PRICE]
    others = [each for each in alike if each not in near]
    if len(near) != 1 or any(_differs(each, target) <= rules.tolerance for each in others):
        return None
    nearest = near[0]
    is_named = not any(kind_of(word) in _IDENTIFYING for word in nearest.missing)
    return nearest if is_named and nearest.fits and nearest.offer.trusted else None


def _differs(each: Score, target: int) -> float:
    return abs((each.offer.price_minor or 0) - target) / target


def far_from_target(product: Product, best: Score) -> str:
    target, price = product.price_minor, best.offer.price_minor or 0
    if not target or target / FAR_FROM_TARGET <= price <= target * FAR_FROM_TARGET:
        return ""
    return f"the list says {price_text(target, product.currency)}"


def is_near(each: Score, rules: Rules) -> bool:
    return max(each.value, each.likeness) >= rules.review
