"""The example's shop has the moods that its pipeline is meant to meet."""

import csv
import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SHOP = runpy.run_path(str(EXAMPLES / "shop.py"))
MOODS = ["TOO_BUSY_AT_FIRST", "BROKEN_AT_FIRST", "SLOW", "NOT_SOLD", "PAGE_IS_GONE", "MEMBERS_ONLY"]


@pytest.fixture(scope="module")
def titles() -> list[str]:
    with (EXAMPLES / "products.csv").open(encoding="utf-8", newline="") as file:
        return [row["title"] for row in csv.DictReader(file)]


@pytest.mark.parametrize("mood", MOODS)
def test_every_mood_of_the_shop_meets_a_product(mood: str, titles: list[str]) -> None:
    assert SHOP[mood]
    assert SHOP[mood] <= set(titles)


def test_products_are_distinct(titles: list[str]) -> None:
    assert len(titles) == len(set(titles)) == 40


def test_every_product_has_an_offer_with_a_price(titles: list[str]) -> None:
    for title in titles:
        offers = SHOP["offers"](title)
        assert offers
        assert all(offer["price"] > 0 and offer["shop"] for offer in offers)
