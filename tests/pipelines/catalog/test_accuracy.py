"""The choice is right on the labelled list, as `holdfast catalog accuracy` measures it."""

from __future__ import annotations

from holdfast.pipelines.catalog.accuracy.measuring import CATALOGUE, LABELLED
from holdfast.pipelines.catalog.accuracy.running import choices_measured
from holdfast.pipelines.catalog.options import CatalogOptions
from holdfast.store import Store
from holdfast.tables.files import open_table


async def test_right_offer_is_chosen_on_the_labelled_list(store: Store) -> None:
    table = open_table(CATALOGUE, {})
    accuracy = await choices_measured(
        store.fetch, store.database.write, CatalogOptions(), table, LABELLED
    )
    assert accuracy.rows >= 300
    assert accuracy.correct_share >= 0.95, accuracy.misses
    assert accuracy.wrong_share < 0.01, accuracy.misses
