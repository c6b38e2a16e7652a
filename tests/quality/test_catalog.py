"""The choice is right on the labelled list, as `python -m bench.quality catalog` measures it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import holdfast_catalog as catalog
from bench.quality.catalog.measuring import LISTS, labels_in
from bench.quality.catalog.running import choices_measured
from holdfast.errors import UserError
from holdfast.kernel import Store
from holdfast.tables.files import open_table
from holdfast_catalog.options import CatalogOptions
from tests.quality.command import measured

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


def test_command_measures_a_list_of_ones_own(tmp_path: Path) -> None:
    mine, theirs = tmp_path / "mine.csv", tmp_path / "theirs.csv"
    mine.write_text("Item Description,Expected\nSony BRAVIA 55 inch TV,S1\nvase,\n")
    theirs.write_text("SKU,Title,Price\nS1,Sony BRAVIA 55 inch 4K TV,699\n")
    own = ("catalog", "--list", mine, "--catalogue", theirs)
    figures = json.loads(measured(*own, "--photos", "1", "--json").stdout)
    assert (figures["rows"], figures["correct"], figures["wrong_prices"]) == (2, 2, 0)
    assert (figures["photos"], figures["barcodes_read"]) == (1, 1)
    assert "correct choice" in measured(*own).stdout
    alone = measured("catalog", "--list", mine)
    assert alone.returncode == 1 and "--catalogue" in alone.stderr


def test_fit_says_at_once_which_folder_is_wrong(tmp_path: Path) -> None:
    nowhere = measured("fit", tmp_path / "nowhere" / "weights.json")
    assert nowhere.returncode == 1 and "there is no folder" in nowhere.stderr
    empty = measured("fit", tmp_path / "weights.json", "--lists", tmp_path)
    assert empty.returncode == 1 and "has no lists" in empty.stderr


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_weights_that_ship_are_fitted_to_the_lists(tmp_path: Path) -> None:
    fitted = measured("fit", tmp_path / "weights.json", timeout=1100)
    assert fitted.returncode == 0, fitted.stderr
    shipped = Path(catalog.__file__).with_name("weights.json")
    assert (tmp_path / "weights.json").read_bytes() == shipped.read_bytes()
