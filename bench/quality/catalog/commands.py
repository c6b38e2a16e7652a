"""The choice of catalog on labelled lists, and the weights that are fitted to them."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

import typer

from bench.quality.catalog.fitting import Row, crossed, fitted, row_of
from bench.quality.catalog.measuring import LISTS, MORE_LISTS, Accuracy, Label, lists_in
from bench.quality.catalog.running import barcodes_read, choices_measured, offers_read
from holdfast.cli.arguments import JSON
from holdfast.cli.composition import table_limits
from holdfast.cli.opening import (
    ensure_schema,
    opened_store,
    run_async,
    settings_from_environment,
)
from holdfast.cli.output import errors, print_json, print_table
from holdfast.configuration import Settings
from holdfast.errors import UserError
from holdfast.tables.files import open_table
from holdfast_catalog.offers import Offer
from holdfast_catalog.options import CatalogOptions
from holdfast_catalog.pipeline import rules_of

LIST = typer.Option(None, "--list", help="Labelled list; its column Expected names an SKU.")
CATALOG = typer.Option(None, "--catalogue", help="The catalogue that it is looked up in.")
_SEED = 20261116
_ROWS_OF_LIST = 250


def accuracy(
    labelled: Path | None = LIST,
    catalogue: Path | None = CATALOG,
    photos: int = typer.Option(0, "--photos", min=0, help="Also read N generated photographs."),
    seed: int = typer.Option(_SEED, "--seed", help="Seed of the photographs."),
    misses: bool = typer.Option(False, "--misses", help="Print the rows with a wrong result."),
    as_json: bool = JSON,
) -> None:
    """Measure how often the right offer is chosen, on a labelled list.

    An Expected that is empty, or `review`, means that no price should be accepted. The lists in
    bench/quality/catalog/lists are used unless another is given.
    """
    if (labelled is None) is not (catalogue is None):
        raise UserError("a list is measured against its catalogue", "Give --list and --catalogue.")
    settings, result = settings_from_environment(), Accuracy()
    lists = LISTS if labelled is None or catalogue is None else ((labelled, catalogue),)
    for each, its_catalogue in lists:
        with _own_database(settings) as own:
            result.add(run_async(_measured(own, each, its_catalogue)))
    read = run_async(barcodes_read(settings.of("catalog"), photos, seed)) if photos else 0
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


def fit(
    out: Path = typer.Argument(..., metavar="FILE", help="JSON file for the weights."),
    folder: Path | None = typer.Option(
        None, "--lists", help="Your own lists too: a folder of NAME.csv and NAME_catalogue.csv."
    ),
    is_crossed: bool = typer.Option(
        False, "--cross", help="Also measure each list with weights fitted to the others."
    ),
) -> None:
    """Fit the weights of the choice to all labelled lists, except those that are kept aside.

    The file replaces weights.json of the pipeline. It is the same each time if the environment
    has PYTHONHASHSEED=0.
    """
    if not out.parent.is_dir():
        raise UserError(f"there is no folder {out.parent}", "Create it, or name another file.")
    own_lists = lists_in(folder) if folder else []
    settings = settings_from_environment()
    options: CatalogOptions = settings.of("catalog")
    lists: dict[str, list[Row]] = {}
    for labelled, catalogue in (*LISTS, *lists_in(MORE_LISTS), *own_lists):
        with _own_database(settings) as own:
            read = run_async(_offers(own, labelled, catalogue))
        weight = _ROWS_OF_LIST / len(read)  # a list counts as much as others, whatever its length
        lists[labelled.stem] = [
            row_of(label, offers, rules_of(label.product, options), weight)
            for label, offers in read
        ]
    weights = fitted([row for rows in lists.values() for row in rows])
    out.write_text(json.dumps(weights, indent=2) + "\n")
    measured = dict(crossed(lists)) if is_crossed else {}
    print_table(
        ("list", "rows", "correct choice", "wrong price accepted"),
        [
            (name, f"{each.rows:,}", f"{each.correct_share:.4f}", f"{each.wrong_share:.4f}")
            for name, each in (*measured.items(), *_total(measured))
        ],
        f"Fitted to {sum(map(len, lists.values())):,} rows of {len(lists)} lists.",
        right=("rows", "correct choice", "wrong price accepted"),
    )


def _total(measured: dict[str, Accuracy]) -> Iterator[tuple[str, Accuracy]]:
    total = Accuracy()
    for each in measured.values():
        total.add(each)
    if measured:
        yield "all", total


async def _offers(
    settings: Settings, labelled: Path, catalogue: Path
) -> list[tuple[Label, list[Offer]]]:
    limits = table_limits(settings)
    table, labels = open_table(catalogue, limits), open_table(labelled, limits)
    async with opened_store(settings) as store:
        write = store.database.write
        return await offers_read(store.fetch, write, settings.of("catalog"), table, labels)


@contextmanager
def _own_database(settings: Settings) -> Iterator[Settings]:
    """Nothing of this is kept, and what is loaded already does not count."""
    with tempfile.TemporaryDirectory() as folder:
        own = replace(settings, database_url=f"sqlite:///{folder}/accuracy.db")
        ensure_schema(own, ["catalog"])
        yield own


async def _measured(settings: Settings, labelled: Path, catalogue: Path) -> Accuracy:
    limits = table_limits(settings)
    table, labels = open_table(catalogue, limits), open_table(labelled, limits)
    async with opened_store(settings) as store:
        write = store.database.write
        return await choices_measured(store.fetch, write, settings.of("catalog"), table, labels)
