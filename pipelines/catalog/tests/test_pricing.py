"""Lists are priced from the local catalogue and from shops that throttle, fail and lie."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from holdfast.errors import UserError
from holdfast.features.console import open_console
from holdfast.features.items.grid import result_of
from holdfast.features.rulings.rules import NewRuling
from holdfast.kernel import Store
from holdfast.rulings import RulingKind
from holdfast_catalog import loading
from pipelines.catalog.tests.scene import (
    MIXER,
    TELEVISION,
    VACUUM,
    add_shop,
    json_shop,
    load,
    make_catalog,
    priced,
)
from tests.store.checks import items_of
from tests.world import Request, World, json_answer, text_answer

ROWS: list[dict[str, Any]] = [
    {"item": 1, "item_description": "television", "brand": "Sony", "model": "KD55X80K"},
    {"item": 2, "item_description": "mixer", "gtin": "883049118949", "quantity": 2},
    {"item": 3, "item_description": "dyson v11 vacuum cordless"},
    {"item": 4, "item_description": "garden gnome"},
    {"item": 5},
]


async def test_list_is_priced_from_the_local_catalogue(store: Store) -> None:
    await load(store, TELEVISION, MIXER, VACUUM)
    job_id, rows = await priced(store, ROWS)
    assert [row.get("Status") for row in rows] == [
        "Found", "Found", "Found", "No Market Price", None,
    ]  # fmt: skip
    assert [row["item_status"] for row in rows] == ["DONE", "DONE", "DONE", "NOT_FOUND", "ERROR"]
    assert [row.get("Price") for row in rows] == [699.99, 449.95, 599.0, None, None]
    assert (rows[1]["Total Replacement Price"], rows[1]["Dep Amount"]) == (899.9, 179.98)
    assert rows[1]["Query Strategy"] == "identifier"
    events = await store.fetch("catalog_search_events_of_item", {"job_id": job_id, "seq": 4})
    assert {event["attempt"] for event in events} == {1, 2}
    assert all(event["success"] and event["results"] == 0 for event in events)


async def test_catalogue_that_is_loaded_again_is_replaced(store: Store) -> None:
    await load(store, TELEVISION)
    await load(store, TELEVISION | {"price": 650, "item_description": "Sony TV, new title"})
    assert (await store.fetch("catalog_sources"))[0]["products"] == 1
    _, rows = await priced(store, [{"item_description": "sony tv title"}, ROWS[0]])
    assert [row["Price"] for row in rows] == [650.0, 650.0]


async def test_what_a_catalogue_had_and_its_new_file_has_not_is_removed_last(store: Store) -> None:
    """A load that is killed, and a job that runs meanwhile, miss nothing."""
    await load(store, TELEVISION, MIXER)
    await load(store, VACUUM, source="other")
    await asyncio.sleep(0.002)  # the clock of SQLite counts milliseconds
    began = (await store.fetch("catalog_now"))[0]["instant"]
    await load(store, TELEVISION | {"price": 650})
    assert [row["products"] for row in await store.fetch("catalog_sources")] == [2, 1]
    drop = partial(loading.drop_older, source="acme", before=began)
    await store.database.write("catalog_drop", drop)
    _, rows = await priced(store, [ROWS[0], ROWS[1], VACUUM])
    assert [row["Price"] for row in rows] == [650.0, None, 599.0]


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
async def test_misspelt_products_are_found_by_trigrams(store: Store) -> None:
    await load(store, TELEVISION, MIXER)
    _, rows = await priced(store, [{"item_description": "kitchenaide artisaan"}])
    assert rows[0]["Status"] == "Found", rows
    assert rows[0]["candidates"][0]["title"] == MIXER["item_description"]


async def test_untrusted_catalogue_only_estimates(store: Store) -> None:
    await load(store, TELEVISION, trusted=0)
    _, rows = await priced(store, [ROWS[0]])
    assert (rows[0]["Status"], rows[0]["tier"]) == ("Estimated", "FALLBACK")


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_shops_that_lie_are_not_believed(store: Store) -> None:
    good = {"name": "Dyson V11 cordless vacuum", "offer": {"price": 599.0, "currency": "USD"}}
    lies = [
        {"name": "Dyson V11 cordless vacuum", "offer": {"price": 0, "currency": "USD"}},
        {"name": "Dyson V11 cordless vacuum", "offer": {"price": 590, "currency": "EUR"}},
        {"name": "Dyson V11 cordless vacuum hose filter", "offer": {"price": 9}},
    ]
    async with World() as liar, World() as honest:
        json_shop(liar, {"dyson": lies})
        json_shop(honest, {"dyson": [good]})
        fields = {"title": "name", "price": "offer.price", "currency": "offer.currency"}
        for name, world, priority in (("liar", liar, 1), ("honest", honest, 2)):
            await add_shop(
                store, name, "json", url=world.url("/search?q={query}"), items="results",
                fields=fields, priority=priority,
            )  # fmt: skip
        _, rows = await priced(store, [{"item_description": "Dyson V11 cordless vacuum"}])
    assert (rows[0]["Status"], rows[0]["Price"], rows[0]["Pricer"]) == ("Found", 599.0, "honest")
    whys = " ".join(candidate["why"] for candidate in rows[0]["candidates"])
    assert "price is 0" in whys and "in EUR" in whys and "something else" in whys


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_keys_of_a_shop_come_from_the_environment(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACME_KEY", "s3cret")
    rows = [{"item_description": "Dyson V11 cordless vacuum"}]
    async with World() as shop:
        json_shop(shop, {"dyson": [{"title": "Dyson V11 cordless vacuum", "price": 599}]})
        url = shop.url("/search?q={query}")
        headers = {"X-Key": "env:ACME_KEY", "X-Plain": "yes"}
        await add_shop(store, "acme", "json", url=url, items="results", headers=headers)
        _, priced_rows = await priced(store, rows)
        sent = shop.asked("/search")[0].headers
        monkeypatch.delenv("ACME_KEY")
        _, unset = await priced(store, rows)
    assert priced_rows[0]["Status"] == "Found"
    assert (sent["x-key"], sent["x-plain"]) == ("s3cret", "yes")
    assert unset[0]["item_status"] == "ERROR" and "no ACME_KEY" in unset[0]["error"]


PAGE = """<html><script type="application/ld+json">{"@graph": [{"@type": ["Product"],
"name": "Dyson V11 cordless vacuum", "brand": {"name": "Dyson"}, "gtin13": "4006381333931",
"offers": {"@type": "Offer", "price": "599.00", "priceCurrency": "USD", "url": "https://b.example/1",
"availability": "https://schema.org/InStock"}}]}</script><p>7 people look at this</p></html>"""


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_shop_that_throttles_and_fails_is_asked_again(store: Store) -> None:
    calls = 0

    def search(request: Request) -> Any:
        nonlocal calls
        calls += 1
        if calls == 1:
            return json_answer({}, 429, {"Retry-After": "1"})
        if calls == 2:
            return text_answer("<p>new design</p>", content_type="text/html")
        return text_answer(PAGE, content_type="text/html")

    async with World() as shop:
        shop.on("/s", search)
        await add_shop(store, "bob", "html", url=shop.url("/s?q={query}"))
        made = make_catalog()
        made.backoff = {"soon": made.backoff["not_found"]}  # type: ignore[index]
        job_id, rows = await priced(store, [{"gtin": "4006381333931", "item_description": "dyson"}],
                                    made)  # fmt: skip
    assert (rows[0]["Status"], rows[0]["URL"]) == ("Found", "https://b.example/1")
    events = await store.fetch("catalog_search_events_of_item", {"job_id": job_id, "seq": 1})
    failed = [event["error"] for event in events if not event["success"]]
    assert len(failed) == 2
    assert "no schema.org data" in failed[1]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_shop_that_is_down_does_not_hold_up_what_another_has(store: Store) -> None:
    await load(store, TELEVISION)
    async with World() as down:
        down.on("/search", text_answer("oops", 500))
        await add_shop(store, "down", "json", url=down.url("/search?q={query}"))
        made = make_catalog()
        made.max_attempts = 1
        _, rows = await priced(store, [ROWS[0], {"item_description": "garden gnome"}], made)
    assert [row["item_status"] for row in rows] == ["DONE", "ERROR"]
    assert "500" in rows[1]["error"]


async def decide(store: Store, job_id: int, kind: str, value: Any, version: int = 0) -> Any:
    console, job = open_console(store), await store.reads.job(job_id)
    new = NewRuling(RulingKind(kind), value, "as on its receipt", "ann", version)
    await console.rulings.rule(job, 1, new, make_catalog().ruling)
    return result_of((await items_of(store, job_id))[0])


async def test_person_chooses_another_candidate_or_types_a_price(store: Store) -> None:
    await load(store, VACUUM, VACUUM | {"item_description": "Dyson V11 vacuum blue", "price": 700})
    job_id, rows = await priced(store, [{"item_description": "dyson v11 vacuum", "quantity": 3}])
    number = next(each["id"] for each in rows[0]["candidates"] if each["price_minor"] == 70000)
    with pytest.raises(UserError, match="no candidate"):
        await decide(store, job_id, "choose", 99)
    chosen = await decide(store, job_id, "choose", number)
    assert (chosen["Price"], chosen["Total Replacement Price"]) == (700.0, 2100.0)
    assert (chosen["Status"], chosen["Pricer"]) == ("Found", "ann")
    with pytest.raises(UserError, match="negative"):
        await decide(store, job_id, "edit", {"Price": -1}, 1)
    with pytest.raises(UserError, match="'Qty' follows"):
        await decide(store, job_id, "edit", {"Price": 5, "Qty": 9}, 1)
    typed = await decide(store, job_id, "edit", {"Price": "649.50"}, 1)
    assert (typed["Price"], typed["Total Replacement Price"]) == (649.5, 1948.5)
    assert typed["Reason"] == "priced by ann: as on its receipt"
    rejected = await decide(store, job_id, "reject", None, 2)
    assert (rejected["Status"], rejected["Price"]) == ("No Market Price", None)
    assert rejected["Pricer"] is None, "nobody priced it"
    assert rejected["Reason"] == "rejected by ann: as on its receipt"


async def test_offer_that_a_person_chose_is_the_one_that_they_saw(store: Store) -> None:
    """The row was processed again while they looked at it."""
    await load(store, VACUUM, VACUUM | {"item_description": "Dyson V11 vacuum blue", "price": 700})
    job_id, rows = await priced(store, [{"item_description": "dyson v11 vacuum"}])
    offer = rows[0]["candidates"][0]
    seen = {name: offer[name] for name in ("id", "provider", "title", "price_minor")}
    with pytest.raises(UserError, match="is another offer now"):
        await decide(store, job_id, "choose", seen | {"price_minor": 1})
    with pytest.raises(UserError, match="is another offer now"):
        await decide(store, job_id, "choose", seen | {"title": "Dyson V12"})
    chosen = await decide(store, job_id, "choose", seen)
    assert chosen["Price"] == offer["price_minor"] / 100
