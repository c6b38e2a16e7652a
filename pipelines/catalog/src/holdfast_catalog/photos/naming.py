"""Derives from a photograph a product that can be looked up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from holdfast_catalog.normalising.gtin import article_number
from holdfast_catalog.normalising.product import Product, product_of
from holdfast_catalog.normalising.words import text_of

_MOST_CHARACTERS = 300


def from_barcodes(name: str, barcodes: Sequence[str], currency: str) -> Product | None:
    """Returns the product of the first barcode that is an article number."""
    numbers = [article_number(code).gtin for code in barcodes]
    gtin = next(filter(None, numbers), None)
    if gtin is None:
        return None
    return replace(product_of({"item_description": name}, currency), gtin=gtin)


def from_text(lines: Sequence[str], currency: str) -> Product | None:
    """Returns the product of the printed text; numbers under a barcode that could not be read count
    too."""
    numbers = (article_number(line).gtin for line in lines if len(line) >= 8)
    gtin = next(filter(None, numbers), None)
    text = text_of(" ".join(lines))[:_MOST_CHARACTERS]
    if not any(map(str.isalpha, text)) and gtin is None:
        return None
    return replace(product_of({"item_description": text}, currency), gtin=gtin)
