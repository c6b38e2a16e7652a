"""Offers of shops: what a provider answers to a query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.model import Json


@dataclass(frozen=True, slots=True)
class Offer:
    """An offer of a shop.

    `price_minor` is None if the shop named no price that can be used; `flaw` says why."""

    provider: str
    title: str
    price_minor: int | None
    currency: str
    brand: str = ""
    model: str = ""
    gtin: str | None = None
    sku: str = ""
    url: str = ""
    shop: str = ""
    condition: str = ""
    in_stock: bool = True
    trusted: bool = True
    flaw: str | None = None

    @property
    def source(self) -> str:
        return self.shop or self.provider

    def as_json(self) -> Json:
        values = ((name, getattr(self, name)) for name in self.__slots__)
        return {name: value for name, value in values if value not in (None, "")}


@dataclass(frozen=True, slots=True)
class SearchEvent:
    """One call of a provider."""

    provider: str
    strategy: str
    query: str
    success: bool
    results: int
    seconds: float
    attempt: int
    error: str | None = None


def offer_text(offer: Mapping[str, Any]) -> str:
    return f"{offer.get('title', '')} at {offer.get('shop') or offer.get('provider')}"
