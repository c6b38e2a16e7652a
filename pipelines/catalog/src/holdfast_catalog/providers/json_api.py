"""Asks a shop with a JSON API: an address with places, and paths into the reply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.errors import ItemError, UserError
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
from holdfast_catalog.strategies import IDENTIFIER, Query

FIELDS = ("title", "price", "currency", "brand", "model", "gtin", "sku", "url", "shop",
          "condition", "availability")  # fmt: skip
_MOST_OFFERS = 50
_MISSING = object()


@dataclass(frozen=True, slots=True)
class JsonApi:
    """A JSON API.

    `items` is the path to the list of offers; each field has a path within an offer. A path is
    names and numbers joined by points: `results`, `offers.0.price`."""

    shop: Shop
    options: CatalogOptions
    url: str
    identifier_url: str
    items: str
    fields: Mapping[str, str]

    @classmethod
    def of(cls, shop: Shop, options: CatalogOptions) -> JsonApi:
        paths = shop.settings.get("fields", {})
        unknown = sorted(set(paths) - set(FIELDS))
        if unknown:
            raise UserError(
                f"an offer of {shop.name} has no field {unknown[0]!r}",
                f"Fields: {', '.join(FIELDS)}.",
            )
        defaults = {"title": "title", "price": "price"}
        return cls(
            shop,
            options,
            checked_template(shop, "url"),
            checked_template(shop, "identifier_url", required=False),
            str(shop.settings.get("items", "")),
            {**defaults, **paths},
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
        entries = at_path(reply.json(), self.items)
        if not isinstance(entries, list):
            raise ItemError(
                "INVALID_RESPONSE", f"{self.shop.name}: the reply has no list at {self.items!r}"
            )
        return [self._offer(entry, url) for entry in entries[:_MOST_OFFERS]]

    def _offer(self, entry: Any, url: str) -> Offer:
        values = {name: at_path(entry, path) for name, path in self.fields.items()}
        known = {name: value for name, value in values.items() if value is not _MISSING}
        return offer_of(self.shop, known, url, self.options.currency)


def at_path(value: Any, path: str) -> Any:
    """Returns the value at a path; _MISSING if there is none."""
    for step in filter(None, path.split(".")):
        if isinstance(value, dict):
            value = value.get(step, _MISSING)
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return _MISSING
    return value
