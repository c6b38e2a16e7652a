"""How well an offer fits a product, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from string import ascii_lowercase, digits

from holdfast.pipelines.catalog.normalising.product import Product
from holdfast.pipelines.catalog.normalising.wording import Wording
from holdfast.pipelines.catalog.normalising.words import compact, has_digit, telling_words
from holdfast.pipelines.catalog.offers import Offer
from holdfast.pipelines.catalog.variants import (
    begins_code,
    is_code,
    missing_accessory,
    more_sizes,
    not_new,
    other_pack,
    other_things,
    other_variants,
    several_things,
    tells_apart,
    unnamed_variants,
)

_SHORTEST_MODEL = 3
_SHORTEST_PLAIN_MODEL = 7  # without a digit: shorter ones may be words
_TELLING_SHARE = 0.45
_SHARED_WITH_SKU = 0.4
_MOSTLY = 0.75
_NEAR = 0.5
_UNKNOWN = 0.25
_SHARED_BY_NAME = 0.4
_FEWEST_SHARED = 3
_MOST_DIFFERING = 3
_CACHED_WORDS = 8192
_SHORTEST_MISSPELT = 5
#: Words of a list that titles leave out.
VAGUE = frozenset(
    ["can", "cans", "bottle", "bottles", "jar", "tube", "bag", "box", "tub", "unit", "device",
     "machine", "generic", "unbranded", "color", "size", "good", "condition", "old", "genuine",
     "original", "approximately", "pair"]
)  # fmt: skip
_NO_BRAND = frozenset(("generic", "unbranded", "nobrand", "noname"))
_LETTER_SIZES = {
    "s": "small", "m": "medium", "l": "large", "small": "s", "medium": "m", "large": "l",
}  # fmt: skip
_VOWELS = frozenset("aeiou")
_SHORTEST_PREFIX = 3
_SHORTEST_STEM = 4
_ENDINGS = ("ings", "ing", "ers", "er", "ors", "or", "es", "ed", "s", "e")
_SERIES = frozenset(("series", "gen", "generation", "mark", "mk", "version"))
#: What companies have in their names besides.
_LEGAL = frozenset(("inc", "corp", "co", "company", "electronics", "ltd", "llc", "gmbh", "usa"))


@dataclass(slots=True)
class Score:
    """`value` from 0 to 1. A veto keeps the offer from being accepted, whatever its value."""

    offer: Offer
    value: float = 0.0
    identity: bool = False  # the same article number, or the same brand and model
    shared: float = 0.0  # the share of the list's words that it has
    named: float = 0.0  # the share of its title that the list names
    missing: frozenset[str] = frozenset()  # what the list says and it does not
    extra: frozenset[str] = frozenset()  # what its title says besides
    surplus: int = 0  # sizes and things that come with it and are not in the list
    sizes: Mapping[str, frozenset[Decimal]] = field(default_factory=dict)
    bait: bool = False
    reasons: list[str] = field(default_factory=list)
    vetoes: list[str] = field(default_factory=list)
    unnamed: list[str] = field(default_factory=list)  # it is a variant that the list does not name
    by_words: bool = False  # neither its number nor its model is compared
    certainty: float = 0.0  # of the words that are shared, by numbers and by what they leave open
    is_named: bool = False  # the list has its name: the word behind its brand, or its number
    is_other_thing: bool = False

    @property
    def fits(self) -> bool:
        return not (self.vetoes or self.unnamed)

    @property
    def why(self) -> str:
        unnamed = (
            [f"a variant that the row does not name: {', '.join(self.unnamed)}"]
            if self.unnamed
            else []
        )
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
        brand = compact(product.brand)
        own = "" if brand in _NO_BRAND else brand
        return cls(product, wording, numbers, own, compact(product.model))


def score(wanted: Wanted, offer: Offer) -> Score:
    result = Score(offer)
    offered = Wording.of(f"{offer.brand} {offer.title} {offer.model}")
    model_words = frozenset(telling_words(offer.model)) - wanted.wording.words
    same_number = _compare_numbers(wanted, offer, result)
    brand = _compare_brands(wanted, offer, offered.text, result)
    model = _compare_models(wanted, offer, result)
    shared = _compare_words(wanted.wording, offered, model_words, result)
    named = offered.words - model_words
    if same_number or _is_same_sku(wanted, offer, shared):
        result.value, result.identity = 1.0, True
    elif model:
        result.identity = bool(brand or wanted.product.brand == "") and len(wanted.model) > 3
        result.value = min(1.0, 0.70 + 0.15 * brand + 0.15 * shared)
        result.vetoes += other_pack(wanted.wording, offered)
    else:
        fit = _numbers_fit(wanted, offered, model_words, result)
        result.named = _precision(wanted.wording, named)
        telling = _telling(result.named, result)
        result.value = 0.10 * brand + 0.90 * shared * fit * telling
        result.by_words, result.certainty = True, fit * telling
        result.is_named = _has_name(wanted.wording, offer, offered)
        result.vetoes += other_variants(wanted.wording, offered)
        result.unnamed = unnamed_variants(wanted.wording, offered)
    if not same_number and wanted.wording.words:
        result.reasons.append(f"{shared:.0%} of the words")
    if not same_number:
        result.vetoes += missing_accessory(wanted.wording, offered)
    if not (same_number or _is_this_model(wanted, offer, model)):
        of_others = frozenset(telling_words(offer.brand)) - wanted.wording.words
        of_title = named - {"replacement"} - of_others
        precision = _precision(wanted.wording, of_title)
        others = list(other_things(wanted.wording, offered, precision))
        result.vetoes += others
        result.is_other_thing = bool(others)
    elif not same_number:
        result.vetoes += not_new(wanted.wording, offered)
    _look_at_state(wanted, offer, result)
    return result


def scores_of(wanted: Wanted, offers: Sequence[Offer]) -> list[Score]:
    """Words that none of the nearest offers has are people's own: record player, bedroom. They
    hardly count against an offer whose name the row has. A word that another one has does."""
    scores = [score(wanted, offer) for offer in offers]
    most = max((each.shared for each in scores), default=0.0)
    near = [each for each in scores if each.shared >= _NEAR * most]
    unknown = wanted.wording.words.intersection(*(each.missing for each in near))
    siblings = [each for each in near if not each.is_other_thing]
    for each in scores:
        if each.by_words:
            if _is_described(wanted, each):
                _count_less(wanted, each, frozenset(filter(str.isalpha, unknown)))
            else:
                each.vetoes += _unsaid(each)
            each.vetoes += _unlike(each, each.missing - unknown, siblings)
    return scores


def _is_described(wanted: Wanted, each: Score) -> bool:
    """The row has its name and more, and neither a color nor a part that it has not."""
    shared = len(wanted.wording.words) - len(each.missing)
    is_told = shared >= _FEWEST_SHARED and each.shared >= _SHARED_BY_NAME
    return each.is_named and is_told and not any(map(tells_apart, each.missing))


def _count_less(wanted: Wanted, each: Score, words: frozenset[str]) -> None:
    total = sum(map(_weight, wanted.wording.words))
    neutral = (1.0 - _UNKNOWN) * sum(map(_weight, each.missing & words))
    shared = (each.shared * total) / (total - neutral)
    each.value += 0.90 * (shared - each.shared) * each.certainty
    each.shared = shared


def _unlike(each: Score, missing: frozenset[str], near: Sequence[Score]) -> Iterator[str]:
    """A word that one with almost the same title has tells the two apart."""
    names = frozenset(filter(_is_name, missing))
    for other in near if names else ():
        differing = max(len(each.extra - other.extra), len(other.extra - each.extra))
        if differing <= _MOST_DIFFERING and names - other.missing:
            yield f"without {', '.join(sorted(names - other.missing)[:3])}, which others have"
            return


def _unsaid(result: Score) -> Iterator[str]:
    """A word in place of another may be the name of another product: Elite instead of Wired."""
    if result.shared < _MOSTLY:
        names = sorted(word for word in result.missing if _is_name(word))
        if names and any(map(_is_name, result.extra)):
            yield f"without {', '.join(names[:3])}"


def _has_name(wanted: Wording, offer: Offer, offered: Wording) -> bool:
    brand = frozenset(telling_words(offer.brand)) or {offered.tokens[0]}
    name = next((word for word in offered.tokens if word not in brand and _is_name(word)), "")
    codes = (word for word in offered.words if is_code(word))
    return (bool(name) and _is_named(name, wanted)) or any(map(wanted.has, codes))


def _is_name(word: str) -> bool:
    return word.isalpha() and len(word) > _SHORTEST_PREFIX - 1 and word not in VAGUE


def _is_this_model(wanted: Wanted, offer: Offer, model: bool) -> bool:
    """Whether it is of the model itself, not for it."""
    own = compact(offer.model)
    if wanted.model:
        return own == wanted.model
    return model and own in compact(offer.title.casefold().partition(" for ")[0])


def _compare_words(
    wanted: Wording, offered: Wording, model_words: frozenset[str], result: Score
) -> float:
    result.missing = frozenset(_missing(wanted, wanted.words, offered))
    result.extra = offered.words - wanted.words - model_words
    result.surplus = more_sizes(wanted, offered) + several_things(wanted, offered)
    result.sizes = offered.sizes
    result.shared = _shared_words(wanted, result.missing)
    return result.shared


def _compare_numbers(wanted: Wanted, offer: Offer, result: Score) -> bool:
    gtin = wanted.product.gtin
    if gtin is None or offer.gtin is None:
        return False
    if gtin == offer.gtin:
        result.reasons.append("same article number")
        return True
    result.vetoes.append("another article number")
    return False


def _is_same_sku(wanted: Wanted, offer: Offer, shared: float) -> bool:
    """The numbers of shops are their own: another shop may have the same for something else."""
    sku = compact(wanted.product.sku)
    if not sku or compact(offer.sku) != sku:
        return False
    return not wanted.wording.words or shared >= _SHARED_WITH_SKU


def _compare_brands(wanted: Wanted, offer: Offer, title: str, result: Score) -> float:
    if not wanted.brand:
        # The list may name the brand among its words.
        own = compact(offer.brand)
        return 1.0 if own and own in compact(wanted.product.text) else 0.0
    if wanted.brand in title or _is_same_brand(wanted.product.brand, offer):
        result.reasons.append("same brand")
        return 1.0
    if offer.brand:
        result.vetoes.append(f"the brand is {offer.brand}")
    return 0.0


def _is_same_brand(brand: str, offer: Offer) -> bool:
    """Samsung Electronics is Samsung. Another letter is another brand: that may be a copy."""
    own = frozenset(telling_words(brand)) - _LEGAL
    other = frozenset(telling_words(offer.brand)) - _LEGAL
    return bool(own and other) and (own <= other or other <= own)


def _compare_models(wanted: Wanted, offer: Offer, result: Score) -> bool:
    """Without a model in the list, one that its words name counts too. A shop may name the model
    in the title and state another number: that of the maker, or its own."""
    own = compact(offer.model)
    if wanted.model:
        if own == wanted.model or _names_model(offer.title, wanted.model):
            result.reasons.append("same model")
            return True
        if any(begins_code(wanted.model, each) for each in (own, *Wording.of(offer.title).joins)):
            result.reasons.append(f"the model is {offer.model or 'like it'}")
            return False
        if not has_digit(wanted.model):  # a name, which counts as a word
            return False
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


def _shared_words(wanted: Wording, missing: frozenset[str]) -> float:
    """The share of the list's words that the offer has, in letters: long words say more."""
    total = sum(map(_weight, wanted.words))
    return 1.0 - sum(map(_weight, missing)) / total if total else 0.0


def _missing(wanted: Wording, words: frozenset[str], offered: Wording) -> list[str]:
    joined = wanted.covered(offered)
    return [
        word
        for word in words
        if not (word in joined or _occurs(word, wanted, offered) or wanted.has_size(word, offered))
        and not (word in ("pack", "count") and offered.pack)
    ]


def _precision(wanted: Wording, words: frozenset[str]) -> float:
    """The share of a title that the list names."""
    total = sum(map(_weight, words))
    return sum(_weight(word) for word in words if _is_named(word, wanted)) / total if total else 0.0


def _is_named(word: str, wanted: Wording) -> bool:
    """Also written apart, or in another form: coffeemaker in coffee maker, cup in cups."""
    if wanted.has(word):
        return True
    if len(word) < _SHORTEST_PREFIX or not word.isalpha():
        return False
    if len(word) >= _SHORTEST_MISSPELT and word in wanted.text:
        return True
    return any(_has_same_stem(word, other) or _is_misspelt(other, word) for other in wanted.words)


def _telling(precision: float, result: Score) -> float:
    """A few common words describe many products: the more of a title they leave open, the less
    they prove."""
    if precision >= _TELLING_SHARE:
        return 1.0
    result.reasons.append(f"{precision:.0%} of the title")
    return 0.6 + 0.4 * precision / _TELLING_SHARE


def _occurs(word: str, wanted: Wording, offered: Wording) -> bool:
    """Within a longer word only if it is not a number."""
    if offered.has(word) or word in offered.years:
        return True
    if has_digit(word):
        return _is_abbreviated_number(word, offered) or _is_acronym(word, offered.tokens)
    if word in _LETTER_SIZES:
        return _LETTER_SIZES[word] in offered.words
    if len(word) == 1:
        return False
    if len(word) <= _SHORTEST_MODEL:
        return len(word) == _SHORTEST_PREFIX and any(_is_short_for(word, o) for o in offered.words)
    return _is_within(word, wanted, offered) or any(
        _is_misspelt(word, other) or _is_short_for(word, other) or _has_same_stem(word, other)
        for other in offered.words
    )


def _is_within(word: str, wanted: Wording, offered: Wording) -> bool:
    """Written apart there, or at the start of a word, or as its end if the list has the rest:
    maker of coffeemaker; not style of freestyle."""
    if word not in offered.text:
        return False
    holders = [other for other in offered.words if word in other]
    return not holders or any(
        other.startswith(word) or wanted.has(other.removesuffix(word)) for other in holders
    )


def _is_abbreviated_number(word: str, offered: Wording) -> bool:
    """18pc is 18 piece, 60t is 60 tooth, s9 is series 9; DCD996 is DCD996B."""
    if any(begins_code(word, other) for other in offered.words):
        return True
    number = word.rstrip(ascii_lowercase)
    unit, name = word[len(number) :], word.rstrip(digits)
    for before, first, second in zip(
        ("", *offered.tokens), offered.tokens, offered.tokens[1:], strict=False
    ):
        if unit and first == number and second.isalpha() and _begins_with(unit, second):
            return True
        is_name = first.startswith(name) or before == name  # s9 is series 9, io7 is iO series 7
        if first in _SERIES and name + second == word and is_name:
            return True
    return False


def _begins_with(unit: str, word: str) -> bool:
    return word.startswith(unit) or (len(unit) > 1 and word[0] == unit[0] and unit[1] in word)


def _is_short_for(word: str, other: str) -> bool:
    """gen is generation; a word without vowels leaves them out: stnls."""
    if not (word.isalpha() and len(other) > len(word)):
        return False
    if other.startswith(word):
        return True
    if _VOWELS & set(word) or word[0] != other[0]:
        return False
    rest = iter(other)
    return all(letter in rest for letter in word)


def _is_acronym(word: str, tokens: Sequence[str]) -> bool:
    """gp5000 is Grand Prix 5000."""
    letters = word.rstrip(digits)
    if not (len(letters) > 1 and letters.isalpha() and len(letters) < len(word)):
        return False
    number, size = word[len(letters) :], len(letters)
    return any(
        tokens[at] == number and "".join(token[0] for token in tokens[at - size : at]) == letters
        for at in range(size, len(tokens))
    )


def _has_same_stem(word: str, other: str) -> bool:
    """pruner and pruning, measure and measuring, liners and liner."""
    if word[0] != other[0]:
        return False
    if _stem_of_plural(word) == _stem_of_plural(other):
        return True
    stem = _stem(word)
    return len(stem) >= _SHORTEST_STEM and stem == _stem(other)


def _stem_of_plural(word: str) -> str:
    return word[:-1] if len(word) > _SHORTEST_PREFIX and word[-1] == "s" else word


@lru_cache(maxsize=_CACHED_WORDS)
def _stem(word: str) -> str:
    if not word.isalpha():
        return ""
    for ending in _ENDINGS:
        if word.endswith(ending):
            return word.removesuffix(ending)
    return word


def _is_misspelt(word: str, other: str) -> bool:
    """Whether one letter is wrong, missing or too many, or two have changed places."""
    if len(word) < _SHORTEST_MISSPELT or abs(len(word) - len(other)) > 1 or word[0] != other[0]:
        return False
    at = next((at for at, (a, b) in enumerate(zip(word, other, strict=False)) if a != b), None)
    if at is None:
        return True
    a, b = word[at:], other[at:]
    return a[1:] == b[1:] or a[1:] == b or a == b[1:] or (a[:2] == b[1::-1] and a[2:] == b[2:])


@lru_cache(maxsize=_CACHED_WORDS)
def _weight(word: str) -> float:
    if word in VAGUE:
        return 0.5 * len(word)
    return min(len(word), 8) * (1.5 if has_digit(word) else 1.0)


def _numbers_fit(
    wanted: Wanted, offered: Wording, model_words: frozenset[str], result: Score
) -> float:
    """Sizes and versions decide between products whose words are alike."""
    missing = result.missing & wanted.numbers
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
    if offer.condition in ("used", "refurbished") and wanted.product.condition != offer.condition:
        result.vetoes.append(f"is {offer.condition}")
    if not offer.in_stock:
        result.vetoes.append("is out of stock")
