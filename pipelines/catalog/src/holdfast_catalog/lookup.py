"""Looks a product up: by identifier first, then by words, shop by shop, until one offer is
certain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from holdfast.clock import Clock
from holdfast.errors import GateWait, ItemError
from holdfast.pipeline import Context
from holdfast_catalog.choosing import Choice, Status, choose
from holdfast_catalog.normalising.product import Product
from holdfast_catalog.normalising.words import words_of
from holdfast_catalog.offers import Offer, SearchEvent
from holdfast_catalog.providers.contract import Provider
from holdfast_catalog.rivals import Rules
from holdfast_catalog.silences import Silences
from holdfast_catalog.strategies import IDENTIFIER, Query, identifier_query, queries

_LONGEST_ERROR = 300
_GONE = ("CONTENT_NOT_FOUND", "CONTENT_REMOVED")


@dataclass(slots=True)
class Lookup:
    """One attempt at one product. `troubles` are the shops that did not answer."""

    product: Product
    providers: Sequence[Provider]
    rules: Rules
    clock: Clock
    ctx: Context
    silences: Silences
    events: list[SearchEvent] = field(default_factory=list)
    troubles: list[ItemError | GateWait] = field(default_factory=list)
    query: Query | None = None
    _offers: list[Offer] = field(default_factory=list)

    async def run(self, strategies: int) -> Choice:
        """Returns the choice. It is not final if shops did not answer: see `troubles`."""
        identifier = identifier_query(self.product)
        plan = [] if identifier is None else [identifier]
        plan += queries(self.product, self.ctx.attempt, strategies)
        choice = choose(self.product, (), self.rules)
        best_query = plan[0] if plan else None
        for query in plan:
            for provider in self._in_turn():
                if provider.answers(query):
                    before = len(self._offers)
                    await self._ask(provider, query)
                    if len(self._offers) > before:
                        choice, best_query = self._judged(choice, best_query, query)
                    if choice.status is Status.FOUND:
                        self.query = best_query
                        return choice
        self.query = best_query
        return choice

    def _judged(
        self, choice: Choice, best_query: Query | None, query: Query
    ) -> tuple[Choice, Query | None]:
        """Returns the choice among all offers so far, and the query that brought it."""
        latest = choose(self.product, self._offers, self.rules)
        is_new = latest.status is not choice.status or latest.offer is not choice.offer
        return latest, query if is_new else best_query

    def _in_turn(self) -> list[Provider]:
        """Returns shops by priority; from attempt to attempt another one of equal trust comes
        first."""
        free = [provider for provider in self.providers if not provider.shop.cost]
        paid = [provider for provider in self.providers if provider.shop.cost]
        return [*_rotated(free, self.ctx.attempt), *_rotated(paid, self.ctx.attempt)]

    async def _ask(self, provider: Provider, query: Query) -> None:
        started = self.clock.monotonic()
        error: ItemError | GateWait | None = None
        offers: Sequence[Offer] = ()
        try:
            offers = await provider.offers(query, self.ctx)
        except (ItemError, GateWait) as trouble:
            if not _says_no_such_product(trouble, query):
                error = trouble
                self.troubles.append(self.silences.judged(provider.shop.name, query.kind, trouble))
        if error is None:
            self.silences.end(provider.shop.name, query.kind)
        self._offers += [offer for offer in offers if words_of(offer.title)]
        if not isinstance(error, GateWait):  # the shop was not asked
            self.events.append(
                SearchEvent(
                    provider.shop.name,
                    query.strategy,
                    query.text,
                    error is None,
                    len(offers),
                    self.clock.monotonic() - started,
                    self.ctx.attempt,
                    None if error is None else str(error)[:_LONGEST_ERROR],
                )
            )


def _says_no_such_product(trouble: ItemError | GateWait, query: Query) -> bool:
    """Whether a failure is an answer: the address of one product may not exist, but a search always
    does."""
    is_gone = isinstance(trouble, ItemError) and trouble.code in _GONE
    return is_gone and query.strategy == IDENTIFIER


def _rotated(providers: Sequence[Provider], attempt: int) -> list[Provider]:
    """Rotates providers; trusted shops stay before the others."""
    rotated: list[Provider] = []
    for trusted in (True, False):
        group = [provider for provider in providers if provider.shop.trusted is trusted]
        start = (attempt - 1) % len(group) if group else 0
        rotated += group[start:] + group[:start]
    return rotated
