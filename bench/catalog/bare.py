"""Runs the bare loop: every row is looked up in the local catalogue, and nothing else happens."""

from __future__ import annotations

import asyncio
import csv
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from holdfast.clock import SystemClock
from holdfast.columns import column_mapping, mapped_row
from holdfast.kernel import Store, open_store
from holdfast.pipeline import Row
from holdfast_catalog.lookup import Lookup
from holdfast_catalog.normalising.product import INPUTS, product_of
from holdfast_catalog.options import CatalogOptions
from holdfast_catalog.pipeline import rules_of
from holdfast_catalog.providers.local import LocalCatalog
from holdfast_catalog.results import row_of
from holdfast_catalog.silences import Silences


@dataclass(frozen=True, slots=True)
class Reading:
    store: Store
    attempt: int = 1

    async def read(self, query: str, params: Mapping[str, Any] | None = None) -> list[Row]:
        return await self.store.fetch(query, params)


async def price(url: str, path: Path) -> float:
    """Returns the seconds for all rows of a file."""
    store, options, clock = await open_store(url), CatalogOptions(), SystemClock()
    context: Any = Reading(store)
    silences = Silences(clock, options.silence_seconds)
    started = clock.monotonic()
    with path.open(newline="") as file:
        reader = csv.DictReader(file)
        mapping = column_mapping(list(reader.fieldnames or ()), INPUTS)
        for row in reader:
            product = product_of(mapped_row(row, mapping), options.currency)
            rules = rules_of(product, options)
            lookup = Lookup(product, [LocalCatalog()], rules, clock, context, silences)
            choice = await lookup.run(options.strategies_per_attempt)
            orjson.dumps(row_of(product, choice, lookup.query, options.max_candidates))
    seconds = clock.monotonic() - started
    await store.close()
    return seconds


if __name__ == "__main__":
    print(asyncio.run(price(sys.argv[1], Path(sys.argv[2]))))
