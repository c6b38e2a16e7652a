"""Asks a shop whose pages contain offers: schema.org Product and Offer, as JSON-LD or microdata."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from itertools import chain, islice
from typing import Any

import orjson

from holdfast.errors import ItemError
from holdfast.pipeline import Context
from holdfast_catalog.offers import Offer
from holdfast_catalog.options import CatalogOptions
from holdfast_catalog.providers.contract import Shop
from holdfast_catalog.providers.fetching import (
    address,
    checked_template,
    headers_of,
    names_product,
    offer_of,
)
from holdfast_catalog.providers.microdata import microdata
from holdfast_catalog.strategies import IDENTIFIER, Query

_MOST_OFFERS = 50
_DEEPEST = 12
_NUMBERS = ("gtin14", "gtin13", "gtin12", "gtin8", "gtin", "isbn")


@dataclass(frozen=True, slots=True)
class StructuredData:
    shop: Shop
    options: CatalogOptions
    url: str
    identifier_url: str

    @classmethod
    def of(cls, shop: Shop, options: CatalogOptions) -> StructuredData:
        return cls(
            shop,
            options,
            checked_template(shop, "url"),
            checked_template(shop, "identifier_url", required=False),
        )

    def answers(self, query: Query) -> bool:
        return query.strategy != IDENTIFIER or names_product(self.identifier_url, query)

    async def offers(self, query: Query, ctx: Context) -> Sequence[Offer]:
        template = self.identifier_url if query.strategy == IDENTIFIER else self.url
        url = address(template, query)
        reply = await ctx.http.get(
            url,
            timeout=self.options.timeout_seconds,
            max_bytes=self.options.max_reply_bytes,
            headers=headers_of(self.shop),
        )
        # In a thread: four million `<` take the parser ten seconds.
        blocks = await asyncio.to_thread(schema_data, reply.text)
        if not blocks:
            raise ItemError(
                "INVALID_RESPONSE", f"{self.shop.name}: the page has no schema.org data"
            )
        return self.offers_in(blocks, url)

    def offers_in(self, blocks: Sequence[Any], url: str) -> Sequence[Offer]:
        """Returns offers. No more of a page is read than is used: it may have a million."""
        products = chain.from_iterable(map(products_in, blocks))
        return [
            offer_of(self.shop, values, url, self.options.currency)
            for values in islice(products, _MOST_OFFERS)
        ]


class _Scripts(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.texts: list[str] = []
        self._within = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "script":
            kind = (dict(attrs).get("type") or "").partition(";")[0].strip().lower()
            self._within = kind == "application/ld+json"
            if self._within:
                self.texts.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag == "script":
            self._within = False

    def handle_data(self, data: str) -> None:
        if self._within:
            self.texts[-1] += data


def schema_data(html: str) -> list[Any]:
    """Returns JSON-LD if it has a product; shops that also have microdata say the same there."""
    blocks = linked_data(html)
    if any(next(products_in(block), None) for block in blocks):
        return blocks
    return blocks + microdata(html)


def linked_data(html: str) -> list[Any]:
    """Returns the JSON-LD blocks of a page that can be read."""
    parser = _Scripts()
    parser.feed(html)
    blocks = []
    for text in parser.texts:
        try:
            blocks.append(orjson.loads(text.strip()))
        except orjson.JSONDecodeError:
            continue
    return blocks


def products_in(value: Any, depth: int = 0) -> Iterator[dict[str, Any]]:
    """Yields every Product anywhere in a block, once per offer."""
    if depth > _DEEPEST:
        return
    if isinstance(value, list):
        for part in value:
            yield from products_in(part, depth + 1)
    elif isinstance(value, dict):
        if _is_a(value, "Product"):
            yield from _offers_of(value)
            return
        for part in value.values():
            yield from products_in(part, depth + 1)


def _offers_of(product: dict[str, Any]) -> Iterator[dict[str, Any]]:
    common = {
        "title": product.get("name"),
        "brand": _name(product.get("brand") or product.get("manufacturer")),
        "model": _name(product.get("mpn") or product.get("model")),
        "sku": product.get("sku"),
        "gtin": next((product[name] for name in _NUMBERS if product.get(name)), None),
        "condition": product.get("itemCondition"),
    }
    for offer in _priced(product.get("offers")):
        yield common | _offer(offer, product)


def _priced(offers: Any, depth: int = 0) -> Iterator[dict[str, Any]]:
    """Yields each offer; those within an AggregateOffer instead of it, if it lists them."""
    for offer in offers if isinstance(offers, list) else [offers]:
        if isinstance(offer, dict) and depth <= _DEEPEST:
            within = offer.get("offers")
            if within:
                yield from _priced(within, depth + 1)
            else:
                yield offer


def _offer(offer: dict[str, Any], product: dict[str, Any]) -> dict[str, Any]:
    specification = _specification(offer.get("priceSpecification"))
    return {
        "price": _price(offer, specification),
        "currency": offer.get("priceCurrency") or specification.get("priceCurrency"),
        "availability": offer.get("availability"),
        "condition": offer.get("itemCondition") or product.get("itemCondition"),
        "url": offer.get("url") or product.get("url"),
        "shop": _name(offer.get("seller")),
    }


def _specification(value: Any) -> dict[str, Any]:
    """Returns the current price: those with a type are former or suggested ones.

    Returns none if there are several."""
    specifications = value if isinstance(value, list) else [value]
    priced = [each for each in specifications if isinstance(each, dict) and "price" in each]
    current = [each for each in priced if "priceType" not in each] or priced
    return current[0] if len(current) == 1 else {}


def _price(offer: dict[str, Any], specification: dict[str, Any]) -> Any:
    """Returns the price.

    A range, as of an AggregateOffer, stays one: its lower end is not the price."""
    low, high = offer.get("lowPrice"), offer.get("highPrice")
    if offer.get("price") is None and low is not None:
        return low if high is None or str(high) == str(low) else f"{low} - {high}"
    return specification.get("price") if offer.get("price") is None else offer["price"]


def _is_a(value: dict[str, Any], kind: str) -> bool:
    """Whether it is of the kind, also by its whole address, http://schema.org/Product, or with a
    prefix, schema:Product."""
    kinds = value.get("@type")
    names = kinds if isinstance(kinds, list) else [kinds]
    return any(str(name).rpartition("/")[2].rpartition(":")[2] == kind for name in names)


def _name(value: Any) -> Any:
    return value.get("name") if isinstance(value, dict) else value
