"""`holdfast catalog accuracy`: measures the choice and the barcodes, and prints the result."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import typer

from holdfast.cli.arguments import JSON
from holdfast.cli.composition import table_limits
from holdfast.cli.opening import ensure_schema, opened_store, run_async, settings_from_environment
from holdfast.cli.output import errors, print_json, print_table
from holdfast.clock import SystemClock
from holdfast.pipeline import Fetch, Row
from holdfast.pipelines.catalog import loading
from holdfast.pipelines.catalog.accuracy.measuring import (
    CATALOGUE,
    LABELLED,
    Accuracy,
    labels_in,
    measure,
)
from holdfast.pipelines.catalog.choosing import Choice
from holdfast.pipelines.catalog.lookup import Lookup
from holdfast.pipelines.catalog.normalising.product import Product
from holdfast.pipelines.catalog.options import CatalogOptions
from holdfast.pipelines.catalog.photos.reader import PhotoReader
from holdfast.pipelines.catalog.pipeline import rules_of
from holdfast.pipelines.catalog.providers.local import LocalCatalog
from holdfast.settings import Settings
from holdfast.tables.files import open_table

_SEED = 20261116
LIST = typer.Option(LABELLED, "--list", help="Labelled list; its column Expected names an SKU.")
CATALOG = typer.Option(CATALOGUE, "--catalogue", help="The catalogue that it is looked up in.")


def accuracy(
    labelled: Path = LIST,
    catalogue: Path = CATALOG,
    photos: int = typer.Option(0, "--photos", min=0, help="Also read N generated photographs."),
    seed: int = typer.Option(_SEED, "--seed", help="Seed of the photographs."),
    misses: bool = typer.Option(False, "--misses", help="Print the rows that are not right."),
    as_json: bool = JSON,
) -> None:
    """Measure how often the right offer is chosen, on a labelled list.

    An Expected that is empty, or `review`, means that no price should be accepted. The list and
    the catalogue that come with Holdfast are used unless others are given.
    """
    settings = settings_from_environment()
    with _own_database(settings) as own:
        result = run_async(_measured(own, labelled, catalogue))
    read = run_async(_barcodes_read(settings.of("catalog"), photos, seed)) if photos else 0
    if as_json:
        print_json(asdict(result) | {"photos": photos, "barcodes_read": read})
        return
    rows = [
        ("rows", f"{result.rows:,}"),
        ("correct choice", f"{result.correct_share:.4f}"),
        ("wrong price accepted", f"{result.wrong_share:.4f}"),
        ("left to a person", f"{result.reviews:,}"),
    ]
    if photos:
        rows.append(("barcodes read", f"{read / photos:.4f} of {photos:,}"))
    print_table(("measure", "value"), rows, "", right=("value",))
    if misses:
        for miss in result.misses:
            errors.print(" · ".join(map(str, miss.values())), markup=False)


@contextmanager
def _own_database(settings: Settings) -> Iterator[Settings]:
    """Nothing of this is kept, and what is loaded already does not count."""
    with tempfile.TemporaryDirectory() as folder:
        own = replace(settings, database_url=f"sqlite:///{folder}/accuracy.db")
        ensure_schema(own)
        yield own


async def _measured(settings: Settings, labelled: Path, catalogue: Path) -> Accuracy:
    options: CatalogOptions = settings.of("catalog")
    table = open_table(catalogue, table_limits(settings))
    async with opened_store(settings) as store:
        batches = loading.batches(table, "accuracy", True, options.currency, loading.Loaded())
        for rows in batches:
            if rows:
                save = partial(loading.save, rows=rows)
                await store.database.write("catalog_load", save)

        async def look_up(product: Product) -> Choice:
            context: Any = _Reading(store.fetch)
            rules = rules_of(product, options)
            lookup = Lookup(product, [LocalCatalog()], rules, SystemClock(), context)
            return await lookup.run(options.strategies_per_attempt)

        return await measure(labels_in(labelled, options.currency), look_up)


@dataclass(frozen=True, slots=True)
class _Reading:
    """What a look-up in the local catalogue needs of a worker."""

    fetch: Fetch
    attempt: int = 1

    async def read(self, query: str, params: Mapping[str, Any]) -> list[Row]:
        return await self.fetch(query, params)


async def _barcodes_read(options: CatalogOptions, count: int, seed: int) -> int:
    # Only here: the packages of photographs are optional.
    from holdfast.pipelines.catalog.accuracy.photographs import photographs

    reader = PhotoReader(options.photo_megabytes, options.photo_pixels, options.photo_seconds)
    read = 0
    with tempfile.TemporaryDirectory() as folder:
        for path, digits in photographs(Path(folder), count, seed):
            read += digits in (await reader.look(path)).barcodes
            path.unlink()
    await reader.close()
    return read
