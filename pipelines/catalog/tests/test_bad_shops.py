"""A list against three shops that throttle, fail, lie and change: every row ends explained."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.clock import FixedClock
from holdfast.errors import GateWait, ItemError
from holdfast.features.console import open_console
from holdfast.kernel import Store
from holdfast_catalog.options import CatalogOptions
from holdfast_catalog.providers.contract import Shop
from holdfast_catalog.providers.fetching import offer_of
from holdfast_catalog.providers.structured_data import StructuredData
from holdfast_catalog.silences import Silences
from pipelines.catalog.tests.scene import add_shop, make_catalog, priced
from tests.world import Answer, Request, World, json_answer, text_answer

#: A gate belongs to a host, so each shop has one: honest, changing, liar.
HOSTS = ("127.0.0.1", "127.0.0.2", "127.0.0.3")


def price_of(number: int) -> int:
    return 100 + number


def words(request: Request) -> int | None:
    """The number of the product that is asked for."""
    found = [word for word in request.query.get("q", "").split() if word.startswith("zx")]
    return int(found[0][2:]) if found else None


class Shops:
    """`honest` throttles in bursts and does not have every product, `changing` fails and changes
    its pages, `liar` has everything at prices that are not true."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()

    def honest(self, request: Request) -> Any:
        self.calls["honest"] += 1
        calls = self.calls["honest"]
        if calls % 20 == 5 if calls < 100 else calls % 1000 < 15:  # then only now and then
            return json_answer({}, 429, {"Retry-After": "1"})
        number = words(request)
        if number is None or number % 3 == 0:
            return json_answer({"results": []})
        offer = {"title": f"Acme Kettle ZX{number}", "price": price_of(number), "currency": "USD"}
        return json_answer({"results": [offer]})

    def changing(self, request: Request) -> Any:
        self.calls["changing"] += 1
        number, turn = words(request), self.calls["changing"] % 4
        if turn == 0:
            return text_answer("oops", 500)
        if turn == 1:
            return text_answer("<h1>our new design</h1>", content_type="text/html")
        name = "sold out" if number is None or number % 6 else f"Acme Kettle ZX{number}"
        offer = {"@type": "Offer", "price": f"{price_of(number or 0)}.00", "priceCurrency": "USD"}
        data = json.dumps({"@type": "Product", "name": name, "offers": [offer]})
        page = f'<script type="application/ld+json">{data}</script>'
        return text_answer(page, content_type="text/html")

    def liar(self, request: Request) -> Any:
        self.calls["liar"] += 1
        number = words(request) or 0
        title = f"Acme Kettle ZX{number}"
        offers = [
            {"title": title, "price": 0, "currency": "USD"},
            {"title": title, "price": price_of(number), "currency": "EUR"},
            {"title": f"{title} replacement filter", "price": 3, "currency": "USD"},
            {"title": f"Acme Kettle ZX{number}B", "price": 4, "currency": "USD"},
        ]
        return json_answer({"results": offers})


async def run(store: Store, shops: Shops, count: int) -> tuple[int, list[dict[str, Any]]]:
    fields = {"title": "title", "price": "price", "currency": "currency"}
    honest, changing, liar = (World(address=address) for address in HOSTS)
    async with honest, changing, liar:
        honest.on("/s", shops.honest)
        changing.on("/s", shops.changing)
        liar.on("/s", shops.liar)
        for name, world, kind, host in (
            ("liar", liar, "json", HOSTS[2]),
            ("honest", honest, "json", HOSTS[0]),
            ("changing", changing, "html", HOSTS[1]),
        ):
            url = world.url("/s?q={query}", host)
            await add_shop(store, name, kind, url=url, items="results", fields=fields)
        made = make_catalog()
        made.backoff = dict.fromkeys(("soon", "not_found"), made.backoff["not_found"])  # type: ignore[index]
        made.max_attempts = 20
        rows = [{"item_description": f"Acme Kettle ZX{number}"} for number in range(1, count + 1)]
        return await priced(store, rows, made)


def check(results: list[dict[str, Any]]) -> None:
    """Every row ends explained: with the true price, or left to a person."""
    for number, row in enumerate(results, 1):
        expected = "Found" if number % 3 or number % 6 == 0 else "Manual Review"
        assert row["Status"] == expected, (number, row)
        assert row["Reason"]
        if expected == "Found":
            assert row["Price"] == price_of(number)
            assert row["Pricer"] == ("honest" if number % 3 else "changing")
        else:
            assert row["Price"] is None


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_every_row_ends_explained(store: Store) -> None:
    count = 60
    job_id, results = await run(store, Shops(), count)
    check(results)
    figures = await store.fetch("catalog_provider_figures", {"job_id": job_id})
    by_name = {row["provider"]: row for row in figures}
    assert by_name["changing"]["answered"] < by_name["changing"]["calls"]
    assert by_name["liar"]["results"] >= 4 * count / 3
    uses = {use["gate"]: use for use in await store.gates.of_job(job_id, 10)}
    assert len(uses) == 3  # each shop has a gate of its own
    assert sum(use["throttles"] for use in uses.values()) >= 1


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_shop_that_never_answers_hides_no_offer_of_another(store: Store) -> None:
    fields = {"title": "title", "price": "price", "currency": "currency"}
    offer = {"title": "Acme Kettle ZX1", "price": 50, "currency": "USD"}
    async with World(address=HOSTS[0]) as dead, World(address=HOSTS[1]) as other:
        dead.on("/s", lambda _: text_answer("oops", 500))
        other.on("/s", lambda _: json_answer({"results": [offer]}))
        for name, world, host in (("dead", dead, HOSTS[0]), ("other", other, HOSTS[1])):
            settings = {"url": world.url("/s?q={query}", host), "items": "results"}
            trusted = int(name == "dead")
            await add_shop(store, name, "json", fields=fields, trusted=trusted, **settings)
        made = make_catalog()
        made.backoff = dict.fromkeys(("soon", "not_found"), made.backoff["not_found"])  # type: ignore[index]
        wanted = [{"item_description": "Acme Kettle ZX1"}, {"item_description": "oak wardrobe"}]
        _, rows = await priced(store, wanted, made)
    assert (rows[0]["Status"], rows[0]["Price"]) == ("Estimated", 50.0)
    assert "Not every shop answered" in rows[0]["Reason"] and "500" in rows[0]["Reason"]
    assert rows[1]["item_status"] == "ERROR", "nobody knows that there is no market price"


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_rows_do_not_wait_for_ever_for_a_shop_that_asks_for_patience(store: Store) -> None:
    fields = {"title": "title", "price": "price", "currency": "currency"}
    offer = {"title": "Acme Kettle ZX1", "price": 50, "currency": "USD"}
    async with World(address=HOSTS[0]) as busy, World(address=HOSTS[1]) as other:
        busy.on("/s", lambda _: Answer(503, b"later", {"Retry-After": "1"}))
        other.on("/s", lambda _: json_answer({"results": [offer]}))
        for name, world, host in (("busy", busy, HOSTS[0]), ("other", other, HOSTS[1])):
            settings = {"url": world.url("/s?q={query}", host), "items": "results"}
            await add_shop(
                store, name, "json", fields=fields, trusted=int(name == "busy"), **settings
            )
        wanted = [{"item_description": "Acme Kettle ZX1"}, {"item_description": "oak wardrobe"}]
        _, rows = await priced(store, wanted, make_catalog(silence_seconds=2))
    assert (rows[0]["Status"], rows[0]["Price"]) == ("Estimated", 50.0)
    assert "busy has answered no search" in rows[0]["Reason"]
    assert rows[1]["item_status"] == "ERROR", "nobody knows that there is no market price"


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_rows_do_not_wait_for_ever_for_a_shop_that_answers_only_numbers(store: Store) -> None:
    wanted = {"item_description": "Acme Kettle ZX1", "gtin": "027242923782"}
    async with World(address=HOSTS[0]) as busy:  # which has no page of that number: 404
        busy.on("/s", lambda _: Answer(503, b"later", {"Retry-After": "1"}))
        settings = {"url": busy.url("/s?q={query}", HOSTS[0]), "items": "results"}
        numbers = busy.url("/p/{gtin}", HOSTS[0])
        await add_shop(store, "busy", "json", identifier_url=numbers, **settings)
        _, rows = await priced(store, [wanted] * 3, make_catalog(silence_seconds=2))
    assert [row["item_status"] for row in rows] == ["ERROR"] * 3
    assert all("busy has answered no" in row["error"] for row in rows)


def test_silence_begins_again_with_an_answer_or_after_a_break() -> None:
    clock = FixedClock()
    silences = Silences(clock, 60)
    busy, wait = ItemError("RATE_LIMITED", "busy", retry_after=600), GateWait("shop", 5, "closed")

    def judged_after(seconds: float, trouble: ItemError | GateWait) -> bool:
        clock.advance(seconds)
        return silences.judged("shop", "search", trouble) is not trouble

    assert [judged_after(0, wait), judged_after(99, wait)] == [False, False], "it was not asked"
    assert [judged_after(0, busy), judged_after(59, wait), judged_after(1, wait)] == [
        False, False, True,
    ]  # fmt: skip
    assert judged_after(600, busy), "it was asked as soon as it allowed"
    assert not judged_after(4201, busy), "nothing was asked of it for a while"
    silences.end("shop", "search")
    assert [judged_after(0, busy), judged_after(61, busy)] == [False, True]
    silences.end("shop", "search")
    failed = ItemError("SERVER_ERROR", "once")
    assert [judged_after(0, failed), judged_after(99, wait)] == [False, False], "nobody asked it"


@pytest.mark.timeout(1200)
@pytest.mark.exhaustive
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_5000_rows_end_explained_and_concurrency_adapts_to_each_shop(store: Store) -> None:
    shops = Shops()
    job_id, results = await run(store, shops, 5000)
    check(results)
    decisions = [
        decision
        for decision in reversed(await open_console(store).jobs.decisions(job_id, 5000))
        if decision["what"].startswith(f"concurrency at {HOSTS[0]}:")
    ]
    down = [at for at, each in enumerate(decisions) if each["became"] < each["was"]]
    up = [at for at, each in enumerate(decisions) if each["became"] > each["was"]]
    assert down and up and max(up) > min(down), decisions  # drops on 429, and recovers
    uses = {use["gate"].split(":")[0]: use for use in await store.gates.of_job(job_id, 10)}
    assert uses[HOSTS[0]]["throttles"] > 0


@pytest.mark.parametrize(
    "url", ["http://[x", "//[x", "javascript:alert(1)", "//x", 5, "http://h:99999/"]
)
def test_address_of_an_offer_spoils_no_other_offer(url: Any) -> None:
    """`urlsplit` raises for the first one, which failed the row for all shops."""
    offer = offer_of(Shop("s", "json"), {"title": "t", "price": 1, "url": url}, "https://p", "USD")
    assert offer.url == {"//x": "https://x"}.get(
        url, url if str(url).startswith("http") else "https://p"
    )


HTML_SHOP = StructuredData(Shop("s", "html"), CatalogOptions(), "https://s/{query}", "")
OFFER = {"price": "50", "priceCurrency": "EUR"}
RANGE = {"lowPrice": 45, "highPrice": 99}


@pytest.mark.parametrize(
    ("kind", "offers", "price"),
    [
        ("Product", OFFER, 5000),
        ("http://schema.org/Product", OFFER, 5000),
        (["Thing", "schema:Product"], [OFFER], 5000),
        ("Product", {"@type": "AggregateOffer", **RANGE, "offers": [OFFER]}, 5000),
        ("Product", {"@type": "AggregateOffer", **RANGE}, None),
        ("Product", {"@type": "AggregateOffer", "lowPrice": 45, "highPrice": 45}, 4500),
        ("Product", {"priceSpecification": [OFFER, {"name": "delivery"}]}, 5000),
        ("Product", {"priceSpecification": [OFFER, {**OFFER, "price": 60}]}, None),
    ],
)
def test_offers_are_read_as_shops_write_them(kind: Any, offers: Any, price: int | None) -> None:
    block = {"@graph": [{"@type": kind, "name": "kettle", "offers": offers}]}
    (offer,) = HTML_SHOP.offers_in([block], "https://s/")
    assert offer.price_minor == price, offer.flaw


class Offers(list[Any]):
    """A million of them, of which only some may be read."""

    def __iter__(self) -> Iterator[Any]:
        for number in range(1_000_000):
            assert number < 100, "more was read than is used"
            yield {"price": number}


def test_page_with_a_million_offers_is_read_only_as_far_as_they_are_used() -> None:
    """In the loop of the worker, all of them took ten seconds."""
    settings = {"url": "https://bob.example/?q={query}"}
    shop = StructuredData.of(Shop("bob", "html", settings=settings), CatalogOptions())
    block = {"@type": "Product", "name": "x", "offers": Offers([{}])}
    assert len(shop.offers_in([block], "https://bob.example/")) == 50
