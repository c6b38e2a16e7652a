"""A list against three shops that throttle, fail, lie and change: every row ends explained."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from holdfast.pipelines.catalog.providers.contract import Shop
from holdfast.pipelines.catalog.providers.fetching import offer_of
from holdfast.store import Store
from tests.pipelines.catalog.scene import add_shop, make_catalog, priced
from tests.world import Request, World, json_answer, text_answer

COUNT = 60


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
        if self.calls["honest"] % 20 == 5:
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


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_every_row_ends_explained(store: Store) -> None:
    shops = Shops()
    fields = {"title": "title", "price": "price", "currency": "currency"}
    async with World() as honest, World() as changing, World() as liar:
        honest.on("/s", shops.honest)
        changing.on("/s", shops.changing)
        liar.on("/s", shops.liar)
        for name, world, kind in (
            ("liar", liar, "json"), ("honest", honest, "json"), ("changing", changing, "html"),
        ):  # fmt: skip
            await add_shop(
                store, name, kind, url=world.url("/s?q={query}"), items="results", fields=fields
            )
        made = make_catalog()
        made.backoff = dict.fromkeys(("soon", "not_found"), made.backoff["not_found"])  # type: ignore[index]
        made.max_attempts = 20
        rows = [{"item_description": f"Acme Kettle ZX{number}"} for number in range(1, COUNT + 1)]
        job_id, results = await priced(store, rows, made)
    for number, row in enumerate(results, 1):
        expected = "Found" if number % 3 or number % 6 == 0 else "Manual Review"
        assert row["Status"] == expected, (number, row)
        assert row["Reason"]
        if expected == "Found":
            assert row["Price"] == price_of(number)
            assert row["Pricer"] == ("honest" if number % 3 else "changing")
        else:
            assert row["Price"] is None
    figures = await store.fetch("catalog_provider_figures", {"job_id": job_id})
    by_name = {row["provider"]: row for row in figures}
    assert by_name["changing"]["answered"] < by_name["changing"]["calls"]
    assert by_name["liar"]["results"] >= 4 * COUNT / 3


@pytest.mark.parametrize("url", ["http://[x", "javascript:alert(1)", "//x", 5, "http://h:99999/"])
def test_address_of_an_offer_spoils_no_other_offer(url: Any) -> None:
    """`urlsplit` raises for the first one, which failed the row for all shops."""
    offer = offer_of(Shop("s", "json"), {"title": "t", "price": 1, "url": url}, "https://p", "USD")
    assert offer.url == (url if str(url).startswith("http") else "https://p")
