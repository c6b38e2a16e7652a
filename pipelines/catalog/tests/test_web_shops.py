"""What shops on the web are asked for, and what of their replies is understood."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.errors import UserError
from holdfast.kernel import Store
from holdfast_catalog.options import CatalogOptions
from holdfast_catalog.providers.contract import Shop
from holdfast_catalog.providers.fetching import offer_of
from holdfast_catalog.providers.json_api import JsonApi
from holdfast_catalog.providers.structured_data import products_in, schema_data
from pipelines.catalog.tests.scene import add_shop, priced
from tests.world import World, json_answer, text_answer

HEADPHONES = {"gtin": "027242924994", "item_description": "headphones", "brand": "Sony"}
VACUUM = {"item_description": "Dyson V15 cordless vacuum", "brand": "Dyson", "model": "V15"}


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_article_number_is_asked_for_as_it_is_printed_and_never_without_one(
    store: Store,
) -> None:
    """Without its zero no shop knows a UPC, and an empty place asks for everything."""
    asked = []
    offer = {"title": "Sony headphones", "price": 399.99, "gtin": "027242924994", "url": "/p/7"}

    def by_number(request: Any) -> Any:
        asked.append(request.path)
        return json_answer([offer] if request.path == "/upc/027242924994" else [])

    async with World() as shop:
        for path in ("/upc/027242924994", "/upc/27242924994", "/upc/"):
            shop.on(path, by_number)
        shop.on("/search", lambda _: json_answer([]))
        urls = {"url": shop.url("/search?q={query}"), "identifier_url": shop.url("/upc/{gtin}")}
        fields = {name: name for name in ("title", "price", "gtin", "url")}
        await add_shop(store, "acme", "json", fields=fields, **urls)
        _, rows = await priced(store, [HEADPHONES, VACUUM])
        link = shop.url("/p/7")
    assert set(asked) == {"/upc/027242924994"}
    assert (rows[0]["Status"], rows[0]["Search Query Used"]) == ("Found", "027242924994")
    assert rows[0]["URL"] == link, "a relative link leads to the shop's own page"
    assert rows[1]["Status"] == "No Market Price"


MICRODATA = """<ul><li itemprop="itemListElement" itemscope itemtype="https://schema.org/Product">
<h2 itemprop="name">Dyson V15 <b>cordless</b> vacuum</h2><br><meta itemprop="mpn" content="V15">
<p itemprop="brand" itemscope itemtype="http://schema.org/Brand"><b itemprop="name">Dyson</b></p>
<a itemprop="url" href="/p/v15">Show<p></a>
<div itemprop="offers" itemscope itemtype="https://schema.org/Offer">
<span itemprop="price">$749.99</span> <meta itemprop="priceCurrency" content="USD">
<link itemprop="availability" href="https://schema.org/InStock"></div></li></ul>"""


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_shop_with_microdata_is_read(store: Store) -> None:
    async with World() as shop:
        shop.on("/s", lambda _: text_answer(MICRODATA, content_type="text/html"))
        await add_shop(store, "bob", "html", url=shop.url("/s?q={query}"))
        _, rows = await priced(store, [VACUUM])
        link = shop.url("/p/v15")
    assert (rows[0]["Status"], rows[0]["Price"], rows[0]["URL"]) == ("Found", 749.99, link)


def in_script(product: dict[str, Any]) -> str:
    return f'<script type="application/ld+json">{json.dumps(product)}</script>'


@pytest.mark.parametrize(
    ("page", "price"),
    [
        (in_script({"@type": "https://schema.org/Product", "offers": {"price": 5}}), 5),
        (
            in_script(
                {
                    "@type": "Product",
                    "offers": {
                        "priceSpecification": [
                            {"priceType": "https://schema.org/ListPrice", "price": "9.00"},
                            {"@type": "UnitPriceSpecification", "price": "7.00"},
                        ]
                    },
                }
            ),
            "7.00",
        ),
        (in_script({"@type": "Product", "name": "a", "offers": {"price": 1}}) + MICRODATA, 1),
        (in_script({"@type": "WebSite", "name": "Bob"}) + MICRODATA, "$749.99"),
    ],
)
def test_usual_ways_to_write_an_offer_are_read_once(page: str, price: Any) -> None:
    assert [offer["price"] for offer in products_in(schema_data(page))] == [price]


@pytest.mark.parametrize(
    ("availability", "in_stock"),
    [
        *((value, False) for value in (False, 0, "no", "Out of stock", "unavailable", "SoldOut")),
        *((value, True) for value in (None, True, 3, "yes", "https://schema.org/InStock", "")),
    ],
)
def test_stock_may_be_a_word_a_number_or_true_and_false(availability: Any, in_stock: bool) -> None:
    values = {"title": "t", "price": 1, "availability": availability}
    assert offer_of(Shop("s", "json"), values, "https://p", "USD").in_stock is in_stock


@pytest.mark.parametrize("url", ["https://a.example/{query.x}", "https://a.example/{}"])
def test_places_of_an_address_that_do_not_exist_are_refused(url: str) -> None:
    with pytest.raises(UserError, match="unknown place"):
        JsonApi.of(Shop("acme", "json", settings={"url": url}), CatalogOptions())
