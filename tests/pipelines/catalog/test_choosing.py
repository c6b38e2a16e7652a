"""Which offer is accepted, which never, and what is left to people."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.pipelines.catalog.choosing import Rules, Status, Tier, choose
from holdfast.pipelines.catalog.normalising.product import product_of
from holdfast.pipelines.catalog.offers import Offer
from holdfast.pipelines.catalog.strategies import identifier_query, queries

RULES = Rules("USD", accept=0.72, review=0.40, tolerance=0.20, bait=0.50)
WANTED = {"item_description": "Dyson V11 cordless vacuum cleaner", "brand": "Dyson"}


def offer(title: str, price: int | None = 59900, **values: Any) -> Offer:
    return Offer(values.pop("provider", "acme"), title, price, values.pop("currency", "USD"),
                 **values)  # fmt: skip


def chosen(row: dict[str, Any], *offers: Offer) -> Any:
    return choose(product_of(row, "USD"), offers, RULES)


def test_same_article_number_is_the_same_product_whatever_its_words() -> None:
    row = {"item_description": "vacuum", "gtin": "4006381333931"}
    choice = chosen(row, offer("Staubsauger", gtin="04006381333931"))
    assert (choice.status, choice.tier, choice.price_minor) == (Status.FOUND, Tier.SERP, 59900)
    assert "same article number" in choice.reason


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (offer("Dyson V11 cordless vacuum cleaner filter"), "something else"),
        (offer("Dyson V11 cordless vacuum cleaner refurbished"), "something else"),
        (offer("Dyson V11 cordless vacuum cleaner", condition="used"), "is used"),
        (offer("Dyson V11 cordless vacuum cleaner", None, flaw="the price is 0"), "price is 0"),
        (offer("Dyson V11 cordless vacuum cleaner", currency="EUR"), "in EUR"),
        (offer("Dyson V15 cordless vacuum cleaner"), "v15 instead of v11"),
        (offer("V11 cordless vacuum cleaner", brand="Dison"), "brand is Dison"),
        (offer("Dyson V11 cordless vacuum cleaner", in_stock=False), "out of stock"),
    ],
)
def test_offers_that_are_never_accepted(bad: Offer, why: str) -> None:
    choice = chosen(WANTED, bad)
    assert choice.status in (Status.REVIEW, Status.NONE)
    assert choice.price_minor is None
    assert why in choice.scores[0].why


def test_bait_is_left_aside() -> None:
    title = "Dyson V11 cordless vacuum cleaner"
    offers = [offer(title, price, url=f"https://a.example/{price}") for price in (4900, 58900)]
    choice = chosen(WANTED, *offers, offer(title, 59900), offer(title, 61000, url="https://c"))
    assert (choice.status, choice.price_minor) == (Status.FOUND, 58900)
    assert "far below" in choice.scores[-1].why


def test_equal_offers_whose_prices_differ_are_left_to_a_person() -> None:
    title = "Dyson V11 cordless vacuum cleaner"
    choice = chosen(WANTED, offer(title, 40000), offer(title, 59900))
    assert choice.status is Status.REVIEW
    assert "prices differ" in choice.reason


def test_one_common_word_proves_nothing() -> None:
    choice = chosen({"item_description": "mixer"}, offer("KitchenAid Artisan 5 Quart Mixer Red"))
    assert choice.status is Status.REVIEW


def test_price_far_from_the_list_is_left_to_a_person() -> None:
    choice = chosen(WANTED | {"price": 20}, offer("Dyson V11 cordless vacuum cleaner"))
    assert choice.status is Status.REVIEW
    assert "the list says 20.00 USD" in choice.reason


def test_shops_that_are_not_trusted_only_estimate() -> None:
    title = "Dyson V11 cordless vacuum cleaner"
    single = chosen(WANTED, offer(title, trusted=False))
    assert (single.status, single.tier) == (Status.ESTIMATED, Tier.FALLBACK)
    several = [
        offer(title, price, trusted=False, shop=f"shop {price}") for price in (58000, 59000, 62000)
    ]
    choice = chosen(WANTED, *several)
    assert (choice.status, choice.tier, choice.price_minor) == (
        Status.ESTIMATED, Tier.AGGREGATED, 59000,
    )  # fmt: skip


def test_model_is_named_by_whole_words_only() -> None:
    row = {"item_description": "graphics card", "brand": "Asus", "model": "RTX 4070"}
    assert chosen(row, offer("Asus RTX 4070 graphics card")).status is Status.FOUND
    assert chosen(row, offer("Asus RTX 4070Ti graphics card")).status is not Status.FOUND


def test_strategies_take_turns_from_attempt_to_attempt() -> None:
    product = product_of(
        {"item_description": "red kettle", "description": "steel, 1.7 l", "brand": "Bosch"}, "USD"
    )
    turns = [next(queries(product, attempt, 1)).strategy for attempt in range(1, 5)]
    assert turns[:3] == ["combined", "description_first", "item_description_only"]
    assert len(set(turns)) == 4
    assert identifier_query(product) is None
