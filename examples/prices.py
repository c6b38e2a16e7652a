"""What does each product cost, and who sells it for least?

holdfast run examples/prices.py examples/products.csv --out prices.xlsx
"""

import os

from holdfast import NotFound, pipeline

SHOP = os.environ.get("PRICES_SHOP_URL", "http://127.0.0.1:8765")


@pipeline(columns=["title", "price", "shop"])
async def prices(row, ctx):
    reply = await ctx.http.get(f"{SHOP}/search", params={"q": row["title"]})
    offers = reply.json()["offers"]
    if not offers:
        raise NotFound
    best = min(offers, key=lambda offer: offer["price"])
    return {"title": row["title"], "price": best["price"], "shop": best["shop"]}
