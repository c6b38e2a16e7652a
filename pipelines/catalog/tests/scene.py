"""A catalogue in a store, shops on loopback, and a list that is priced by one worker."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import orjson
import structlog

from holdfast.extension import installed
from holdfast.kernel import NewItem, Store
from holdfast.kernel.jobs.control import Control, JobFile, JobRequest
from holdfast.pipeline import Pipeline
from holdfast_catalog import loading
from holdfast_catalog.normalising.product import product_of
from holdfast_catalog.options import CatalogOptions
from tests.engine.one_worker import work
from tests.store.checks import ingest, items_of, lease_stream
from tests.world import Request, World, json_answer

TELEVISION = {
    "item_description": "Sony BRAVIA 55 inch 4K television",
    "brand": "Sony",
    "model": "KD55X80K",
    "gtin": "027242923782",
    "price": 699.99,
}
MIXER = {
    "item_description": "KitchenAid Artisan 5 Quart Stand Mixer Empire Red",
    "brand": "KitchenAid",
    "model": "KSM150PSER",
    "gtin": "883049118949",
    "price": 449.95,
}
VACUUM = {"item_description": "Dyson V11 cordless vacuum", "brand": "Dyson", "price": 599}


def make_catalog(**options: Any) -> Pipeline:
    return installed()["catalog"].make(CatalogOptions(not_found_seconds=0, **options))


async def load(store: Store, *rows: dict[str, Any], source: str = "acme", trusted: int = 1) -> None:
    products = [product_of(row, "USD") for row in rows]
    prepared = [
        loading.row_of(product, source, loading.reference_of(product), bool(trusted), "")
        for product in products
    ]
    await store.database.write("catalog_load", partial(loading.save, rows=prepared))


async def add_shop(store: Store, name: str, kind: str, **settings: Any) -> None:
    row = {"name": name, "kind": kind, "priority": 100, "trusted": 1, "enabled": 1, "cost": 0}
    row |= {name: settings.pop(name) for name in list(settings) if name in row}
    own = {"currency": settings.pop("currency", ""), "settings": orjson.dumps(settings).decode()}
    await store.database.write(
        "catalog_shop", lambda tx: tx.take("catalog_save_provider", row | own)
    )


async def priced(
    store: Store, rows: Sequence[dict[str, Any]], made: Pipeline | None = None, **options: Any
) -> tuple[int, list[dict[str, Any]]]:
    """The job, and each row's result with `item_status` and `error`."""
    pipeline = made or make_catalog()
    control = Control(store, "tester", structlog.get_logger())
    file = JobFile("list.csv", "list.csv", str(len(rows)))
    job_id = await control.start(JobRequest(pipeline, options, file))
    stream = await lease_stream(store, job_id)
    await ingest(store, stream, [NewItem(orjson.dumps(row).decode()) for row in rows], end=True)
    patience = 180 + len(rows) / 5
    await work(store, pipeline, patience, HOLDFAST_ALLOW_PRIVATE_ADDRESSES="true")
    return job_id, [
        (orjson.loads(item.result) if item.result else {})
        | {"item_status": str(item.status), "error": item.error_message}
        for item in await items_of(store, job_id)
    ]


def json_shop(world: World, offers: dict[str, list[dict[str, Any]]]) -> None:
    """Answers with the offers of the first word of the query that it knows."""

    def search(request: Request) -> Any:
        words = request.query.get("q", "").lower().split()
        known = next((word for word in words if word in offers), None)
        return json_answer({"results": offers[known] if known else []})

    world.on("/search", search)
