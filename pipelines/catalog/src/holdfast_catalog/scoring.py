"""Scores how well an offer fits a product, and why."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache

from rapidfuzz.distance import OSA

from holdfast_catalog.normalising.product import Product
from holdfast_catalog.normalising.remarks import described, excluded
from holdfast_catalog.normalising.units import is_number, unit_of
from holdfast_catalog.normalising.vocabulary import GENERIC, is_maker
from holdfast_catalog.normalising.wording import Wording
from holdfast_catalog.normalising.words import compact, has_digit, telling_words
from holdfast_catalog.offers import Offer
from holdfast_catalog.spelling import has_same_stem, is_misspelt, missing_words
from holdfast_catalog.variants import (
    begins_code,
    has_noun,
    missing_accessory,
    more_sizes,
    not_new,
    other_fit,
    other_sizes,
    other_things,
    other_variants,
    says_second_hand,
    several_things,
    unnamed_variants,
    variants_of_number,
)

_SHORTEST_MODEL = 3
_SHORTEST_PART = 3
_SHORTEST_PLAIN_MODEL = 7  # shortest model without a digit: shorter ones may be words
_TELLING_SHARE = 0.45
_SHARED_WITH_SKU = 0.4
_SHARED_WITH_NUMBER = 0.4
#: Numbers that other words may express: one, single, double, a pair.
_FEW = frozenset(("1", "2"))
_DIGITS_OF_YEAR = 4
_FIRST_YEAR, _NO_YEAR = 1950, 2040
_CACHED_WORDS = 8192
_SHORTEST_MISSPELT = 5
#: Words of a list that titles leave out.
VAGUE = frozenset(
    ["can", "cans", "bottle", "bottles", "jar", "tube", "bag", "box", "tub", "unit", "device",
     "machine", "generic", "unbranded", "color", "size", "good", "condition", "old", "genuine",
     "original", "approximately", "pair"]
)  # fmt: skip
_NUMBER_SIGN = re.compile(r"^\s*(?:no\.|#)\s*", re.IGNORECASE)
_REFURBISHED, _USED = "refurbished", "used"
_WITHOUT = frozenset(("no", "not", "without", "only"))
#: What lists have in the brand's column instead: where it was bought.
_NO_BRAND = frozenset(
    ["generic", "unbranded", "nobrand", "noname", "amazon", "bestbuy", "costco", "ebay", "etsy",
     "gamestop", "homedepot", "kohls", "lowes", "macys", "samsclub", "sears", "staples", "target",
     "tjmaxx", "walmart", "wayfair"]
)  # fmt: skip
_SHORTEST_PREFIX = 3
_LONG_BRAND = 7
_LETTERS_OF_MISTAKE = 5
#: What companies also have in their names.
_LEGAL = frozenset(("inc", "corp", "co", "company", "electronics", "ltd", "llc", "gmbh", "usa"))


@dataclass(slots=True)
class Score:
    """How well an offer fits.

    `value` is from 0 to 1. A veto keeps the offer from being accepted, whatever its value; a doubt
    lowers its value, and keeps it from being compared as one that fits."""

    offer: Offer
    value: float = 0.0  # how likely it is the product
    likeness: float = 0.0  # how much its words are like those of the row
    identity: bool = False  # the same article number
    shared: float = 0.0  # the share of the list's words that it has
    named: float = 0.0  # the share of its title that the list names
    missing: frozenset[str] = frozenset()  # what the list says and the offer does not
    extra: frozenset[str] = frozenset()  # what else its title says
    surplus: int = 0  # sizes and things that come with it and are not in the list
    sizes: Mapping[str, frozenset[Decimal]] = field(default_factory=dict)
    bait: bool = False
    reasons: list[str] = field(default_factory=list)
    vetoes: list[str] = field(default_factory=list)
    doubts: dict[str, str] = field(default_factory=dict)  # kind -> what contradicts it
    unnamed: list[str] = field(default_factory=list)  # it is a variant that the list does not name
    contradictions: list[str] = field(default_factory=list)  # of the row with its own number
    by_words: bool = False  # identified by its words, not by an article number
    has_like_model: bool = False  # whether it has a model of which the row leaves a part out
    same_model: float = 0.0  # 1: the row names its brand and model
    lacking: float = 0.0  # the share of the row that it lacks and any offer has
    is_other_thing: bool = False
    brand: float = 0.0  # 1: the row names its brand
    excess: int = 0  # how many names and numbers it has that the row does not say
    has_other_number: bool = False
    is_thing: bool = False  # the row names what it is
    missed: float = 0.0  # weight of the words that it does not have
    gap: float = 0.0  # how much more the next best offer misses
    features: dict[str, float] = field(default_factory=dict)  # what the weights apply to

    @property
    def fits(self) -> bool:
        return not (self.vetoes or self.doubts)

    @property
    def why(self) -> str:
        unnamed = (
            [f"a variant that the row does not name: {', '.join(self.unnamed)}"]
            if self.unnamed
            else []
        )
        return "; ".join([*self.reasons, *self.vetoes, *self.doubts.values(), *unnamed])


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is compared about a product, computed once for all offers."""

    product: Product
    wording: Wording
    numbers: frozenset[str]
    brand: str
    model: str
    makers: frozenset[str] = frozenset()  # makers that the row names before its details
    excluded: frozenset[str] = frozenset()  # what the row says that it is not
    named: dict[str, bool] = field(default_factory=dict)  # words of titles, which recur

    @property
    def initials(self) -> str:
        """The initials of its brand: HP is Hewlett Packard."""
        return "".join(word[0] for word in telling_words(self.product.brand))

    @property
    def says_refurbished(self) -> bool:
        return _REFURBISHED in self.wording.words

    @property
    def condition(self) -> str:
        """The condition, from its own column or from the row's words."""
        if self.product.condition or not (self.says_refurbished or self.says_used):
            return self.product.condition
        return _REFURBISHED if self.says_refurbished else _USED

    @property
    def says_used(self) -> bool:
        """Whether it was bought used; "used" alone is what people say about everything that they
        have."""
        return says_second_hand(self.wording)

    @classmethod
    def of(cls, product: Product, offered: frozenset[str] = frozenset()) -> Wanted:
        """Returns what is compared about a product; `offered` are the words of the offers'
        titles."""
        wording = Wording.of(described(product, offered))
        numbers = frozenset(filter(has_digit, wording.words))
        brand = compact(product.brand)
        own = "" if brand in _NO_BRAND else brand
        makers = frozenset(filter(is_maker, telling_words(product.item_description)))
        is_size = any(map(unit_of, telling_words(product.model)))  # 10lb pr
        model = "" if is_size else compact(_NUMBER_SIGN.sub("", product.model))
        return cls(product, wording, numbers, own, model, makers, excluded(product))


def score(wanted: Wanted, offer: Offer) -> Score:
    result = Score(offer)
    offered = Wording.of(f"{offer.brand} {offer.title} {offer.model}")
    model_words = frozenset(telling_words(offer.model)) - wanted.wording.words
    title_words = frozenset(telling_words(offer.title))
    same_number = _compare_numbers(wanted, offer, result)
    brand = _compare_brands(wanted, offer, offered.text, result)
    result.brand = brand
    vetoes = len(result.vetoes)
    model = _compare_models(wanted, offer, result)
    said = telling_words(wanted.product.model) if result.has_like_model else ()
    shared = _compare_words(
        wanted.wording, offered, model_words, title_words, frozenset(said), result
    )
    if same_number:  # shops write models in many ways, and people the makers of lines
        del result.vetoes[0 if shared >= _SHARED_WITH_NUMBER else vetoes :]
    named = offered.words - model_words
    if same_number or _is_same_sku(wanted, offer, shared):
        result.value, result.identity = 1.0, True
    else:
        result.same_model = _sure_of_model(wanted, result) if model else 0.0
        _compare_by_words(wanted, offered, model_words, result)
    if not same_number and wanted.wording.words:
        result.reasons.append(f"{shared:.0%} of the words")
    if same_number:
        result.contradictions = list(other_sizes(wanted.wording, offered))
        result.vetoes += result.contradictions
    else:
        result.doubts |= missing_accessory(wanted.wording, offered, result.missing)
    if not (same_number or _is_this_model(wanted, offer, model)):
        _look_for_other_things(wanted, offered, named, result)
    if not same_number:
        result.vetoes += not_new(wanted.wording, offered)
    _look_at_state(wanted, offer, result)
    if not result.by_words:
        result.vetoes += result.doubts.values()
    result.likeness = max(result.likeness, result.value)
    return result


def _look_for_other_things(
    wanted: Wanted, offered: Wording, named: frozenset[str], result: Score
) -> None:
    of_others = frozenset(telling_words(result.offer.brand)) - wanted.wording.words
    precision = _precision(wanted, named - {"replacement"} - of_others)
    others = other_things(wanted.wording, offered, precision)
    result.is_other_thing = bool(others)
    result.doubts |= others


def _sure_of_model(wanted: Wanted, result: Score) -> float:
    is_brand = bool(result.brand or wanted.product.brand == "")
    return 1.0 if is_brand and len(wanted.model) > _SHORTEST_MODEL else 0.5


def _compare_by_words(
    wanted: Wanted, offered: Wording, model_words: frozenset[str], result: Score
) -> None:
    """Compares by words: the offer is not identified by an article number."""
    fit = _numbers_fit(wanted, offered, model_words, result)
    result.named = _precision(wanted, offered.words - model_words)
    telling = _telling(result.named, result)
    result.likeness = 0.10 * result.brand + 0.90 * result.shared * fit * telling
    result.by_words = True
    is_thing = bool(offered.thing) and offered.thing not in GENERIC
    result.is_thing = is_thing and has_noun(wanted.wording, offered.thing)
    result.unnamed = unnamed_variants(wanted.wording, offered)
    result.doubts |= other_variants(wanted.wording, offered, result.missing)
    variants = list(variants_of_number(result.unnamed, offered))
    if variants:
        result.doubts["other_variant"] = variants[0]
    sizes = [*other_fit(wanted.wording, offered), *other_sizes(wanted.wording, offered)]
    if sizes:
        result.doubts["other_size"] = ", ".join(sizes)
    if not result.brand and result.offer.brand and not wanted.makers.isdisjoint(result.missing):
        result.doubts["other_maker"] = f"the brand is {result.offer.brand}"


def _is_this_model(wanted: Wanted, offer: Offer, model: bool) -> bool:
    """Whether it is the model itself, not something for it."""
    own = compact(offer.model)
    if wanted.model:
        return own == wanted.model
    return model and own in compact(offer.title.casefold().partition(" for ")[0])


def _compare_words(
    wanted: Wording,
    offered: Wording,
    model_words: frozenset[str],
    title_words: frozenset[str],
    said: frozenset[str],
    result: Score,
) -> float:
    result.missing = missing_words(wanted, offered) - said
    result.extra = offered.words - wanted.words - (model_words - title_words)
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
    result.reasons.append("another article number")
    result.has_other_number = True
    return False


def _is_same_sku(wanted: Wanted, offer: Offer, shared: float) -> bool:
    """Whether the SKU is the same.

    The numbers of shops are their own: another shop may have the same for something else."""
    sku = compact(wanted.product.sku)
    if not sku or compact(offer.sku) != sku:
        return False
    return not wanted.wording.words or shared >= _SHARED_WITH_SKU


def _compare_brands(wanted: Wanted, offer: Offer, title: str, result: Score) -> float:
    if not wanted.brand:
        # The list may name the brand among its words.
        own = compact(offer.brand)
        return 1.0 if own and own in compact(wanted.product.text) else 0.0
    if wanted.brand in title or _is_same_brand(wanted, offer):
        result.reasons.append("same brand")
        return 1.0
    if offer.brand:
        result.vetoes.append(f"the brand is {offer.brand}")
    return 0.0


def _is_same_brand(wanted: Wanted, offer: Offer) -> bool:
    """Whether the brand is the same: Samsung Electronics is Samsung.

    Another letter is another brand, which may be a copy, unless the row says this one too, or the
    name is long: people misspell Milwaukee."""
    own = frozenset(telling_words(wanted.product.brand)) - _LEGAL
    other = frozenset(telling_words(offer.brand)) - _LEGAL
    if not (own and other):
        return False
    if own <= other or other <= own or all(map(wanted.wording.has, other)):
        return True
    most = len(wanted.brand) // _LETTERS_OF_MISTAKE if len(wanted.brand) >= _LONG_BRAND else 0
    if most and OSA.distance(wanted.brand, compact(offer.brand), score_cutoff=most) <= most:
        return True
    if all(any(_is_begun(word, each) for each in other) for word in own):
        return True
    return compact(offer.brand) in (wanted.initials, *wanted.wording.words)


def _is_begun(word: str, whole: str) -> bool:
    """Whether the word begins the whole: Ham. is Hamilton."""
    return word == whole or (len(word) >= _SHORTEST_PREFIX and whole.startswith(word))


def _compare_models(wanted: Wanted, offer: Offer, result: Score) -> bool:
    """Compares the models.

    Without a model in the list, one that its words name counts too. A shop may name the model in
    the title and give another number: that of the maker, or its own."""
    own = compact(offer.model)
    if wanted.model:
        if own == wanted.model or _names_model(offer.title, wanted.model):
            result.reasons.append("same model")
            return True
        if _is_like_model(wanted.model, offer):
            result.reasons.append(f"the model is {offer.model or 'like it'}")
            result.has_like_model = True
            return False
        title = Wording.of(offer.title)
        words = telling_words(wanted.product.model)
        if not has_digit(wanted.model) or (len(words) > 1 and all(map(title.has, words))):
            return False  # a name, which counts as words: Inspiron 15 3520
        result.doubts["other_model"] = (
            f"the model is {offer.model}" if own else "another or no model"
        )
        return False
    is_model = len(own) > (_SHORTEST_MODEL if has_digit(own) else _SHORTEST_PLAIN_MODEL)
    is_named = is_model and _names_model(wanted.product.text, own)
    if is_named:
        result.reasons.append("same model")
    return is_named


def _is_like_model(model: str, offer: Offer) -> bool:
    """Whether one leaves out a part that the other has: 780 is DWS780, 1784 is 01784."""
    own = compact(offer.model)
    title = Wording.of(offer.title)
    if any(begins_code(model, each) for each in (own, *title.joins, *title.words)):
        return True
    first = compact(offer.model.replace("/", "-").partition("-")[0])
    short, long = sorted((model, own), key=len)
    is_part = len(short) >= _SHORTEST_PART and has_digit(short) and short in long
    return first == model or is_part or (bool(own) and own.lstrip("0") == model.lstrip("0"))


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
    """Returns the share of the list's words that the offer has, in letters: long words say more."""
    total = sum(map(_weight, wanted.words))
    return 1.0 - sum(map(_weight, missing)) / total if total else 0.0


def _precision(wanted: Wanted, words: frozenset[str]) -> float:
    """Returns the share of a title that the list names."""
    total = named = 0.0
    for word in words:
        weight = _weight(word)
        total += weight
        is_named = wanted.named.get(word)
        if is_named is None:
            is_named = wanted.named[word] = _is_named(word, wanted.wording)
        named += weight if is_named else 0.0
    return named / total if total else 0.0


def _is_named(word: str, wanted: Wording) -> bool:
    """Whether the word is named, also written apart or in another form: coffeemaker in coffee
    maker, cup in cups."""
    if wanted.has(word):
        return True
    if len(word) < _SHORTEST_PREFIX or not word.isalpha():
        return False
    if len(word) >= _SHORTEST_MISSPELT and word in wanted.text:
        return True
    return any(
        has_same_stem(word, other) or is_misspelt(other, word)
        for other in wanted.words
        if other[0] == word[0]
    )


def _telling(precision: float, result: Score) -> float:
    """Returns how much the words prove.

    A few common words describe many products: the more of a title they leave open, the less they
    prove."""
    if precision >= _TELLING_SHARE:
        return 1.0
    result.reasons.append(f"{precision:.0%} of the title")
    return 0.6 + 0.4 * precision / _TELLING_SHARE


@lru_cache(maxsize=_CACHED_WORDS)
def _weight(word: str) -> float:
    if word in VAGUE:
        return 0.5 * len(word)
    return min(len(word), 8) * (1.5 if has_digit(word) else 1.0)


def _numbers_fit(
    wanted: Wanted, offered: Wording, model_words: frozenset[str], result: Score
) -> float:
    """Returns how well the numbers fit.

    Sizes and versions decide between products whose words are alike: a product has the numbers that
    a row names."""
    missing = result.missing & wanted.numbers
    if not offered.years:
        missing = frozenset(word for word in missing if not _is_year(word))
    if not missing:
        return 1.0
    result.reasons.append(f"without {', '.join(sorted(missing))}")
    known = wanted.numbers | model_words | offered.covered(wanted.wording)
    numbers = (word for word in offered.words if has_digit(word) and word not in known)
    other = [word for word in numbers if not offered.has_size(word, wanted.wording)]
    instead, of = (", ".join(sorted(numbers)[:3]) for numbers in (other, missing))
    text = f"{instead} instead of {of}" if other else f"{of} is not in its title"
    codes = list(filter(_is_letters_and_digits, missing))
    if any(code[0] == word[0] and _is_letters_and_digits(word) for code in codes for word in other):
        result.doubts["like_code"] = text  # a number of the same form: V15 instead of V11
    elif codes:
        result.doubts["other_code"] = text
    elif other and missing - {"1"}:
        result.doubts["other_numbers"] = text
    elif missing - _FEW:
        result.doubts["no_number"] = text
    return 1.0 - 0.5 * len(missing) / len(wanted.numbers)


def _is_letters_and_digits(word: str) -> bool:
    return not is_number(word) and any(map(str.isalpha, word))


def _is_year(word: str) -> bool:
    """Whether the word is a year: when it was bought."""
    return len(word) == _DIGITS_OF_YEAR and word.isdecimal() and _FIRST_YEAR <= int(word) < _NO_YEAR


def _look_at_state(wanted: Wanted, offer: Offer, result: Score) -> None:
    condition = wanted.condition
    if offer.condition in ("used", "refurbished") and condition != offer.condition:
        result.vetoes.append(f"is {offer.condition}")
    offered = Wording.of(offer.title)
    states = (offer.condition, *offered.words)
    if wanted.says_refurbished and _REFURBISHED not in states:
        result.vetoes.append("is not refurbished")
    elif wanted.says_used and offer.condition != _USED and not says_second_hand(offered):
        result.vetoes.append("is not used")
    if _WITHOUT.isdisjoint(offered.tokens):
        result.vetoes += [f"is {word}" for word in wanted.excluded if offered.has(word)]
    if not offer.in_stock:
        result.vetoes.append("is out of stock")
