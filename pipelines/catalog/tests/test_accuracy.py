"""The choice is right on the labelled list, as `holdfast catalog accuracy` measures it."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.errors import UserError
from holdfast.store import Store
from holdfast.tables.files import open_table
from holdfast_catalog.accuracy.measuring import LISTS, labels_in
from holdfast_catalog.accuracy.running import choices_measured
from holdfast_catalog.options import CatalogOptions

#: Lists in the words of people who do not know the catalogue. They are harder.
HARDER = {
    "everyday": (0.95, 0.010),
    "contents": (0.93, 0.007),
    "workshop": (0.92, 0.007),
    "personal": (0.89, 0.007),
    "basement": (0.92, 0.007),
    "apartment": (0.98, 0.007),
    "family": (0.95, 0.007),
    "hotel": (0.95, 0.010),
    "claims": (0.94, 0.020),
    "hobbies": (0.88, 0.020),
}


@pytest.mark.parametrize(
    ("labelled", "catalogue"), LISTS, ids=[labelled.stem for labelled, _ in LISTS]
)
async def test_right_offer_is_chosen_on_the_labelled_lists(
    store: Store, labelled: Path, catalogue: Path
) -> None:
    table = open_table(catalogue, {})
    accuracy = await choices_measured(
        store.fetch, store.database.write, CatalogOptions(), table, open_table(labelled, {})
    )
    assert accuracy.rows >= 150
    correct, wrong = HARDER.get(labelled.stem, (0.95, 0.010))
    assert accuracy.correct_share >= correct, accuracy.misses
    assert accuracy.wrong_share < wrong, accuracy.misses


def test_list_without_labels_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "list.csv"
    path.write_text("Title,Brand\nkettle,Bosch\n")
    with pytest.raises(UserError, match="no column Expected"):
        list(labels_in(open_table(path, {}), "USD"))
