"""The pipelines of the demo: one for the rows of a file, one that discovers its records."""

import os
from collections.abc import AsyncIterator, Mapping
from typing import Any

from holdfast import NotFound, Pipeline, pipeline
from holdfast.demo.goods import CRASHING
from holdfast.model import Page, Record

WORLD = os.environ.get("DEMO_WORLD_URL", "http://127.0.0.1:8765")


@pipeline(  # type: ignore[untyped-decorator]
    columns=["title", "price", "shop"], inputs=["sku", "title", "brand"]
)
async def prices(row: dict[str, Any], ctx: Any) -> dict[str, Any]:
    """Finds the price of each product in a list and the cheapest seller."""
    if row["title"] == CRASHING:
        os._exit(3)  # a broken library can do this to its process: the row becomes a dead letter
    reply = await ctx.http.get(f"{WORLD}/search", params={"q": row["title"]})
    offers = reply.json()["offers"]
    if not offers:
        raise NotFound
    best = min(offers, key=lambda offer: offer["price"])
    return {"title": row["title"], "price": best["price"], "shop": best["shop"]}


class Catalogue(Pipeline):
    """Reads the shop's catalogue page by page and asks how many of each product are left."""

    name = "catalogue"
    columns = ("sku", "title", "category", "left")

    async def discover(self, source: str, cursor: Any, ctx: Any) -> AsyncIterator[Page]:
        while True:
            reply = await ctx.http.get(f"{self._site()}/catalogue", params={"cursor": cursor or 0})
            body = reply.json()
            records = [Record(each, each["sku"]) for each in body["products"]]
            cursor = body["next"]
            yield Page(records, cursor, cursor is None, body["total"])
            if cursor is None:
                return

    async def process(self, row: dict[str, Any], ctx: Any) -> Mapping[str, Any]:
        reply = await ctx.http.get(f"{self._site()}/stock/{row['sku']}")
        return {name: row.get(name) for name in self.columns} | {"left": reply.json()["left"]}

    def _site(self) -> str:
        """Returns another name for the same host, so that it has its own gate."""
        return WORLD.replace("127.0.0.1", "localhost")
