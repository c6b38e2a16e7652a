"""The demo's pipelines: one over a file's rows, one that finds its records by itself."""

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
    """What each product of a list costs, and who sells it for least."""
    if row["title"] == CRASHING:
        os._exit(3)  # what a broken library does to its process: the row becomes a dead letter
    reply = await ctx.http.get(f"{WORLD}/search", params={"q": row["title"]})
    offers = reply.json()["offers"]
    if not offers:
        raise NotFound
    best = min(offers, key=lambda offer: offer["price"])
    return {"title": row["title"], "price": best["price"], "shop": best["shop"]}


class Catalogue(Pipeline):
    """Walks the shop's catalogue page by page, and asks for each product how many are left."""

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
        """Another name of the same host, so that it has a gate of its own."""
        return WORLD.replace("127.0.0.1", "localhost")
