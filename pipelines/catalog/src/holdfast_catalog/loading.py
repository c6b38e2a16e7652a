"""Loads a list of products into the local catalogue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from holdfast.columns import BAD_ROW, column_mapping, mapped_row
from holdfast.model import Json
from holdfast.pipeline import Tx
from holdfast.tables.files import TableFile
from holdfast_catalog.normalising.product import INPUTS, Product, product_of
from holdfast_catalog.normalising.words import compact, joined_words, words_of

_BATCH_ROWS = 1000
_BATCH_BYTES = 4 * 1024 * 1024
_STATES = {"new": "", "worn": "used"}
#: Columns that a catalogue has and lists do not.
CATALOG_INPUTS = {**INPUTS, "url": ("URL", "Link", "Product URL")}


@dataclass(slots=True)
class Loaded:
    products: int = 0
    without_price: int = 0
    without_title: int = 0
    unreadable: int = 0


def batches(
    file: TableFile, source: str, trusted: bool, currency: str, loaded: Loaded
) -> Iterator[list[Json]]:
    """Yields rows for catalog_save_products; each reference once in a batch."""
    mapping = column_mapping(file.detected.columns, CATALOG_INPUTS)
    for page in file.pages(0, lambda: _BATCH_ROWS, _BATCH_BYTES):
        rows: dict[str, Json] = {}
        for text in page.inputs:
            row = orjson.loads(text)
            if BAD_ROW in row:
                loaded.unreadable += 1
                continue
            named = mapped_row(row, mapping)
            product = product_of(named, currency)
            if _is_usable(product, loaded):
                reference = reference_of(product)
                rows[reference] = row_of(product, source, reference, trusted, named.get("url"))
        yield list(rows.values())
        if page.end:
            return


async def save(tx: Tx, rows: Sequence[Json]) -> None:
    ids = [row[0] for row in await tx.take_many("catalog_save_products", rows)]
    await tx.take("catalog_unindex", {"ids": ids})
    await tx.take("catalog_index", {"ids": ids})


async def drop_older(tx: Tx, source: str, before: str) -> None:
    """Removes what a catalogue has from before an instant of the database's clock."""
    params = {"source": source, "before": before}
    await tx.take("catalog_drop_older_index", params)
    await tx.take("catalog_drop_older", params)


def _is_usable(product: Product, loaded: Loaded) -> bool:
    if not product.label:
        loaded.without_title += 1
    elif product.price_minor is None:
        loaded.without_price += 1
    else:
        loaded.products += 1
        return True
    return False


def reference_of(product: Product) -> str:
    """Returns what identifies a product in its catalogue, so that loading it again replaces it."""
    model = f"{compact(product.brand)}/{compact(product.model)}" if product.model else ""
    return product.gtin or product.sku or model or compact(product.text)[:500]


def row_of(product: Product, source: str, reference: str, trusted: bool, url: Any) -> Json:
    words = [*words_of(product.text), *map(compact, joined_words(product.text))]
    return {
        "source": source,
        "reference": reference,
        "title": product.label,
        "brand": product.brand,
        "model": product.model,
        "model_key": compact(product.model),
        "gtin": product.gtin,
        "sku": product.sku,
        "price_minor": product.price_minor,
        "currency": product.currency,
        "url": str(url or ""),
        "condition": _STATES.get(product.condition, product.condition),
        "trusted": int(trusted),
        "words": " ".join(dict.fromkeys(words)),
    }
