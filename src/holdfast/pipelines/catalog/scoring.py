"""How well an offer fits a product, and why."""

from __future__ import annotations

from dataclasses import dataclass, field

from holdfast.pipelines.catalog.normalising.product import Product
from holdfast.pipelines.catalog.normalising.wording import Wording
from holdfast.pipelines.catalog.normalising.words import compact, has_digit, telling_words
from holdfast.pipelines.catalog.offers import Offer
from holdfast.pipelines.catalog.variants import (
    other_pack,
    other_things,
    other_variants,
    unnamed_variants,
)

_SHORTEST_MODEL = 3
_SHORTEST_PLAIN_MODEL = 7  # without a digit: shorter ones may be words
_TELLING_SHARE = 0.45
_SHORTEST_MISSPELT = 5


@dataclass(slots=True)
class Score:
    """`value` from 0 to 1. A veto keeps the offer from being accepted, whatever its value."""

    offer: Offer
    value: float = 0.0
    identity: bool = False  # the same article number, or the same brand and model
    shared: float = 0.0  # the share of the list's words that it has
    extra: frozenset[str] = frozenset()  # what its title says besides
    reasons: list[str] = field(default_factory=list)
    vetoes: list[str] = field(default_factory=list)
    unnamed: list[str] = field(default_factory=list)  # it is a variant that the list does not name

    @property
    def fits(self) -> bool:
        return not (self.vetoes or self.unnamed)

    @property
    def why(self) -> str:
        unnamed = [f"is {', '.join(self.unnamed)}"] if self.unnamed else []
        return "; ".join([*self.reasons, *self.vetoes, *unnamed])


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is compared of a product, computed once for all offers."""

    product: Product
    wording: Wording
    numbers: frozenset[str]
    brand: str
    model: str

    @classmethod
    def of(cls, product: Product) -> Wanted:
        wording = Wording.of(product.text)
        numbers = frozenset(filter(has_digit, wording.words))
        return cls(product, wording, numbers, compact(product.brand), compact(product.model))


def score(wanted: Wanted, offer: Offer) -> Score:
    result = Score(offer)
    offered = Wording.of(f"{offer.brand} {offer.title} {offer.model}")
    model_words = frozenset(telling_words(offer.model)) - wanted.wording.words
    same_number = _compare_numbers(wanted, offer, result)
    brand = _compare_brands(wanted, offer, offered.text, result)
    model = _compare_models(wanted, offer, result)
    shared = result.shared = _shared_words(wanted.wording, offered)
    result.extra = offered.words - wanted.wording.words - model_words
    precision = _precision(wanted.wording, offered.words)
    if same_number:
        result.value, result.identity = 1.0, True
    elif model:
        result.identity = bool(brand or wanted.product.brand == "") and len(wanted.model) > 3
        result.value = min(1.0, 0.70 + 0.15 * brand + 0.15 * shared)
        result.vetoes += other_pack(wanted.wording, offered)
    else:
        fit = _numbers_fit(wanted, offered, model_words, result)
        result.value = 0.10 * brand + 0.90 * shared * fit * _telling(precision, result)
        result.vetoes += other_variants(wanted.wording, offered)
        result.unnamed = unnamed_variants(wanted.wording, offered)
    if not same_number:
        result.reasons.append(f"{shared:.0%} of the words")
    if not (same_number or (bool(wanted.model) and compact(offer.model) == wanted.model)):
        named = _precision(wanted.wording, offered.words - model_words - {"replacement"})
        result.vetoes += other_things(wanted.wording, offered, named)
    _look_at_state(wanted, offer, result)
    return result


def _compare_numbers(wanted: Wanted, offer: Offer, result: Score) -> bool:
    gtin = wanted.product.gtin
    if gtin is None or offer.gtin is None:
        return False
    if gtin == offer.gtin:
        result.reasons.append("same article number")
        return True
    result.vetoes.append("another article number")
    return False


def _compare_brands(wanted: Wanted, offer: Offer, title: str, result: Score) -> float:
    if not wanted.brand:
        # The list may name the brand among its words.
        own = compact(offer.brand)
        return 1.0 if own and own in compact(wanted.product.text) else 0.0
    if wanted.brand in title:
        result.reasons.append("same brand")
        return 1.0
    if offer.brand:
        result.vetoes.append(f"the brand is {offer.brand}")
    return 0.0


def _compare_models(wanted: Wanted, offer: Offer, result: Score) -> bool:
    """Without a model in the list, one that its words name counts too. A shop may name the model
    in the title and state another number: that of the maker, or its own."""
    own = compact(offer.model)
    if wanted.model:
        if own == wanted.model or _names_model(offer.title, wanted.model):
            result.reasons.append("same model")
            return True
        result.vetoes.append(f"the model is {offer.model}" if own else "another or no model")
        return False
    is_model = len(own) > (_SHORTEST_MODEL if has_digit(own) else _SHORTEST_PLAIN_MODEL)
    is_named = is_model and _names_model(wanted.product.text, own)
    if is_named:
        result.reasons.append("same model")
    return is_named


def _names_model(text: str, model: str) -> bool:
    """Whether whole words of a text make up the model: RTX 4070 names rtx4070, not rtx40."""
    words = [compact(word) for word in text.replace("/", " ").split()]
    for start in range(len(words)):
        joined = ""
        for word in words[start : start + 5]:
            joined += word
            if joined == model:
                return True
            if not model.startswith(joined):
                break
    return False


def _shared_words(wanted: Wording, offered: Wording) -> float:
    """The share of the list's words that the offer has, in letters: long words say more."""
    total = sum(map(_weight, wanted.words))
    if not total:
        return 0.0
    missing = _missing(wanted, wanted.words, offered)
    return 1.0 - sum(map(_weight, missing)) / total


def _missing(wanted: Wording, words: frozenset[str], offered: Wording) -> list[str]:
    joined = wanted.covered(offered)
    return [
        word
        for word in words
        if not (word in joined or _occurs(word, offered) or wanted.has_size(word, offered))
    ]


def _precision(wanted: Wording, words: frozenset[str]) -> float:
    """The share of a title that the list names."""
    total = sum(map(_weight, words))
    return sum(_weight(word) for word in words if wanted.has(word)) / total if total else 0.0


def _telling(precision: float, result: Score) -> float:
    """A few common words describe many products: the more of a title they leave open, the less
    they prove."""
    if precision >= _TELLING_SHARE:
        return 1.0
    result.reasons.append(f"{precision:.0%} of the title")
    return 0.6 + 0.4 * precision / _TELLING_SHARE


def _occurs(word: str, offered: Wording) -> bool:
    """Within a longer word only if it is not a number."""
    if offered.has(word):
        return True
    if len(word) <= _SHORTEST_MODEL or has_digit(word):
        return False
    return word in offered.text or any(_is_misspelt(word, other) for other in offered.words)


def _is_misspelt(word: str, other: str) -> bool:
    """Whether one letter is wrong, missing or too many, or two have changed places."""
    if len(word) < _SHORTEST_MISSPELT or abs(len(word) - len(other)) > 1 or word[0] != other[0]:
        return False
    at = next((at for at, (a, b) in enumerate(zip(word, other, strict=False)) if a != b), None)
    if at is None:
        return True
    a, b = word[at:], other[at:]
    return a[1:] == b[1:] or a[1:] == b or a == b[1:] or (a[:2] == b[1::-1] and a[2:] == b[2:])


def _weight(word: str) -> float:
    return min(len(word), 8) * (1.5 if has_digit(word) else 1.0)


def _numbers_fit(
    wanted: Wanted, offered: Wording, model_words: frozenset[str], result: Score
) -> float:
    """Sizes and versions decide between products whose words are alike."""
    missing = _missing(wanted.wording, wanted.numbers, offered)
    if not missing:
        return 1.0
    result.reasons.append(f"without {', '.join(sorted(missing))}")
    known = wanted.numbers | model_words | offered.covered(wanted.wording)
    numbers = (word for word in offered.words if has_digit(word) and word not in known)
    other = [word for word in numbers if not offered.has_size(word, wanted.wording)]
    if other:
        result.vetoes.append(f"{', '.join(sorted(other)[:3])} instead of"
                             f" {', '.join(sorted(missing)[:3])}")  # fmt: skip
    return 1.0 - 0.5 * len(missing) / len(wanted.numbers)


def _look_at_state(wanted: Wanted, offer: Offer, result: Score) -> None:
    if offer.condition in ("used", "refurbished") and wanted.product.condition == "":
        result.vetoes.append(f"is {offer.condition}")
    if not offer.in_stock:
        result.vetoes.append("is out of stock")
