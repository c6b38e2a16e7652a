"""How well an offer fits a product, and why."""

from __future__ import annotations

from dataclasses import dataclass, field

from holdfast.pipelines.catalog.normalising.product import Product
from holdfast.pipelines.catalog.normalising.words import compact, telling_words
from holdfast.pipelines.catalog.offers import Offer

#: Words that make an offer something else than the product, unless the list has them too.
_OTHER_THINGS = frozenset(
    [
        "case",
        "cover",
        "sleeve",
        "protector",
        "skin",
        "strap",
        "charger",
        "cable",
        "adapter",
        "mount",
        "bracket",
        "stand",
        "holder",
        "replacement",
        "compatible",
        "refurbished",
        "renewed",
        "used",
        "openbox",
        "preowned",
        "broken",
        "parts",
        "spare",
        "manual",
        "box",
        "only",
        "empty",
        "dummy",
        "replica",
        "style",
        "toy",
        "sticker",
        "decal",
        "poster",
        "bundle",
        "lot",
        "remote",
        "filter",
        "warranty",
        "subscription",
        "rental",
    ]
)
_SHORTEST_MODEL = 3
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

    @property
    def why(self) -> str:
        return "; ".join([*self.reasons, *self.vetoes])


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is compared of a product, computed once for all offers."""

    product: Product
    words: frozenset[str]
    numbers: frozenset[str]
    brand: str
    model: str

    @classmethod
    def of(cls, product: Product) -> Wanted:
        words = frozenset(telling_words(product.text))
        return cls(
            product,
            words,
            frozenset(word for word in words if _has_digit(word)),
            compact(product.brand),
            compact(product.model),
        )


def score(wanted: Wanted, offer: Offer) -> Score:
    result = Score(offer)
    title = compact(f"{offer.brand} {offer.title} {offer.model}")
    words = frozenset(telling_words(f"{offer.brand} {offer.title} {offer.model}"))
    same_number = _compare_numbers(wanted, offer, result)
    brand = _compare_brands(wanted, offer, title, result)
    model = _compare_models(wanted, offer, title, result)
    shared = result.shared = _shared_words(wanted, words, title)
    result.extra = words - wanted.words - frozenset(telling_words(offer.model))
    if same_number:
        result.value, result.identity = 1.0, True
    elif model:
        result.identity = bool(brand or wanted.product.brand == "") and len(wanted.model) > 3
        result.value = min(1.0, 0.70 + 0.15 * brand + 0.15 * shared)
    else:
        fit = _numbers_fit(wanted, words, title, result)
        result.value = 0.10 * brand + 0.90 * shared * fit * _precision(wanted, words, result)
    if not same_number:
        result.reasons.append(f"{shared:.0%} of the words")
    is_stated = same_number or (bool(wanted.model) and compact(offer.model) == wanted.model)
    _look_for_other_things(wanted, offer, words, result, is_stated)
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


def _compare_models(wanted: Wanted, offer: Offer, title: str, result: Score) -> bool:
    """Without a model in the list, one that its words name counts too."""
    own = compact(offer.model)
    if wanted.model:
        if own == wanted.model or (not own and _names_model(offer.title, wanted.model)):
            result.reasons.append("same model")
            return True
        result.vetoes.append(f"the model is {offer.model}" if own else "another or no model")
        return False
    is_named = (
        len(own) > _SHORTEST_MODEL and _has_digit(own) and _names_model(wanted.product.text, own)
    )
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


def _shared_words(wanted: Wanted, words: frozenset[str], title: str) -> float:
    """The share of the list's words that the offer has, in letters: long words say more."""
    total = sum(map(_weight, wanted.words))
    if not total:
        return 0.0
    return sum(_weight(word) for word in wanted.words if _occurs(word, words, title)) / total


def _precision(wanted: Wanted, words: frozenset[str], result: Score) -> float:
    """A few common words describe many products: the more of a title they leave open, the less
    they prove."""
    total = sum(map(_weight, words))
    named = sum(_weight(word) for word in words if word in wanted.words)
    share = named / total if total else 0.0
    if share >= _TELLING_SHARE:
        return 1.0
    result.reasons.append(f"{share:.0%} of the title")
    return 0.6 + 0.4 * share / _TELLING_SHARE


def _occurs(word: str, words: frozenset[str], title: str) -> bool:
    """Within a longer word only if it is not a number: 4070 is not in 4070ti."""
    if word in words:
        return True
    if len(word) <= _SHORTEST_MODEL or _has_digit(word):
        return False
    return word in title or any(_is_misspelt(word, other) for other in words)


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
    return min(len(word), 8) * (1.5 if _has_digit(word) else 1.0)


def _numbers_fit(wanted: Wanted, words: frozenset[str], title: str, result: Score) -> float:
    """Sizes and versions decide between products whose words are alike."""
    missing = [word for word in wanted.numbers if not _occurs(word, words, title)]
    if missing:
        result.reasons.append(f"without {', '.join(sorted(missing))}")
    other = [word for word in words if _has_digit(word) and word not in wanted.numbers]
    if wanted.numbers and missing and other:
        result.vetoes.append(f"{', '.join(sorted(other)[:3])} instead of"
                             f" {', '.join(sorted(missing)[:3])}")  # fmt: skip
    if not missing:
        return 1.0
    return 1.0 - 0.5 * len(missing) / len(wanted.numbers)


def _look_for_other_things(
    wanted: Wanted, offer: Offer, words: frozenset[str], result: Score, is_stated: bool
) -> None:
    """`is_stated`: the shop says itself that this is the model, not that it is for it."""
    others = sorted((words & _OTHER_THINGS) - wanted.words)
    if others and not is_stated:
        result.vetoes.append(f"looks like something else: {', '.join(others)}")
    if offer.condition in ("used", "refurbished") and wanted.product.condition == "":
        result.vetoes.append(f"is {offer.condition}")
    if not offer.in_stock:
        result.vetoes.append("is out of stock")


def _has_digit(word: str) -> bool:
    return any(map(str.isdigit, word))
