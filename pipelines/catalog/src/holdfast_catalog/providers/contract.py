"""Defines a provider: data about a shop, and how it is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from holdfast.pipeline import Context
from holdfast_catalog.offers import Offer
from holdfast_catalog.strategies import Query


@dataclass(frozen=True, slots=True)
class Shop:
    """A row of catalog_providers. A lower priority is asked first; `trusted` shops make a price
    Found, others only Estimated. `cost` is what a query costs, for the order among equals."""

    name: str
    kind: str
    priority: int = 100
    trusted: bool = True
    cost: float = 0.0
    currency: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)


class Provider(Protocol):
    """Asks one shop. It raises ItemError or GateWait if the shop does not answer."""

    @property
    def shop(self) -> Shop: ...

    def answers(self, query: Query) -> bool:
        """Whether it can be asked this."""

    async def offers(self, query: Query, ctx: Context) -> Sequence[Offer]: ...
