"""Chooses which offer is the product's price, and says why in a way that a person can follow."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from statistics import median

from holdfast_catalog.deciding import evidence, likeliest, sureness
from holdfast_catalog.normalising.money import price_text
from holdfast_catalog.normalising.product import Product
from holdfast_catalog.normalising.remarks import is_unsure, without_own_words
from holdfast_catalog.normalising.wording import Wording
from holdfast_catalog.normalising.words import compact
from holdfast_catalog.offers import Offer
from holdfast_catalog.rivals import (
    FAR_FROM_TARGET,
    Rules,
    across,
    alike_offers,
    far_from_target,
    has_other_sizes,
    is_as_likely,
    is_near,
    nearest_to_target,
    says_more,
    why_unclear,
)
from holdfast_catalog.scoring import Score, Wanted, score
from holdfast_catalog.spelling import in_any, with_names_as_written
from holdfast_catalog.weighing import (
    FEWEST,
    is_same_thing,
    maker,
    siblings,
    weigh,
)

_FEWEST_FOR_ESTIMATE = 3
_FEWEST_OF_LINE = 2
_CLOSE = 0.05
_UNSURE = "the row is not sure what it is"


class Status(StrEnum):
    FOUND = "Found"
    ESTIMATED = "Estimated"
    REVIEW = "Manual Review"
    NONE = "No Market Price"


class Tier(StrEnum):
    """How a price was found, in the terms of the trade."""

    SERP = "SERP"  # an offer of a trusted shop
    FALLBACK = "FALLBACK"  # an offer of another shop
    AGGREGATED = "AGGREGATED"  # the median of several offers
    BASELINE = "BASELINE"  # no offer; what the list says that it cost
    NONE = ""


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
    fitting = [each for each in scores if is_identified(each, rules)]
    if fitting:
        return _identified(wanted, fitting, scores, rules)
    best = likeliest(scores)
    choice = None if best is None else _likely(wanted, best, scores, rules)
    return choice or _left(wanted, best, scores, rules)


def _left(wanted: Wanted, best: Score | None, scores: Sequence[Score], rules: Rules) -> Choice:
    """Leaves the choice to a person, if an offer is near."""
    near = [each for each in scores if is_near(each, rules)]
    if not near:
        reason = f"none of {len(scores)} offers fits" if scores else "no shop has an offer"
        return Choice(Status.NONE, reason, scores=scores)
    if best is near[0]:
        unclear = _why_left(wanted, best, scores, rules)
        if unclear:
            return Choice(Status.REVIEW, unclear, scores=scores)
    why = "; ".join(filter(None, (near[0].why, far_from_target(wanted.product, near[0]))))
    reason = f"no offer is certain; the nearest: {near[0].offer.title} ({why})"
    return Choice(Status.REVIEW, reason, scores=scores)


def _why_left(wanted: Wanted, best: Score, scores: Sequence[Score], rules: Rules) -> str:
    """Returns which other offers may be meant; empty if none."""
    if is_unsure(wanted.product):
        return _UNSURE
    unclear = why_unclear(best, alike_offers(best, scores, rules), rules)
    if unclear:
        return unclear
    others = siblings(wanted, best, scores)
    if others:
        return f"the row does not say which of {len(others) + 1} products of the maker it is"
    likely = [each for each in scores if is_as_likely(each, best)]
    likely = likely or across(wanted.product, best, scores)
    return f"{len(likely) + 1} offers are about as likely" if likely else ""


def wanted_among(product: Product, offers: Sequence[Offer]) -> Wanted:
    """Returns what is compared.

    If the row names the maker of an offer before its details, names in the details that no offer
    has describe people's homes and what happened: SUV, punctured."""
    product = _with_makers_as_offered(product, offers)
    named = compact(f"{product.brand} {product.item_description}")
    makers = {compact(each.brand) for each in offers} - {compact(product.item_description), ""}
    titles = [Wording.of(f"{each.brand} {each.title} {each.model}") for each in offers]
    if any(maker in named for maker in makers):
        details = Wording.of(product.description)
        product = without_own_words(product, lambda word: in_any(word, details, titles))
    return Wanted.of(product, frozenset().union(*(each.words for each in titles)))


def _with_makers_as_offered(product: Product, offers: Sequence[Offer]) -> Product:
    """Writes makers as offers do: Kid Kraft and Lazyboy become KidKraft and La-Z-Boy."""
    makers = {compact(each.brand): each.brand for each in offers if each.brand}
    return replace(
        product,
        brand=with_names_as_written(product.brand, makers),
        item_description=with_names_as_written(product.item_description, makers),
        description=with_names_as_written(product.description, makers),
    )


def compared(wanted: Wanted, offers: Sequence[Offer], rules: Rules) -> list[Score]:
    """Compares each offer with the product, and with the other offers."""
    scores = [score(wanted, offer) for offer in _distinct(offers)]
    _accept_names_of_lines(scores)
    for each in scores:
        _check_price(wanted.product, each, rules)
    weigh(wanted, scores)
    return scores


def is_identified(each: Score, rules: Rules) -> bool:
    return not (each.by_words or each.vetoes) and each.value >= rules.accept


def baseline(product: Product, choice: Choice) -> Choice:
    """Returns the list's own price if no shop has an offer."""
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


def _identified(
    wanted: Wanted, fitting: Sequence[Score], scores: Sequence[Score], rules: Rules
) -> Choice:
    """Chooses an offer whose number says which product it is."""
    best, product = fitting[0], wanted.product
    is_asked = is_unsure(product) and not best.identity
    alike = alike_offers(best, scores, rules)
    unclear = _UNSURE if is_asked else why_unclear(best, alike, rules)
    if unclear:
        return Choice(Status.REVIEW, unclear, scores=scores)
    far = far_from_target(product, best)
    if far and not best.identity:
        return Choice(Status.REVIEW, f"{best.offer.title}: {far}", scores=scores)
    rivals = [each for each in fitting if best.value - each.value <= _CLOSE]
    if not best.identity:
        rivals = [each for each in rivals if not says_more(each, best)]
    return _accepted(rivals, scores, rules, far)


def _likely(wanted: Wanted, best: Score, scores: list[Score], rules: Rules) -> Choice | None:
    """Chooses an offer by its words alone; returns None if it is not likely enough."""
    best.value = sureness(evidence(wanted, best, scores, rules))
    scores.sort(key=lambda each: each is not best)
    if len(scores) < FEWEST and best.same_model == 1.0:
        is_sure = not has_other_sizes(best, alike_offers(best, scores, rules))
    elif len(scores) < FEWEST and _why_left(wanted, best, scores, rules):
        # The weights were fitted to rows with many offers: between two, only the price chooses.
        alike = alike_offers(best, scores, rules)
        is_sure = nearest_to_target(wanted.product, alike, rules) is best
    else:
        is_sure = best.value >= rules.accept
    if not is_sure:
        return None
    far = far_from_target(wanted.product, best)
    if far:
        return Choice(Status.REVIEW, f"{best.offer.title}: {far}", scores=scores)
    same = [each for each in scores if each.fits and is_same_thing(each, best)]
    others = [each for each in same if each is not best]
    return _accepted([best, *others], scores, rules, "")


def _accepted(rivals: Sequence[Score], scores: Sequence[Score], rules: Rules, note: str) -> Choice:
    trusted = [each for each in rivals if each.offer.trusted]
    apart = _far_apart((trusted or rivals)[0], rivals, rules)
    if apart:
        return Choice(Status.REVIEW, apart, scores=scores)
    if not trusted:
        return _estimated(rivals, scores)
    offer = trusted[0].offer
    reason = "; ".join(filter(None, (trusted[0].why, note)))
    return Choice(Status.FOUND, reason, Tier.SERP, offer, offer.price_minor, scores)


def _far_apart(chosen: Score, rivals: Sequence[Score], rules: Rules) -> str:
    """Returns why two prices of one product leave the choice to a person: with a third, the odd one
    would be known (see `_mark_bait`)."""
    same = [each for each in rivals if _has_same_number(each, chosen)]
    prices = sorted(each.offer.price_minor or 0 for each in same)
    if len(prices) != _FEWEST_FOR_ESTIMATE - 1 or prices[0] >= rules.bait * prices[-1]:
        return ""
    low, high = (price_text(price, chosen.offer.currency) for price in prices)
    return f"one offer of this product costs {low}, the other {high}"


def _has_same_number(each: Score, other: Score) -> bool:
    same_article = bool(each.identity and other.identity)
    return same_article or each.same_model == other.same_model == 1.0


def _estimated(rivals: Sequence[Score], scores: Sequence[Score]) -> Choice:
    """Returns an estimate if only shops that are not trusted have it."""
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
    """Removes repeated offers: the same one may come from several queries."""
    seen = {(o.source, o.url or o.title, o.price_minor): o for o in reversed(offers)}
    return list(reversed(seen.values()))


def _accept_names_of_lines(scores: Sequence[Score]) -> None:
    """Accepts words that every offer of a maker has: they do not distinguish its variants (EGO
    Power+). After a number they do: iPhone 15 Pro."""
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
    elif offer.price_minor * FAR_FROM_TARGET < (product.price_minor or 0):
        each.vetoes.append(f"far below {price_text(product.price_minor or 0, product.currency)}")


def _mark_bait(scores: Sequence[Score], rules: Rules) -> None:
    """Marks offers far below the others of the same product: they are not real."""
    fitting = [
        each
        for each in scores
        if each.fits and (each.value >= rules.accept or each.same_model == 1.0)
    ]
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


def _rank(each: Score, rules: Rules) -> tuple[bool, bool, bool, float, int, int, bool, int]:
    """Returns the sort key: offers of something like it first, those that could be accepted before
    the others, then by score, what comes with them, what else they say, trust, price."""
    offer, extra = each.offer, 0 if each.identity else len(each.extra)
    price = offer.price_minor if offer.price_minor is not None else 2**62
    return (
        not is_near(each, rules),
        bool(each.vetoes),
        bool(each.unnamed) and not each.identity,
        -round(each.value, 2),
        0 if each.identity else each.surplus,
        extra,
        not offer.trusted,
        price,
    )
