"""Which offer is the product's price, and why: a choice that a person can follow."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from statistics import median

from holdfast.pipelines.catalog.normalising.money import price_text
from holdfast.pipelines.catalog.normalising.product import Product
from holdfast.pipelines.catalog.normalising.remarks import without_own_words
from holdfast.pipelines.catalog.normalising.vocabulary import Kind, kind_of
from holdfast.pipelines.catalog.normalising.wording import Wording
from holdfast.pipelines.catalog.normalising.words import compact
from holdfast.pipelines.catalog.offers import Offer
from holdfast.pipelines.catalog.scoring import VAGUE, Score, Wanted, score
from holdfast.pipelines.catalog.spelling import in_any, with_names_as_written
from holdfast.pipelines.catalog.variants import is_code
from holdfast.pipelines.catalog.weighing import (
    SAME_PRICE_OF_VARIANTS,
    TELLING,
    is_same_thing,
    maker,
    siblings,
    weigh,
)

_FEWEST_FOR_ESTIMATE = 3
_FEWEST_OF_LINE = 2
_CLOSE = 0.05
_FAR_FROM_TARGET = 3.0
_MOST_DIFFERING = 4
_AS_WELL = 0.02
_AS_LIKELY = 0.6
_SURE_WITH_DOUBTS = 0.7
_ALMOST_AS_WELL = 0.12
_IDENTIFYING = (Kind.NAME, Kind.NUMBER, Kind.THING)
_HARDLY = 0.33
_SAME_PRICE = 0.10
_ABOUT_AS_FAR = 1.5


class Status(StrEnum):
    FOUND = "Found"
    ESTIMATED = "Estimated"
    REVIEW = "Manual Review"
    NONE = "No Market Price"


class Tier(StrEnum):
    """How a price was found, in the words of the trade."""

    SERP = "SERP"  # an offer of a trusted shop
    FALLBACK = "FALLBACK"  # an offer of another shop
    AGGREGATED = "AGGREGATED"  # the median of several offers
    BASELINE = "BASELINE"  # no offer; what the list says that it cost
    NONE = ""


@dataclass(frozen=True, slots=True)
class Rules:
    currency: str
    accept: float
    review: float
    tolerance: float
    bait: float


@dataclass(frozen=True, slots=True)
class Choice:
    status: Status
    reason: str
    tier: Tier = Tier.NONE
    offer: Offer | None = None
    price_minor: int | None = None
    scores: Sequence[Score] = field(default=())  # the best first

    @property
    def is_priced(self) -> bool:
        return self.status in (Status.FOUND, Status.ESTIMATED)


def choose(product: Product, offers: Sequence[Offer], rules: Rules) -> Choice:
    wanted = wanted_among(product, offers)
    scores = compared(wanted, offers, rules)
    _mark_bait(scores, rules)
    scores.sort(key=lambda each: _rank(each, rules))
    for each in scores:
        if each.contradictions:
            reason = f"the article number is that of {each.offer.title}: {each.contradictions[0]}"
            return Choice(Status.REVIEW, reason, scores=scores)
    fitting = [each for each in scores if _is_sure(each, rules)]
    if fitting:
        return _chosen(wanted, fitting, scores, rules)
    near = [each for each in scores if _is_near(each, rules)]
    if near:
        best = near[0]
        why = "; ".join(filter(None, (best.why, _far_from_target(product, best))))
        reason = f"no offer is certain; the nearest: {best.offer.title} ({why})"
        return Choice(Status.REVIEW, reason, scores=scores)
    reason = f"none of {len(scores)} offers fits" if scores else "no shop has an offer"
    return Choice(Status.NONE, reason, scores=scores)


def wanted_among(product: Product, offers: Sequence[Offer]) -> Wanted:
    """If the row names the maker of an offer before its details, names in these that no offer has
    are what people say of their homes and of what happened: SUV, punctured."""
    product = _with_makers_as_offered(product, offers)
    named = compact(f"{product.brand} {product.item_description}")
    makers = {compact(each.brand) for each in offers} - {compact(product.item_description), ""}
    if any(maker in named for maker in makers):
        titles = [Wording.of(f"{each.brand} {each.title}") for each in offers]
        details = Wording.of(product.description)
        product = without_own_words(product, lambda word: in_any(word, details, titles))
    return Wanted.of(product)


def _with_makers_as_offered(product: Product, offers: Sequence[Offer]) -> Product:
    """Kid Kraft and Lazyboy as KidKraft and La-Z-Boy."""
    makers = {compact(each.brand): each.brand for each in offers if each.brand}
    return replace(
        product,
        item_description=with_names_as_written(product.item_description, makers),
        description=with_names_as_written(product.description, makers),
    )


def compared(wanted: Wanted, offers: Sequence[Offer], rules: Rules) -> list[Score]:
    """Each offer with the product, and with the other offers."""
    scores = [score(wanted, offer) for offer in _distinct(offers)]
    _accept_names_of_lines(scores)
    for each in scores:
        _check_price(wanted.product, each, rules)
    weigh(wanted, scores)
    return scores


def is_unclear(best: Score, scores: Sequence[Score], rules: Rules) -> bool:
    """Whether a person chooses between this offer and others, however likely it is."""
    return bool(_unclear(best, _alike(best, scores, rules), rules))


def _is_sure(each: Score, rules: Rules) -> bool:
    least = max(rules.accept, _SURE_WITH_DOUBTS) if each.doubts else rules.accept
    return not each.vetoes and each.value >= least


def _is_near(each: Score, rules: Rules) -> bool:
    return max(each.value, each.likeness) >= rules.review


def baseline(product: Product, choice: Choice) -> Choice:
    """What the list itself says, where no shop has an offer."""
    if choice.status is not Status.NONE or product.price_minor is None:
        return choice
    text = price_text(product.price_minor, product.currency)
    return replace(
        choice,
        status=Status.ESTIMATED,
        reason=f"{choice.reason}; the list says {text}",
        tier=Tier.BASELINE,
        price_minor=product.price_minor,
    )


def _chosen(
    wanted: Wanted, fitting: Sequence[Score], scores: Sequence[Score], rules: Rules
) -> Choice:
    best, product = fitting[0], wanted.product
    rivals = [each for each in fitting if best.value - each.value <= _CLOSE]
    if not best.identity:
        rivals = [each for each in rivals if not _says_more(each, best)]
    alike = _alike(best, scores, rules)
    is_asked = "?" in product.item_description and not best.identity
    unclear = "the row asks itself what it is" if is_asked else _unclear(best, alike, rules)
    others = [] if unclear else siblings(wanted, best, scores)
    if others:
        alike = [best, *others]
        unclear = f"the row does not say which of {len(alike)} products of the maker it is"
    likely = [] if unclear or best.identity else [e for e in scores if _is_as_likely(e, best)]
    likely += [] if unclear or likely else _across(product, best, scores)
    if likely:
        alike = [best, *likely]
        unclear = f"{len(alike)} offers are about as likely"
    nearest = _nearest_to_target(product, alike, rules) if unclear else None
    if nearest is not None and not best.identity:
        offer, price = nearest.offer, price_text(product.price_minor or 0, product.currency)
        reason = f"{nearest.why}; of {len(alike)} offers the one near {price}, as the list says"
        return Choice(Status.FOUND, reason, Tier.SERP, offer, offer.price_minor, scores)
    if unclear:
        return Choice(Status.REVIEW, unclear, scores=scores)
    far = _far_from_target(product, best)
    if far and not best.identity:
        return Choice(Status.REVIEW, f"{best.offer.title}: {far}", scores=scores)
    trusted = [each for each in rivals if each.offer.trusted]
    if trusted:
        offer = trusted[0].offer
        reason = "; ".join(filter(None, (trusted[0].why, far)))
        return Choice(Status.FOUND, reason, Tier.SERP, offer, offer.price_minor, scores)
    return _estimated(rivals, scores)


def _estimated(rivals: Sequence[Score], scores: Sequence[Score]) -> Choice:
    """Only shops that are not trusted have it."""
    prices = [each.offer.price_minor or 0 for each in rivals]
    offer = rivals[0].offer
    if len(rivals) >= _FEWEST_FOR_ESTIMATE:
        price = round(median(prices))
        text = price_text(price, offer.currency)
        reason = f"the median of {len(prices)} offers of shops that are not trusted, {text}"
        return Choice(Status.ESTIMATED, reason, Tier.AGGREGATED, offer, price, scores)
    reason = f"only {offer.source}, which is not trusted, has it"
    return Choice(Status.ESTIMATED, reason, Tier.FALLBACK, offer, offer.price_minor, scores)


def _distinct(offers: Sequence[Offer]) -> list[Offer]:
    """The same offer may come from several queries."""
    seen = {(o.source, o.url or o.title, o.price_minor): o for o in reversed(offers)}
    return list(reversed(seen.values()))


def _accept_names_of_lines(scores: Sequence[Score]) -> None:
    """A word that every offer of a maker has does not tell its variants apart: EGO Power+. Behind
    a number it does: iPhone 15 Pro."""
    if not any(each.unnamed for each in scores):
        return
    makers: defaultdict[str, list[Score]] = defaultdict(list)
    for each in scores:
        makers[maker(each.offer)].append(each)
    for each in scores:
        own = makers[maker(each.offer)]
        if each.unnamed and len({other.offer.title for other in own}) >= _FEWEST_OF_LINE:
            each.unnamed = [word for word in each.unnamed if not _names_line(word, own)]


def _names_line(word: str, offers: Sequence[Score]) -> bool:
    for each in offers:
        tokens = Wording.of(each.offer.title).tokens
        if word not in tokens or any(map(str.isdecimal, tokens[tokens.index(word) - 1])):
            return False
    return True


def _check_price(product: Product, each: Score, rules: Rules) -> None:
    offer = each.offer
    if offer.flaw:
        each.vetoes.append(offer.flaw)
    elif offer.price_minor is None:
        each.vetoes.append("without a price")
    elif offer.currency != (product.currency or rules.currency):
        each.vetoes.append(f"the price is in {offer.currency}")
    elif offer.price_minor * _FAR_FROM_TARGET < (product.price_minor or 0):
        each.vetoes.append(f"far below {price_text(product.price_minor or 0, product.currency)}")


def _mark_bait(scores: Sequence[Score], rules: Rules) -> None:
    """An offer far below the others of the same product is not one to be had."""
    fitting = [each for each in scores if each.fits and each.value >= rules.accept]
    for each in fitting:
        same = [other for other in fitting if is_same_thing(each, other)]
        middle = median(other.offer.price_minor or 0 for other in same)
        if (
            len(same) >= _FEWEST_FOR_ESTIMATE
            and (each.offer.price_minor or 0) < rules.bait * middle
        ):
            each.bait = True
    for each in fitting:
        if each.bait:
            each.vetoes.append("far below the other offers of this product")


def _alike(best: Score, scores: Sequence[Score], rules: Rules) -> list[Score]:
    """The offers that the list's words fit as well as the best. With several, the list is not
    precise, and may mean a variant that it does not name, too."""
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
    as_well = _is_near(each, rules) and each.lacking - best.lacking < most
    return as_well and _is_no_worse(each, best) and not _says_more(each, best)


def _is_as_likely(each: Score, best: Score) -> bool:
    """And costs something else, or differs from the row as the best does: it may be neither."""
    if not (each.by_words and _is_no_worse(each, best)):
        return False
    if each is best or _says_more(each, best) or (is_same_thing(each, best) and not best.doubts):
        return False
    one, other = sorted((each.offer.price_minor or 0, best.offer.price_minor or 0))
    is_other = bool(best.doubts) or one < other * (1 - SAME_PRICE_OF_VARIANTS)
    return is_other and each.value >= _AS_LIKELY * best.value


def _across(product: Product, best: Score, scores: Sequence[Score]) -> list[Score]:
    """Offers of the maker that are about as far from what the list says that it costs, on the other
    side, and lack a word at most: the price does not say which one is meant."""
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
    """Nothing speaks against it that does not speak against the best."""
    return not each.vetoes and each.doubts.keys() <= best.doubts.keys()


def _says_more(each: Score, best: Score) -> bool:
    """One that says all that the best says, and more, is another variant."""
    if _has_other_size(each, best):
        return False
    own, other = ({word for word in score.extra if not is_code(word)} for score in (best, each))
    return own < other or best.extra < each.extra or best.surplus < each.surplus


def _unclear(best: Score, alike: Sequence[Score], rules: Rules) -> str:
    """Why the list does not say which of some offers it means; empty if it does."""
    if any(_has_other_size(each, best) for each in alike):
        return f"{len(alike)} offers of different sizes fit"
    if best.identity:
        return ""
    if _disagree(alike, rules):
        return f"{len(alike)} offers fit equally well and their prices differ"
    # The list names something that none of them has: perhaps the colour or size in which they
    # differ from each other, which would be yet another one.
    unknown = _unknown(best)
    others = [each for each in alike if _is_sibling(each, best)]
    if unknown and others:
        return f"{len(others) + 1} variants fit, and none is said to be {', '.join(unknown[:3])}"
    return ""


def _unknown(best: Score) -> list[str]:
    return sorted(word for word in best.missing if word.isalpha() and word not in VAGUE)


def _has_other_size(each: Score, best: Score) -> bool:
    """With the same article number it is the same product, whatever its title says."""
    if each.offer.gtin is not None and each.offer.gtin == best.offer.gtin:
        return False
    return any(
        numbers.isdisjoint(each.sizes.get(unit, numbers)) for unit, numbers in best.sizes.items()
    )


def _is_sibling(each: Score, best: Score) -> bool:
    """The same title but for a word or two."""
    differing = each.extra ^ best.extra
    is_other = bool(each.extra - best.extra) and bool(best.extra - each.extra)
    return is_other and len(differing) <= _MOST_DIFFERING and each.missing == best.missing


def _disagree(rivals: Sequence[Score], rules: Rules) -> bool:
    """Offers that a list hardly describes, or by a word that none of them has, are different
    products: their prices may not differ."""
    prices = [each.offer.price_minor or 0 for each in rivals]
    is_described = rivals[0].named >= _HARDLY and not _unknown(rivals[0])
    if not is_described:
        tolerance = 0.0
    elif any(_differ(each, rivals[0]) for each in rivals):
        tolerance = min(rules.tolerance, SAME_PRICE_OF_VARIANTS)
    else:
        tolerance = rules.tolerance
    return min(prices) < max(prices) * (1 - tolerance)


def _differ(each: Score, best: Score) -> bool:
    """Each has something that the other has not: two variants, not two offers of one."""
    return bool(each.extra - best.extra) and bool(best.extra - each.extra)


def _nearest_to_target(product: Product, alike: Sequence[Score], rules: Rules) -> Score | None:
    """The one that costs what the list says, if the others do not."""
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


def _far_from_target(product: Product, best: Score) -> str:
    target, price = product.price_minor, best.offer.price_minor or 0
    if not target or target / _FAR_FROM_TARGET <= price <= target * _FAR_FROM_TARGET:
        return ""
    return f"the list says {price_text(target, product.currency)}"


def _rank(each: Score, rules: Rules) -> tuple[bool, bool, bool, float, int, int, bool, int]:
    """Offers of something like it first, those that could be accepted before the others, then by
    score, what comes with them, what they say besides, trust, price."""
    offer, extra = each.offer, 0 if each.identity else len(each.extra)
    price = offer.price_minor if offer.price_minor is not None else 2**62
    return (
        not _is_near(each, rules),
        bool(each.vetoes),
        bool(each.unnamed) and not each.identity,
        -round(each.value, 2),
        0 if each.identity else each.surplus,
        extra,
        not offer.trusted,
        price,
    )
