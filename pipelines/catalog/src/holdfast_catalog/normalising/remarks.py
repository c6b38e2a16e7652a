"""Finds what a row says about a product, without what it says about its owner's home."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from holdfast_catalog.normalising.product import Product
from holdfast_catalog.normalising.vocabulary import Kind, is_remark, kind_of
from holdfast_catalog.normalising.words import has_digit, telling_words, tokens_of

_CACHED = 1024
#: Where a thing was, and how old it is: room 11, second floor, 2 yrs old.
_NUMBERED = re.compile(
    r"\b(?:bed)?(?:rooms?|rm|apt|apartment|floor|exam|bench|bay|station|suite)\.?"
    r"\s*(?:no\.?\s*|#\s*)?\d+(?:-\d+)?\b"
    r"|\b(?:1st|2nd|3rd|4th|first|second|third|fourth|top|ground)"
    r" (?:floor|one|car|desk|bath|house)\b"
    r"|\bqty\.?\s*(?:of\s*)?\d+\b"
    r"|\b\d+\+?\s*(?:yrs?|years?|months?|mos?|weeks?|wks?)\.?(?: old| ago| to build)\b"
    r"|\b\d{1,2}/(?:19|20)\d\d\b"
    r"|\b(?:bought|purchased|ordered|got|since|from) (?:in |on )?(?:late |early )?"
    r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.? '?\d{1,4}\b"
    r"|\$\s*\d[\d,.]*",
    re.IGNORECASE,
)
#: Where it was bought: from Costco.
_SHOPS = re.compile(
    r"\b(?:at|from|off|via|on) (?:amazon|b&h|bb|costco|ebay|etsy|kohl'?s|lowe'?s|macy'?s|sears"
    r"|target|tj ?maxx|walmart|wayfair)\b|\b(?:best buy|home depot|sam'?s club)\b",
    re.IGNORECASE,
)
#: The part of a thing that is meant, not the whole thing.
_PART_OF = re.compile(r"\b(parts?|piece|top|lid|glass|bowl) (?:of|off|from) (?:the|my|our)\b", re.I)
_BEFORE_PLACES = frozenset(
    ["above", "against", "at", "behind", "below", "beneath", "beside", "by", "from", "in", "inside",
     "near", "on", "onto", "over", "under", "underneath"]
)  # fmt: skip
_DETERMINERS = frozenset(["a", "an", "the", "my", "our", "his", "her", "their"])
#: What the writer does not know: don't know which one, idk if Fender or Squier.
_UNSURE = re.compile(
    r"\b(?:(?:don'?t|do not|can'?t|cannot|didn'?t) (?:really )?(?:know|remember|recall|tell)"
    r"|not sure|unsure|idk|no idea|forgot) (?:of |about |the |what |which |exact ){0,3}"
    r"(?:brand|make|maker|model|type|kind|size|version|one|it was|if)\b",
    re.IGNORECASE,
)
#: What it is not: not the Max, without cushion.
_NOT = re.compile(r"\b(?:not|no|without|w/o) (?:the |an? )?([\w-]+)", re.IGNORECASE)


def described(product: Product, offered: frozenset[str] = frozenset()) -> str:
    """Returns all fields as one text, without remarks in the details: kitchen counter, smoke
    damage. Words that may also describe a thing, such as small and right, are no remarks if titles
    of offers have them."""
    item, details = product.item_description, product.description
    if has_digit(item + details) or "floor" in details:
        item, details = _NUMBERED.sub(" ", item), _NUMBERED.sub(" ", details)
    item, details = _PART_OF.sub(r"\1 for", item), _SHOPS.sub(" ", details)
    if excluded(product):
        item, details = _NOT.sub(" ", item), _NOT.sub(" ", details)
    telling = frozenset(word for word in telling_words(details) if word in offered)
    parts = (product.brand, product.model, item, _without_remarks(item, details, telling))
    return " ".join(part for part in parts if part)


def is_unsure(product: Product) -> bool:
    """Whether the row itself says that it does not know what it is.

    In the details, a question mark may ask about anything."""
    if "?" in product.item_description:
        return True
    return any(map(_UNSURE.search, (product.item_description, product.description)))


def excluded(product: Product) -> frozenset[str]:
    """Returns words that the row excludes."""
    text = f"{product.item_description} {product.description}"
    if _NOT.search(text) is None:
        return frozenset()
    words = (word for found in _NOT.findall(text) for word in tokens_of(found))
    return frozenset(word for word in words if not is_remark(word))


def without_own_words(product: Product, is_known: Callable[[str], bool]) -> Product:
    """Returns the product without names, letters and small numbers in the details that no offer
    has."""
    if not (product.item_description and product.description) or excluded(product):
        return product
    parts = product.description.split()
    kept = [
        part
        for part, after in zip(parts, (*parts[1:], ""), strict=True)
        if not _is_own(part) or "/" in after or any(map(is_known, telling_words(part)))
    ]
    return replace(product, description=" ".join(kept))


def _is_own(part: str) -> bool:
    words = telling_words(part)
    return bool(words) and all(
        kind_of(word) is Kind.NAME or (word.isdecimal() and len(word) == 1) for word in words
    )


@lru_cache(maxsize=_CACHED)
def _without_remarks(item: str, details: str, telling: frozenset[str]) -> str:
    """Returns the details without remarks.

    Things that they name are where it was, or what it was with, if the row has named the thing
    before."""
    if not item:
        return details
    named = any(kind_of(word) is Kind.THING for word in telling_words(item))
    parts = _without_places(details.split())
    return " ".join(part for part in parts if not _is_remark(part, named) or _tells(part, telling))


def _tells(part: str, telling: frozenset[str]) -> bool:
    return any(word in telling and kind_of(word) is Kind.DESCRIBING for word in telling_words(part))


def _without_places(parts: Sequence[str]) -> Iterator[str]:
    """Yields the parts without where the thing was: behind sofa, on the desk."""
    in_place = False
    for part in parts:
        word = part.strip("().,;").casefold()
        if word in _BEFORE_PLACES:
            in_place = True
        elif not (in_place and (word in _DETERMINERS or _is_remark(part, things=True))):
            in_place = False
            yield part
        elif part[-1] in ",;.)":
            in_place = False


def _is_remark(part: str, things: bool) -> bool:
    return all(
        is_remark(word) or (things and kind_of(word) is Kind.THING) for word in telling_words(part)
    )
