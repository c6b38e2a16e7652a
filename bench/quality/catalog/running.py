"""Measures on a separate database, and on photographs made for it."""

from __future__ import annotations

import tempfile
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench.quality.catalog.measuring import Accuracy, Label, labels_in, measure
from holdfast.clock import SystemClock
from holdfast.pipeline import Fetch, Row, Tx
from holdfast.tables.files import TableFile
from holdfast_catalog import loading
from holdfast_catalog.choosing import Choice
from holdfast_catalog.lookup import Lookup
from holdfast_catalog.normalising.gtin import article_number
from holdfast_catalog.normalising.product import Product
from holdfast_catalog.offers import Offer
from holdfast_catalog.options import CatalogOptions
from holdfast_catalog.photos.reader import PhotoReader
from holdfast_catalog.pipeline import rules_of
from holdfast_catalog.providers.local import LocalCatalog
from holdfast_catalog.silences import Silences
from holdfast_catalog.strategies import identifier_query, queries

#: Carries out a transaction of this name.
Write = Callable[[str, Callable[[Tx], Awaitable[None]]], Awaitable[None]]


async def choices_measured(
    fetch: Fetch, write: Write, options: CatalogOptions, catalogue: TableFile, labelled: TableFile
) -> Accuracy:
    await _load(write, options, catalogue)
    clock = SystemClock()
    silences = Silences(clock, options.silence_seconds)

    async def look_up(product: Product) -> Choice:
        context: Any = _Reading(fetch)
        rules = rules_of(product, options)
        lookup = Lookup(product, [LocalCatalog()], rules, clock, context, silences)
        return await lookup.run(options.strategies_per_attempt)

    return await measure(labels_in(labelled, options.currency), look_up)


async def offers_read(
    fetch: Fetch, write: Write, options: CatalogOptions, catalogue: TableFile, labelled: TableFile
) -> list[tuple[Label, list[Offer]]]:
    """Returns the rows of a list, each with the offers that a look-up gets."""
    await _load(write, options, catalogue)
    context: Any = _Reading(fetch)
    rows: list[tuple[Label, list[Offer]]] = []
    for label in labels_in(labelled, options.currency):
        identifier = identifier_query(label.product)
        plan = [] if identifier is None else [identifier]
        plan += queries(label.product, 1, options.strategies_per_attempt)
        found = [await LocalCatalog().offers(query, context) for query in plan]
        rows.append((label, [offer for offers in found for offer in offers]))
    return rows


async def _load(write: Write, options: CatalogOptions, catalogue: TableFile) -> None:
    loaded = loading.Loaded()
    for rows in loading.batches(catalogue, "accuracy", True, options.currency, loaded):
        if rows:
            await write("catalog_load", partial(loading.save, rows=rows))


@dataclass(frozen=True, slots=True)
class _Reading:
    """Provides what a look-up in the local catalogue needs of a worker."""

    fetch: Fetch
    attempt: int = 1

    async def read(self, query: str, params: Mapping[str, Any] | None = None) -> list[Row]:
        return await self.fetch(query, params)


async def barcodes_read(options: CatalogOptions, count: int, seed: int) -> int:
    # Imported here because its packages are optional.
    from bench.quality.catalog.photographs import photographs

    reader = PhotoReader(options.photo_megabytes, options.photo_pixels, options.photo_seconds)
    read = 0
    with tempfile.TemporaryDirectory() as folder:
        for path, digits in photographs(Path(folder), count, seed):
            barcodes = (await reader.look(path)).barcodes
            read += article_number(digits).gtin in {article_number(each).gtin for each in barcodes}
            path.unlink()
    await reader.close()
    return read
