"""The demo's catalogue is loaded once, and prices most of its list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import structlog

from holdfast.columns import column_mapping
from holdfast.demo.part import Sample
from holdfast.kernel import Store
from holdfast.kernel.jobs.control import Control
from holdfast_catalog.demo import DEMO, sample_list
from holdfast_catalog.normalising.product import INPUTS
from pipelines.catalog.tests.scene import make_catalog
from tests.store.checks import fetch
from tests.without_messages import no_messages


async def test_fill_loads_one_catalogue_and_starts_one_job(store: Store) -> None:
    uploads: Counter[str] = Counter()

    async def upload(name: str, text: str, options: Mapping[str, Any]) -> int:
        uploads[text] += 1
        return 7

    control = Control(store, "admin", structlog.get_logger())
    for _ in range(2):
        await DEMO.fill(Sample(control, make_catalog(), store.fetch, upload, no_messages))
    assert uploads == {sample_list(): 1}
    [(products,)] = await fetch(store, "select count(*) from catalog_products")
    assert products > 100


def test_list_has_columns_that_catalog_knows_and_no_answers() -> None:
    header = sample_list().splitlines()[0].split(",")
    assert {"item_description", "brand", "model"} <= set(column_mapping(header, INPUTS).values())
    assert "Expected" not in header
