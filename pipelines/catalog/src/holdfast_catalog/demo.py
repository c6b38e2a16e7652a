"""A local catalogue and a list to price from it, for the demo."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from holdfast.demo.part import NOT_FOUND, Ask, DemoPart, Reply, Sample
from holdfast.orders import Act, Planned
from holdfast.pipeline import Tx
from holdfast.tables.files import open_table
from holdfast_catalog import loading

_SOURCE = "sample catalogue"
_CATALOGUE = Path(__file__).with_name("demo_catalogue.csv")
_LIST = Path(__file__).with_name("demo_list.csv")


def sample_list() -> str:
    """Returns things as people list them, some of which the catalogue does not have."""
    return _LIST.read_text("utf-8")


async def _load(tx: Tx) -> Planned:
    loaded, table = loading.Loaded(), open_table(_CATALOGUE, {})
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
    await sample.upload("insurance-list.csv", sample_list(), {})


async def _sources(sample: Sample) -> list[Any]:
    return list(await sample.fetch("catalog_sources", {}))


DEMO = DemoPart(answer, environment, fill)
