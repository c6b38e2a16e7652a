"""Shared code of providers on the web: settings of a shop, addresses from templates, prices."""

from __future__ import annotations

import os
from collections.abc import Mapping
from string import Formatter
from typing import Any
from urllib.parse import quote, urljoin

from holdfast.errors import ItemError, UserError
from holdfast_catalog.normalising.gtin import article_number, as_printed
from holdfast_catalog.normalising.money import amount, currency_named
from holdfast_catalog.normalising.words import text_of
from holdfast_catalog.offers import Offer
from holdfast_catalog.providers.contract import Shop
from holdfast_catalog.strategies import Query

_FROM_ENVIRONMENT = "env:"
PLACES = ("query", "gtin", "sku", "brand", "model")
_PLACES = f"Places: {', '.join(map('{{{}}}'.format, PLACES))}."
_NAMES_A_MAKER = "brand"  # not a product
_NOT_IN_STOCK = ("outofstock", "soldout", "discontinued", "unavailable", "notavailable")
_NO = ("false", "no", "0")


def checked_template(shop: Shop, name: str, required: bool = True) -> str:
    """Returns an address with places such as {query}."""
    template = shop.settings.get(name, "")
    if not template and not required:
        return ""
    if not isinstance(template, str) or not template.startswith(("https://", "http://")):
        raise UserError(
            f"the shop {shop.name} needs an address ({name}) that begins with https://",
            "For example: https://shop.example/search?q={query}",
        )
    host = template.partition("://")[2].partition("/")[0].partition("?")[0]
    if not host or "{" in host:
        raise UserError(
            f"the address ({name}) of the shop {shop.name} has no host, or one that rows choose",
            "For example: https://shop.example/search?q={query}",
        )
    places = _places(template)
    if places is None or not places <= set(PLACES):
        raise UserError(
            f"the address ({name}) of the shop {shop.name} has an unknown place", _PLACES
        )
    if not places:
        raise UserError(
            f"the address ({name}) of the shop {shop.name} has no place for what is looked for",
            _PLACES,
        )
    return template


def _places(template: str) -> set[str] | None:
    """Returns the places; None if they cannot be read, or contain more than a name."""
    try:
        parts = list(Formatter().parse(template))
    except ValueError:
        return None
    if any(form or conversion for _, _, form, conversion in parts):
        return None
    return {place for _, place, _, _ in parts if place is not None}


def address(template: str, query: Query) -> str:
    filled = _filled(query)
    return template.format(**{place: quote(value, safe="") for place, value in filled.items()})


def names_product(template: str, query: Query) -> bool:
    """Whether one of the template's places that tell products apart can be filled."""
    filled = _filled(query)
    places = _places(template) or set()
    return any(filled[place] for place in places - {_NAMES_A_MAKER})


def _filled(query: Query) -> dict[str, str]:
    return {
        "query": query.text,
        "gtin": as_printed(query.gtin) if query.gtin else "",
        "sku": query.sku,
        "brand": query.brand,
        "model": query.model,
    }


def headers_of(shop: Shop) -> dict[str, str]:
    """Returns the headers of each request.

    A value `env:NAME` is read from the environment of the process that sends it, so that keys are
    not in the database."""
    headers = {}
    for name, value in dict(shop.settings.get("headers", {})).items():
        reference = str(value).removeprefix(_FROM_ENVIRONMENT)
        if reference != str(value):
            value = os.environ.get(reference)
            if value is None:
                raise ItemError(
                    "SHOP_SETUP",
                    f"{shop.name}: the environment has no {reference}, which the header {name}"
                    " refers to",
                )
            value = value.strip()  # many come from files, with a line end
        headers[name] = str(value)
    return headers


def offer_of(shop: Shop, values: Mapping[str, Any], page: str, default_currency: str) -> Offer:
    """Returns an offer from what a reply says; a price that cannot be used is a flaw, described in
    words."""
    currency = currency_named(text_of(values.get("currency"))) or shop.currency or default_currency
    read = amount(values.get("price"), currency)
    return Offer(
        provider=shop.name,
        title=text_of(values.get("title")),
        price_minor=read.money.minor if read.money else None,
        currency=read.money.currency if read.money else currency,
        brand=text_of(values.get("brand")),
        model=text_of(values.get("model")),
        gtin=article_number(values.get("gtin")).gtin,
        sku=text_of(values.get("sku")),
        url=_link(values.get("url"), page),
        shop=text_of(values.get("shop")) or shop.name,
        condition=condition_of(values.get("condition")),
        in_stock=is_in_stock(values.get("availability")),
        trusted=shop.trusted,
        flaw=read.problem,
    )


def _link(url: Any, page: str) -> str:
    """Returns the page of an offer, even if its link is relative; else the page that was
    requested."""
    text = text_of(url) if isinstance(url, str) else ""
    if text and not text.startswith(("https://", "http://")):
        try:
            text = urljoin(page, text)
        except ValueError:
            return page
    return text if text.startswith(("https://", "http://")) else page


def condition_of(value: Any) -> str:
    text = text_of(value).casefold()
    for word in ("refurbished", "used", "damaged"):
        if word in text:
            return "used" if word == "damaged" else word
    return ""


def is_in_stock(value: Any) -> bool:
    text = text_of(value).casefold().replace(" ", "").replace("_", "")
    return text not in _NO and not any(word in text for word in _NOT_IN_STOCK)
