"""A local catalogue and a list to price from it, for the demo."""

from __future__ import annotations

import csv
import io
from typing import Any

from holdfast.demo.part import NOT_FOUND, Ask, DemoPart, Reply, Sample
from holdfast.orders import Act, Planned
from holdfast.pipeline import Tx
from holdfast.tables.files import open_table
from holdfast_catalog import loading
from holdfast_catalog.accuracy.measuring import CATALOGUE, LABELLED

_SOURCE = "sample catalogue"
_LIST = "insurance-list.csv"
_ROWS = 150


def sample_list() -> str:
    """Returns things as people list them, some of which the catalogue does not have."""
    text = io.StringIO()
    with LABELLED.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        names = [name for name in rows.fieldnames or () if name != "Expected"]
        writer = csv.DictWriter(text, names, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(row for row, _ in zip(rows, range(_ROWS), strict=False))
    return text.getvalue()


async def _load(tx: Tx) -> Planned:
    loaded, table = loading.Loaded(), open_table(CATALOGUE, {})
    for rows in loading.batches(table, _SOURCE, True, "USD", loaded):
        await loading.save(tx, rows)
    return Planned(acts=[Act("catalog.loaded", _SOURCE, {"products": loaded.products})])


def answer(ask: Ask) -> Reply:
    return NOT_FOUND  # it asks no server


def environment(url: str) -> dict[str, str]:
    return {}


async def fill(sample: Sample) -> None:
    """Adds one catalogue and one list, once."""
    if any(row["source"] == _SOURCE for row in await _sources(sample)):
        return
    await sample.control.change(_load)
    await sample.upload(_LIST, sample_list(), {})


async def _sources(sample: Sample) -> list[Any]:
    return list(await sample.fetch("catalog_sources", {}))


DEMO = DemoPart(answer, environment, fill)
