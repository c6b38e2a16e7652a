"""Weighs how likely an offer is the product, by comparing its words with those of the other
offers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from math import exp, fsum, log
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast_catalog.normalising.vocabulary import GENERIC, Kind, kind_of
from holdfast_catalog.normalising.wording import Wording
from holdfast_catalog.normalising.words import compact
from holdfast_catalog.offers import Offer
from holdfast_catalog.variants import is_code

if TYPE_CHECKING:
    from holdfast_catalog.scoring import Score, Wanted

#: Fitted to the labelled lists by `python -m bench.quality fit`.
_FILE = Path(__file__).with_name("weights.json")
_WORTH = {
    Kind.NUMBER: 1.2, Kind.NAME: 1.0, Kind.THING: 0.7, Kind.DESCRIBING: 0.5, Kind.REMARK: 0.1,
}  # fmt: skip
_LONG, _SHORT = 5, 3
_LEAST_RARITY = 0.2
_ENOUGH = 3.0
_MANY = 4
FEWEST = 3
_SURE_ALONE, _SURE_OF_TWO = 0.72, 0.4
_MOSTLY = 0.75
_VOWELS = frozenset("aeiouy")
#: What all of a kind are, so that titles leave it out.
_PLAIN = GENERIC | {"console"}
_WORTH_PLAIN = 0.2
_HALF, _HARDLY = 0.5, 0.1
_AS_WELL = 0.02
_MOST_SPELLINGS = 2
_SAME_PRICE, _NEAR_PRICE = 0.1, 0.35
_CACHED = 8192
_FAR_BEHIND = -1.0
_SLIGHT = 0.1
_OTHER = frozenset(("other_thing", "accessory", "not_itself", "like_code"))
_STEEP = 50.0
#: Doubts that do not count against an offer of the brand and model that the row names.
_OF_WORDS = frozenset(("other_numbers", "no_number", "other_code", "other_name", "hardly"))
TELLING = (Kind.NAME, Kind.NUMBER, Kind.DESCRIBING)
SAME_PRICE_OF_VARIANTS = 0.06
_OTHER_SCALE = 3.0
_WIDE = 3.0
DOUBTS = (
    "other_thing", "product_itself", "other_numbers", "no_number", "other_size", "other_name",
    "other_code", "other_variant", "accessory", "no_accessory", "without_variant", "exclusive",
    "other_color", "other_letters", "other_letter", "other_pack", "like_code", "other_maker",
    "hardly", "not_itself", "other_model",
)  # fmt: skip


@lru_cache(maxsize=_CACHED)
def worth(word: str) -> float:
    """Returns how much a word says about which product it is, whatever the offers have."""
    kind = kind_of(word)
    if word in _PLAIN:
        return _WORTH_PLAIN
    length = max(min(len(word), _LONG), _SHORT) / _LONG if kind is Kind.NAME else 1.0
    return _WORTH[kind] * length


@dataclass(frozen=True, slots=True)
class Field:
    """The words of a row among its offers: a word that one of many has tells more than one that all
    have."""

    words: frozenset[str]
    unknown: frozenset[str]  # words that no offer has
    worth: Mapping[str, float]
    total: float
    known: float  # the part of the total that any offer has

    @classmethod
    def of(cls, words: frozenset[str], scores: Sequence[Score]) -> Field:
        having = {word: sum(word not in each.missing for each in scores) for word in words}
        values = {word: worth(word) * _rarity(having[word], len(scores)) for word in words}
        unknown = frozenset(word for word, number in having.items() if not number)
        # Exact sums, because the order of words differs from process to process.
        total = fsum(values.values()) or 1.0
        return cls(words, unknown, values, total, total - fsum(values[word] for word in unknown))

    def share(self, words: Iterable[str]) -> float:
        return fsum(self.worth[word] for word in words) / self.total

    def lacking(self, each: Score) -> float:
        """Returns the share of what the offers know that this one does not have."""
        missing = each.missing - self.unknown
        return self.share(missing) * self.total / self.known if self.known else 1.0


def _rarity(having: int, count: int) -> float:
    return 1.0 - (1.0 - _LEAST_RARITY) * log(having) / log(count) if having > 1 else 1.0


def weigh(wanted: Wanted, scores: Sequence[Score]) -> None:
    """Sets the value of the offers that are compared by their words."""
    field = Field.of(wanted.wording.words, scores)
    for each in scores:
        each.lacking = field.lacking(each)
        each.excess = _excess(each)
        each.missed = fsum(map(worth, each.missing))
    fitting = [each for each in scores if each.by_words and each.fits]
    unknown = field.words.intersection(*(each.missing for each in fitting))
    codes = [
        code
        for code in filter(is_code, wanted.numbers)
        if any(Wording.of(f"{each.offer.title} {each.offer.model}").has(code) for each in scores)
    ]
    for each in fitting:
        each.doubts |= _hardly(each) | _other_code(each, codes)
        each.doubts |= _other_name(wanted, each, unknown)
    is_compared = len(scores) >= FEWEST
    for each in scores:
        each.gap = _gap(each, scores) if is_compared else 0.0
        least = _SURE_ALONE if len(scores) == 1 else _SURE_OF_TWO
        each.vetoes += () if is_compared else _alone(each, field, least)
        if is_weighed(each):
            each.features = features(wanted, each, scores, field)
            each.value = likelihood(each.features, weights()["offer"])


def is_weighed(each: Score) -> bool:
    """Whether the weights decide about it: nothing rules it out, and no offer is far better.

    An offer that looks like another thing has to be ahead of all others, also of those that cannot
    be bought."""
    least = _FAR_BEHIND if each.doubts.keys().isdisjoint(_OTHER) else _SLIGHT
    is_near = each.gap >= least or bool(each.same_model)
    return each.by_words and not each.vetoes and is_near


def _gap(each: Score, scores: Sequence[Score]) -> float:
    others = (other.missed for other in scores if other is not each)
    least = min(others, default=_WIDE)
    if least > each.missed:  # the next may be the same thing under another title
        others = (other.missed for other in scores if not is_same_thing(each, other))
        least = min(others, default=_WIDE)
    return max(-_WIDE, min(least - each.missed, _WIDE))


def _other_code(each: Score, codes: Sequence[str]) -> dict[str, str]:
    """Returns a doubt if another offer has the number that the row says, and this one only begins
    or ends with it."""
    title = Wording.of(f"{each.offer.title} {each.offer.model}")
    wrong = [code for code in codes if code not in each.missing and not title.has(code)]
    return {"not_itself": f"not {', '.join(wrong)} itself"} if wrong else {}


def _is_full_name(word: str) -> bool:
    """Whether the word is not an abbreviation, which leaves out vowels."""
    return kind_of(word) is Kind.NAME and not _VOWELS.isdisjoint(word)


def _hardly(each: Score) -> dict[str, str]:
    is_like = each.shared >= _HALF or each.named >= _HARDLY or each.brand or each.same_model
    return {} if is_like else {"hardly": "has hardly a word of the row"}


def _other_name(wanted: Wanted, each: Score, unknown: frozenset[str]) -> dict[str, str]:
    """Returns a doubt that it is another product of the kind, though nothing contradicts it."""
    names = frozenset(word for word in each.missing & unknown if _is_full_name(word))
    other = _substitute(names, wanted.wording.tokens, each)
    return {"other_name": f"{other} instead of {', '.join(sorted(names))}"} if other else {}


def _alone(each: Score, field: Field, least: float) -> Iterator[str]:
    """Yields doubts if there is hardly another offer to compare it with: then every doubt counts,
    and so does the share of the words that it has."""
    for kind, doubt in each.doubts.items():
        if each.same_model < 1.0 or kind not in _OF_WORDS:
            yield doubt
    if each.unnamed and each.by_words:
        yield f"is {', '.join(each.unnamed)}"
    elif each.by_words and _sure_alone(each, field) < least:
        yield "too little of the row is in its title, without others to compare it with"


def _sure_alone(each: Score, field: Field) -> float:
    """Returns how certain it is alone: it may have no name that the row does not say instead of one
    that it says."""
    if each.same_model and each.brand:
        return 1.0
    names = _of_kind(each.missing, Kind.NAME)
    is_other = bool(names) and any(kind_of(word) is Kind.NAME for word in each.extra)
    if is_other and (each.shared < _MOSTLY or names - field.unknown):
        return 0.0
    shared = 1.0 - field.share(each.missing)
    return each.likeness * shared / each.shared if each.shared else 0.0


def features(
    wanted: Wanted, each: Score, scores: Sequence[Score], field: Field
) -> dict[str, float]:
    """Returns the evidence for and against an offer, each between -1 and 1."""
    return {
        "bias": 1.0,
        "evidence": min(fsum(map(worth, field.words - each.missing)), _ENOUGH) / _ENOUGH,
        "brand": each.brand,
        "unnamed_variant": float(bool(each.unnamed)),
        "other_number": float(each.has_other_number),
        "same_model": each.same_model,
        "like_model": float(each.has_like_model),
        "model_but_lacks": each.same_model * each.lacking,
        "model_elsewhere": _model_elsewhere(each, scores),
        **_lacks(wanted, each, field),
        **_compared(wanted, each, scores),
        **_price(wanted, each),
        **_amounts(wanted, each),
        **{f"doubt_{kind}": float(kind in each.doubts) for kind in DOUBTS},
        "siblings": float(bool(siblings(wanted, each, scores))),
    }


def _model_elsewhere(each: Score, scores: Sequence[Score]) -> float:
    """Returns whether another offer has the model that the row names."""
    most = max((other.same_model for other in scores if not other.vetoes), default=0.0)
    return max(0.0, most - each.same_model)


def _lacks(wanted: Wanted, each: Score, field: Field) -> dict[str, float]:
    """Returns how much it lacks of the row's words; those that no offer has may be the writer's
    own."""
    missing = {kind: _of_kind(each.missing, kind) for kind in Kind}
    names = missing[Kind.NAME]
    return {
        "complete": float(all(kind_of(word) is Kind.REMARK for word in each.missing)),
        "shared": 1.0 - field.share(each.missing),
        "lacks_known": each.lacking,
        "lacks_known_name": field.share(names - field.unknown),
        "lacks_name": float(bool(names)),
        "other_brand": float(bool(names and each.offer.brand) and not each.brand),
        "replaced": float(_has_replaced(each.missing - names, wanted.wording.tokens, each)),
        "lacks_thing": field.share(missing[Kind.THING] & field.unknown),
        "lacks_describing": field.share(missing[Kind.DESCRIBING] & field.unknown),
        "is_thing": float(each.is_thing),
        "lacks_head": float(wanted.wording.thing in each.missing and not each.is_thing),
    }


def _amounts(wanted: Wanted, each: Score) -> dict[str, float]:
    """Returns how much of the row it has and misses, whatever other offers have; and how much more
    the next best misses."""
    words = wanted.wording.words
    had = [kind_of(word) for word in words - each.missing]
    return {
        "gap_behind": min(each.gap, 0.0),
        "gap": min(max(each.gap, 0.0), 1.0),
        "gap_wide": min(max(each.gap - 1.0, 0.0), 1.0),
        "missed": min(each.missed, _ENOUGH),
        "had": min(fsum(map(worth, words)) - each.missed, 2 * _ENOUGH),
        "had_names": min(had.count(Kind.NAME), _MANY),
        "had_numbers": min(had.count(Kind.NUMBER), _MANY),
        "had_things": min(had.count(Kind.THING), _MANY),
        "had_describing": min(had.count(Kind.DESCRIBING), _MANY),
        "had_remarks": min(had.count(Kind.REMARK), _MANY),
        "words": min(len(words), 2 * _MANY),
        "likeness": each.likeness,
        "letters": each.shared,
        "named": each.named,
        "surplus": min(each.surplus, _MANY),
        "is_priced": float(bool(wanted.product.price_minor)),
    }


def _substitute(names: frozenset[str], tokens: Sequence[str], each: Score) -> str:
    """Returns the name that it has next to a word that both have, if the row has another name:
    Master of MX Master for MX Anywhere."""
    if not names:
        return ""
    own = Wording.of(each.offer.title).tokens
    for at, word in enumerate(tokens):
        for step in (-1, 1) if word in names else ():
            beside = tokens[at + step] if 0 <= at + step < len(tokens) else ""
            place = own.index(beside) - step if beside in own else -1
            other = own[place] if 0 <= place < len(own) else ""
            is_line = bool(each.brand) or kind_of(beside) is Kind.NAME
            if is_line and other in each.extra and kind_of(other) in (Kind.NAME, Kind.REMARK):
                return other
    return ""


def _has_replaced(words: frozenset[str], tokens: Sequence[str], each: Score) -> bool:
    """Whether its title has another word of the kind in the place of one of these: crunchy peanut
    butter, creamy peanut butter."""
    own = Wording.of(each.offer.title).tokens
    for first, second in pairwise(tokens):
        for word, beside, step in ((first, second, -1), (second, first, 1)):
            if word in words and beside in own:
                place = own.index(beside) + step
                other = own[place] if 0 <= place < len(own) else ""
                if other in each.extra and kind_of(other) is kind_of(word):
                    return True
    return False


def _compared(wanted: Wanted, each: Score, scores: Sequence[Score]) -> dict[str, float]:
    """Compares with the other offers: whether one has more of the row, or as much."""
    others = [other for other in scores if other is not each and not other.is_other_thing]
    rivals = [other for other in others if other.fits and not is_same_thing(each, other)]
    if _price(wanted, each)["price_near"]:  # the price says which of them is meant
        rivals = [other for other in rivals if _price(wanted, other)["price_near"]]
    fuller = [other for other in rivals if each.extra < other.extra]
    least = min((other.lacking for other in others), default=each.lacking)
    next_best = min((other.lacking for other in rivals if other not in fuller), default=1.0)
    as_good = [other for other in rivals if other.lacking - each.lacking < _AS_WELL]
    plainer = min((other.excess - each.excess for other in as_good), default=_MANY)
    named = max((other.named for other in as_good), default=0.0)
    return {
        "behind": max(0.0, each.lacking - least),
        "ahead": max(0.0, next_best - each.lacking),
        "plainer": max(-1.0, min(plainer / _MANY, 1.0)),
        "more_named": each.named - named,
        "has_fuller": float(any(other.lacking <= each.lacking for other in fuller)),
    }


def _price(wanted: Wanted, each: Score) -> dict[str, float]:
    """Compares the price.

    What a list says is often what it cost years ago: it costs more now, rarely less."""
    target, price = wanted.product.price_minor, each.offer.price_minor
    if not target or not price:
        return dict.fromkeys(("price_same", "price_near", "price_above", "price_below"), 0.0)
    distance = log(price / target)
    return {
        "price_same": max(0.0, 1.0 - abs(distance) / _SAME_PRICE),
        "price_near": max(0.0, 1.0 - abs(distance) / _NEAR_PRICE),
        "price_above": min(max(0.0, distance - _NEAR_PRICE), 1.0),
        "price_below": min(max(0.0, -distance - _SAME_PRICE), 1.0),
    }


def siblings(wanted: Wanted, best: Score, scores: Sequence[Score]) -> list[Score]:
    """Returns other products of the maker, of the same kind as far as their titles say, that lack
    nothing of the row but the word for it: the row says what kind of thing it was, and not which
    one."""
    if best.identity or not best.excess or not best.brand:
        return []
    said = [word for word in wanted.wording.words - best.missing if kind_of(word) in TELLING]
    return [
        each
        for each in scores
        if maker(each.offer) == maker(best.offer)
        and each.fits
        and each.excess
        and each.missing.isdisjoint(said)
        and (each.is_thing or not Wording.of(each.offer.title).thing)
        and _costs_otherwise(each, best)
        and not best.extra < each.extra
    ]


def _costs_otherwise(each: Score, best: Score) -> bool:
    """Whether the price differs as another product's of the kind does; one that costs a fraction is
    a part of it."""
    one, other = sorted((each.offer.price_minor or 0, best.offer.price_minor or 0))
    return other / _OTHER_SCALE <= one < other * (1 - SAME_PRICE_OF_VARIANTS)


def maker(offer: Offer) -> str:
    return compact(offer.brand or offer.title.partition(" ")[0])


def _of_kind(words: frozenset[str], kind: Kind) -> frozenset[str]:
    return frozenset(word for word in words if kind_of(word) is kind)


def _excess(each: Score) -> int:
    """Counts names and numbers that it has and the row does not say."""
    return sum(kind_of(word) in (Kind.NAME, Kind.NUMBER) for word in each.extra)


def is_same_thing(each: Score, other: Score) -> bool:
    """Whether the same words are said about both, and their titles are almost the same."""
    if each.identity and other.identity:
        return True
    if each.doubts.keys() != other.doubts.keys():
        return False
    if each.same_model == other.same_model == 1.0:
        return True
    if each.missing != other.missing:
        return False
    more, less = each.extra - other.extra, other.extra - each.extra
    return len(more) + len(less) <= _MOST_SPELLINGS and not (more and less)


@cache
def weights() -> Mapping[str, Mapping[str, float]]:
    """Returns the weights of an offer, and those of the choice."""
    values: Mapping[str, Mapping[str, float]] = json.loads(_FILE.read_text("utf-8"))
    return values


def likelihood(values: Mapping[str, float], by: Mapping[str, float]) -> float:
    total = sum(by.get(name, 0.0) * value for name, value in values.items())
    return 1.0 / (1.0 + exp(-max(-_STEEP, min(total, _STEEP))))
