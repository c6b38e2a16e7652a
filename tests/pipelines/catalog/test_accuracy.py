"""The choice is right on the labelled list, as `holdfast catalog accuracy` measures it."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.pipelines.catalog.accuracy.measuring import LISTS
from holdfast.pipelines.catalog.accuracy.running import choices_measured
from holdfast.pipelines.catalog.options import CatalogOptions
from holdfast.store import Store
from holdfast.tables.files import open_table


@pytest.mark.parametrize(("labelled", "catalogue"), LISTS, ids=["first", "hard", "everyday"])
async def test_right_offer_is_chosen_on_the_labelled_lists(
    store: Store, labelled: Path, catalogue: Path
) -> None:
    table = open_table(catalogue, {})
    accuracy = await choices_measured(
        store.fetch, store.database.write, CatalogOptions(), table, labelled
    )
    assert accuracy.rows >= 200
    assert accuracy.correct_share >= 0.95, accuracy.misses
    assert accuracy.wrong_share < 0.01, accuracy.misses
