"""What is set up wrongly is said, and shops that never answer hold nothing up."""

from __future__ import annotations

import pytest

from holdfast.errors import SettingsError
from holdfast.kernel import Store
from pipelines.catalog.tests.scene import (
    TELEVISION,
    VACUUM,
    add_shop,
    json_shop,
    load,
    make_catalog,
    priced,
)
from pipelines.catalog.tests.test_pricing import decide
from tests.world import World, text_answer

ROW = {"item_description": "Sony BRAVIA 55 inch 4K television"}


async def test_shop_that_is_not_there_is_said_instead_of_no_offer(store: Store) -> None:
    await load(store, TELEVISION)
    _, rows = await priced(store, [ROW], providers="local,acme")
    assert rows[0]["item_status"] == "ERROR"
    assert "there is no shop 'acme', or it is off" in rows[0]["error"]
    await add_shop(store, "local", "local", enabled=0)
    _, rows = await priced(store, [ROW])
    assert "every shop is off" in rows[0]["error"]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_currency_that_is_none_is_not_replaced_by_another(store: Store) -> None:
    await load(store, TELEVISION)
    _, rows = await priced(store, [ROW], currency="euros")
    assert "'euros' is not a currency" in rows[0]["error"]
    with pytest.raises(SettingsError, match="HOLDFAST_CATALOG_CURRENCY: 'dollars'"):
        make_catalog(currency="dollars")


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_offer_of_another_shop_counts_though_one_refuses_for_good(store: Store) -> None:
    offer = {"title": "Dyson V11 cordless vacuum", "price": 599}
    async with World() as refusing, World() as other:
        refusing.on("/search", text_answer("no", 403))
        json_shop(other, {"dyson": [offer]})
        await add_shop(store, "refusing", "json", url=refusing.url("/search?q={query}"))
        url = other.url("/search?q={query}")
        await add_shop(store, "other", "json", url=url, items="results", trusted=0)
        _, rows = await priced(store, [{"item_description": "Dyson V11 cordless vacuum"}])
    assert (rows[0]["Status"], rows[0]["Price"]) == ("Estimated", 599.0)
    assert "Not every shop answered" in rows[0]["Reason"] and "403" in rows[0]["Reason"]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_key_from_the_environment_may_end_with_a_line(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACME_KEY", "s3cret\n")
    async with World() as shop:
        json_shop(shop, {"dyson": [{"title": "Dyson V11 cordless vacuum", "price": 599}]})
        settings = {"url": shop.url("/search?q={query}"), "items": "results"}
        await add_shop(store, "acme", "json", headers={"X-Key": "env:ACME_KEY"}, **settings)
        _, rows = await priced(store, [{"item_description": "Dyson V11 cordless vacuum"}])
        assert {request.headers["x-key"] for request in shop.asked("/search")} == {"s3cret"}
    assert rows[0]["Status"] == "Found"


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_offers_without_a_title_spoil_no_other_offer(store: Store) -> None:
    offer = {"title": "Dyson V11 cordless vacuum", "price": 599}
    async with World() as shop:
        json_shop(shop, {"dyson": ["text", 7, [], {"title": "--", "price": 5}, offer]})  # type: ignore[list-item]
        url = shop.url("/search?q={query}")
        await add_shop(store, "acme", "json", url=url, items="results")
        _, rows = await priced(store, [{"item_description": "Dyson V11 cordless vacuum"}])
    assert (rows[0]["Status"], rows[0]["Price"]) == ("Found", 599.0)
    assert len(rows[0]["candidates"]) == 1


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_number_that_a_shop_does_not_know_is_not_an_error(store: Store) -> None:
    async with World() as shop:
        json_shop(shop, {})
        shop.on("/product", text_answer("unknown", 404))
        urls = {
            "url": shop.url("/search?q={query}"),
            "identifier_url": shop.url("/product?g={gtin}"),
        }
        await add_shop(store, "acme", "json", items="results", **urls)
        row = {"item_description": "Dyson V11 cordless vacuum", "gtin": "4006381333931"}
        job_id, rows = await priced(store, [row])
    assert (rows[0]["item_status"], rows[0]["Status"]) == ("NOT_FOUND", "No Market Price")
    events = await store.fetch("catalog_search_events_of_item", {"job_id": job_id, "seq": 1})
    assert all(event["success"] for event in events)


async def test_row_that_failed_is_named_when_a_person_prices_it(store: Store) -> None:
    await load(store, VACUUM)
    row = {"item": "A7", "item_description": "Dyson V11 vacuum", "quantity": 2}
    job_id, rows = await priced(store, [row], providers="acme")
    assert rows[0]["item_status"] == "ERROR"
    typed = await decide(store, job_id, "edit", {"Price": "500"})
    assert (typed["Item #"], typed["Description"]) == ("A7", "Dyson V11 vacuum")
    assert (typed["Price"], typed["Total Replacement Price"]) == (500.0, 1000.0)
