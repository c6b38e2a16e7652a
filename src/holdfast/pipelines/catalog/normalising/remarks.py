"""What a row says about a product, without what it says about its owner's home."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from holdfast.pipelines.catalog.normalising.product import Product
from holdfast.pipelines.catalog.normalising.vocabulary import Kind, is_remark, kind_of
from holdfast.pipelines.catalog.normalising.words import has_digit, telling_words, tokens_of

_CACHED = 1024
#: Where a thing was, and how old it is: room 11, second floor, 2 yrs old.
_NUMBERED = re.compile(
    r"\b(?:bed)?(?:rooms?|rm|apt|apartment|floor|exam|bench|bay|station|suite)\.?"
    r"\s*(?:no\.?\s*|#\s*)?\d+(?:-\d+)?\b"
    r"|\b(?:1st|2nd|3rd|4th|first|second|third|fourth|top|ground)"
    r" (?:floor|one|car|desk|bath|house)\b"
    r"|\bqty\.?\s*(?:of\s*)?\d+\b"
    r"|\b\d+\+?\s*(?:yrs?|years?|months?|mos?)\.? old\b",
    re.IGNORECASE,
)
#: What it is not: not the Max, not XL.
_NOT = re.compile(r"\bnot (?:the |an? )?([\w-]+)", re.IGNORECASE)


def described(product: Product) -> str:
    """All fields as one text, without remarks in the details: kitchen counter, smoke damage."""
    item, details = product.item_description, product.description
    if has_digit(item + details) or "floor" in details:
        item, details = _NUMBERED.sub(" ", item), _NUMBERED.sub(" ", details)
    if excluded(product):
        item, details = _NOT.sub(" ", item), _NOT.sub(" ", details)
    parts = (product.brand, product.model, item, _without_remarks(item, details))
    return " ".join(part for part in parts if part)


def excluded(product: Product) -> frozenset[str]:
    """Words of which a row says that they are not meant."""
    text = f"{product.item_description} {product.description}"
    if "not " not in text.casefold():
        return frozenset()
    words = (word for found in _NOT.findall(text) for word in tokens_of(found))
    return frozenset(word for word in words if not is_remark(word))


def without_own_words(product: Product, is_known: Callable[[str], bool]) -> Product:
    """Without names, letters and small numbers in the details that no offer has."""
    if not (product.item_description and product.description) or excluded(product):
        return product
    parts = product.description.split()
    kept = [part for part in parts if not _is_own(part) or any(map(is_known, telling_words(part)))]
    return replace(product, description=" ".join(kept))


def _is_own(part: str) -> bool:
    words = telling_words(part)
    return bool(words) and all(
        kind_of(word) is Kind.NAME or (word.isdecimal() and len(word) == 1) for word in words
    )


@lru_cache(maxsize=_CACHED)
def _without_remarks(item: str, details: str) -> str:
    """Things that the details name are where it was, or what it was with, if the row has named
    the thing before."""
    if not item:
        return details
    named = any(kind_of(word) is Kind.THING for word in telling_words(item))
    return " ".join(part for part in details.split() if not _is_remark(part, named))


def _is_remark(part: str, things: bool) -> bool:
    return all(
        is_remark(word) or (things and kind_of(word) is Kind.THING) for word in telling_words(part)
    )
