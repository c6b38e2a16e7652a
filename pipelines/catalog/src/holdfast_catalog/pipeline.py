"""The pipeline class, which puts the parts together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from holdfast.clock import SystemClock
from holdfast.errors import (
    Category,
    ErrorCode,
    Failed,
    GateWait,
    ItemError,
    NotFound,
    RetryClass,
    SettingsError,
    Skip,
    error_code,
)
from holdfast.model import Json
from holdfast.options import Option
from holdfast.pipeline import Backoff, Context, Done, Pipeline, Settled, Tx
from holdfast.rulings import Ruled
from holdfast_catalog import rulings, saving
from holdfast_catalog.choosing import Choice, Status, baseline
from holdfast_catalog.lookup import Lookup
from holdfast_catalog.normalising.money import currency_named
from holdfast_catalog.normalising.product import (
    INPUTS,
    Product,
    product_of,
    repeats_header,
)
from holdfast_catalog.options import CatalogOptions
from holdfast_catalog.photos.describing import describe, keep_thumbnail
from holdfast_catalog.photos.likeness import SeenPhotos
from holdfast_catalog.photos.naming import from_barcodes, from_text
from holdfast_catalog.photos.reader import PhotoReader
from holdfast_catalog.providers.shops import Shops
from holdfast_catalog.results import COLUMNS, priced, row_of
from holdfast_catalog.rivals import Rules
from holdfast_catalog.saving import Effects
from holdfast_catalog.silences import SHOP_SILENT, Silences

_LONGEST_WAIT = 86_400.0
_USUAL_ATTEMPTS = 5


class Catalog(Pipeline):
    """Prices of the products on a list or on photographs, from trusted shops."""

    name = "catalog"
    columns = COLUMNS
    inputs = INPUTS
    timeout = 300.0  # photographs wait for each other
    options = (
        Option("currency", help="Currency of prices that do not name one. Default: the setting."),
        Option("providers", help="Only these shops, separated by commas. Default: all."),
        Option("baseline", bool, False, "Use the list's own price where no shop has an offer."),
    )
    error_codes: Mapping[str, ErrorCode] = {
        "SHOP_SETUP": ErrorCode("SHOP_SETUP", Category.GENERIC, RetryClass.NEVER),
        SHOP_SILENT: ErrorCode(SHOP_SILENT, Category.NETWORK, RetryClass.NEVER),
        "NO_CURRENCY": ErrorCode("NO_CURRENCY", Category.GENERIC, RetryClass.NEVER),
        "NO_PRODUCT": ErrorCode("NO_PRODUCT", Category.CONTENT, RetryClass.NEVER),
        # A page or reply that cannot be read is most likely a temporary problem of the shop.
        "INVALID_RESPONSE": ErrorCode("INVALID_RESPONSE", Category.PARSING, RetryClass.SOON),
        "PARSE_ERROR": ErrorCode("PARSE_ERROR", Category.PARSING, RetryClass.SOON),
    }

    def __init__(self, options: CatalogOptions | None = None) -> None:
        self._options = options or CatalogOptions()
        if currency_named(self._options.currency) != self._options.currency:
            raise SettingsError(
                f"HOLDFAST_CATALOG_CURRENCY: {self._options.currency!r} is not a currency",
                "Give a code such as EUR.",
            )
        seconds = self._options.not_found_seconds
        self.max_attempts_not_found = self._options.attempts_not_found
        self.backoff = {"not_found": Backoff(seconds, max(seconds, _LONGEST_WAIT))}
        self._clock = SystemClock()
        self._shops = Shops(self._options, self._clock)
        self._silences = Silences(self._clock, self._options.silence_seconds)
        self._seen = SeenPhotos()
        self._photos = PhotoReader(
            self._options.photo_megabytes, self._options.photo_pixels, self._options.photo_seconds
        )
        super().__init__()

    async def process(self, row: Json, ctx: Context) -> Done:
        if ctx.job.reading.images:
            return await self._photo(row, ctx)
        if repeats_header(row):
            raise Skip("the row repeats the names of the columns")
        product = product_of(row, self._currency(ctx.options))
        if product.is_empty:
            raise Failed("NO_PRODUCT", "the row names no product: no description, model or number")
        effects = Effects()
        choice, result = await self._look_up(product, ctx, effects)
        return _concluded(choice, result, effects)

    async def _photo(self, row: Json, ctx: Context) -> Done:
        """Looks a photograph up by its barcode first; reads printed text if that is not enough."""
        currency, effects = self._currency(ctx.options), Effects()
        async with ctx.file(row) as path:
            name = str(row["name"])
            photo = await self._photos.look(path)
            effects.photo = await keep_thumbnail(name, photo, ctx)
            product = from_barcodes(name, photo.barcodes, currency)
            choice, result = Choice(Status.NONE, "nothing can be read on it"), None
            if product is not None:
                choice, result = await self._look_up(product, ctx, effects)
                if choice.offer is not None:  # the name of a file says nothing about what it shows
                    shown = replace(product, item_description=choice.offer.title)
                    result |= priced(shown, choice.price_minor) | {"Description": shown.label}
            if not choice.is_priced and self._options.read_text:
                lines, unread = await self._text_on(path, result is not None)
                printed = from_text(lines, currency)
                if printed is not None:
                    choice, result = await self._look_up(printed, ctx, effects)
                elif unread and result is not None:
                    result["Reason"] += f". {unread}"
        if result is None:
            unknown = product_of({"item_description": name}, currency)
            result = row_of(unknown, choice, None, 0)
        described = await describe(result, name, photo, self._seen, ctx)
        return _concluded(choice, described, effects)

    async def _text_on(self, path: Path, is_known: bool) -> tuple[list[str], str]:
        """Returns the lines on a photograph.

        If its barcode is known already, a failure to read its text is only mentioned."""
        try:
            return await self._photos.text(path), ""
        except Failed as error:
            if not is_known:
                raise
            return [], f"Its text was not read: {error.message}"

    async def _look_up(
        self, product: Product, ctx: Context, effects: Effects
    ) -> tuple[Choice, Json]:
        only = str(ctx.options.get("providers", ""))
        providers = await self._shops.providers(ctx, only)
        rules = rules_of(product, self._options)
        lookup = Lookup(product, providers, rules, self._clock, ctx, self._silences)
        choice = await lookup.run(self._options.strategies_per_attempt)
        effects.events += lookup.events
        choice = self._require_answers(lookup, choice, effects)
        if ctx.options.get("baseline") and ctx.attempt >= self._options.attempts_not_found:
            choice = baseline(product, choice)
        return choice, row_of(product, choice, lookup.query, self._options.max_candidates)

    def _currency(self, options: Mapping[str, Any]) -> str:
        given = str(options.get("currency", "")).strip()
        currency = currency_named(given)
        if given and currency is None:
            raise Failed("NO_CURRENCY", f"the option currency: {given[:30]!r} is not a currency")
        return currency or self._options.currency

    def _require_answers(self, lookup: Lookup, choice: Choice, effects: Effects) -> Choice:
        """Requires answers: without a certain offer, a shop that did not answer might have had one,
        so it is asked again before anything is concluded. The last attempt concludes from what it
        knows."""
        if choice.status is Status.FOUND or not lookup.troubles:
            return choice
        waits = [trouble for trouble in lookup.troubles if isinstance(trouble, GateWait)]
        if waits:
            raise min(waits, key=lambda wait: wait.seconds)
        trouble = lookup.troubles[0]
        assert not isinstance(trouble, GateWait)
        is_last = lookup.ctx.attempt >= (self.max_attempts or _USUAL_ATTEMPTS)
        if choice.status is not Status.NONE and (is_last or self._is_permanent(lookup)):
            return replace(choice, reason=f"{choice.reason}. Not every shop answered: {trouble}")
        trouble.effects = effects
        raise trouble

    def _is_permanent(self, lookup: Lookup) -> bool:
        """Whether the shops that did not answer would not answer another attempt either."""
        codes = [each.code for each in lookup.troubles if isinstance(each, ItemError)]
        own = dict(self.error_codes)
        return all(error_code(code, own).retry is RetryClass.NEVER for code in codes)

    async def save(self, tx: Tx, settled: Sequence[Settled]) -> None:
        await saving.save(tx, settled)

    async def ruling(self, tx: Tx, ruled: Ruled) -> Mapping[str, Any] | None:
        named = currency_named(str(ruled.job.options.get("currency", "")))
        return rulings.changes(ruled, named or self._options.currency)


def rules_of(product: Product, options: CatalogOptions) -> Rules:
    return Rules(
        product.currency,
        options.accept_score,
        options.review_score,
        options.price_tolerance,
        options.bait_share,
    )


def _concluded(choice: Choice, result: Json, effects: Effects) -> Done:
    if choice.status is Status.NONE:
        raise NotFound(choice.reason, result=result, effects=effects)
    return Done(result, effects=effects)
