"""The pipeline class, which puts the parts together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.clock import SystemClock
from holdfast.errors import Category, ErrorCode, Failed, GateWait, NotFound, RetryClass
from holdfast.model import Json
from holdfast.options import Option
from holdfast.pipeline import Backoff, Context, Done, Pipeline, Settled, Tx
from holdfast.pipelines.catalog import rulings, saving
from holdfast.pipelines.catalog.choosing import Choice, Rules, Status
from holdfast.pipelines.catalog.lookup import Lookup
from holdfast.pipelines.catalog.normalising.money import currency_named
from holdfast.pipelines.catalog.normalising.product import INPUTS, Product, product_of
from holdfast.pipelines.catalog.options import CatalogOptions
from holdfast.pipelines.catalog.providers.shops import Shops
from holdfast.pipelines.catalog.results import COLUMNS, row_of
from holdfast.rulings import Ruled

_LONGEST_WAIT = 86_400.0


class Catalog(Pipeline):
    """Prices of the products on a list, from trusted shops."""

    name = "catalog"
    columns = COLUMNS
    inputs = INPUTS
    options = (
        Option("currency", help="Currency of prices that name none. Default: the setting."),
        Option("providers", help="Only these shops, separated by commas. Default: all."),
    )
    error_codes: Mapping[str, ErrorCode] = {
        "NO_PRODUCT": ErrorCode("NO_PRODUCT", Category.CONTENT, RetryClass.NEVER),
        # A page or reply that cannot be read is most likely a temporary problem of the shop.
        "INVALID_RESPONSE": ErrorCode("INVALID_RESPONSE", Category.PARSING, RetryClass.SOON),
        "PARSE_ERROR": ErrorCode("PARSE_ERROR", Category.PARSING, RetryClass.SOON),
    }

    def __init__(self, options: CatalogOptions | None = None) -> None:
        self._options = options or CatalogOptions()
        seconds = self._options.not_found_seconds
        self.max_attempts_not_found = self._options.attempts_not_found
        self.backoff = {"not_found": Backoff(seconds, max(seconds, _LONGEST_WAIT))}
        self._clock = SystemClock()
        self._shops = Shops(self._options, self._clock)
        super().__init__()

    async def process(self, row: Json, ctx: Context) -> Done:
        product = product_of(row, self._currency(ctx.options))
        if product.is_empty:
            raise Failed("NO_PRODUCT", "the row names no product: no description, model or number")
        only = str(ctx.options.get("providers", ""))
        providers = await self._shops.providers(ctx, only)
        lookup = Lookup(product, providers, self._rules(product), self._clock, ctx)
        choice = await lookup.run(self._options.strategies_per_attempt)
        self._require_answers(lookup, choice)
        result = row_of(product, choice, lookup.query, self._options.max_candidates)
        if choice.status is Status.NONE:
            raise NotFound(choice.reason, result=result, effects=lookup.events)
        return Done(result, effects=lookup.events)

    def _currency(self, options: Mapping[str, Any]) -> str:
        return currency_named(str(options.get("currency", ""))) or self._options.currency

    def _rules(self, product: Product) -> Rules:
        options = self._options
        return Rules(
            product.currency,
            options.accept_score,
            options.review_score,
            options.price_tolerance,
            options.bait_share,
        )

    def _require_answers(self, lookup: Lookup, choice: Choice) -> None:
        """Without a sure offer, a shop that did not answer might have had one: it is asked again
        before anything is concluded. What the last attempt knows is concluded."""
        if choice.status is Status.FOUND or not lookup.troubles:
            return
        waits = [trouble for trouble in lookup.troubles if isinstance(trouble, GateWait)]
        if waits:
            raise min(waits, key=lambda wait: wait.seconds)
        trouble = lookup.troubles[0]
        assert not isinstance(trouble, GateWait)
        trouble.effects = lookup.events
        raise trouble

    async def save(self, tx: Tx, settled: Sequence[Settled]) -> None:
        await saving.save_events(tx, settled)

    async def ruling(self, tx: Tx, ruled: Ruled) -> Mapping[str, Any] | None:
        return rulings.changes(ruled, self._currency(ruled.job.given_options))
