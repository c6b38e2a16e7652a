"""Queries for a product: strategies that take turns from attempt to attempt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from holdfast_catalog.normalising.gtin import as_printed
from holdfast_catalog.normalising.product import Product
from holdfast_catalog.normalising.remarks import described
from holdfast_catalog.normalising.words import telling_words

IDENTIFIER = "identifier"
_MOST_WORDS = 12


@dataclass(frozen=True, slots=True)
class Query:
    """A query. `words` are searched for; `gtin`, `sku` or `model` ask for an exact match."""

    strategy: str
    text: str
    words: tuple[str, ...] = ()
    gtin: str | None = None
    sku: str = ""
    brand: str = ""
    model: str = ""

    @property
    def kind(self) -> str:
        """What is searched for, in words for people."""
        return "look-up of a number" if self.strategy == IDENTIFIER else "search"


def identifier_query(product: Product) -> Query | None:
    if not (product.gtin or product.sku or product.model):
        return None
    parts = (as_printed(product.gtin) if product.gtin else "", product.sku)
    model = f"{product.brand} {product.model}".strip() if product.model else ""
    text = next(filter(None, (*parts, model)))
    return Query(
        IDENTIFIER,
        text,
        gtin=product.gtin,
        sku=product.sku,
        brand=product.brand,
        model=product.model,
    )


def queries(product: Product, attempt: int, count: int) -> Iterator[Query]:
    """Yields the queries of an attempt, from 1; each text once."""
    texts = {
        "combined": described(product),
        "description_first": f"{product.description} {product.item_description} {product.brand}",
        "item_description_only": product.item_description,
        "description_only": product.description,
    }
    words = {name: tuple(telling_words(text)[:_MOST_WORDS]) for name, text in texts.items()}
    distinct: dict[tuple[str, ...], str] = {}
    for name, found in words.items():
        if found:
            distinct.setdefault(found, name)
    names = list(distinct.values())
    start = (attempt - 1) * count
    for at in range(min(count, len(names))):
        name = names[(start + at) % len(names)]
        yield Query(
            name, " ".join(words[name]), words[name], brand=product.brand, model=product.model
        )
