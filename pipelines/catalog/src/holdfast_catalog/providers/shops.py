"""Reads the shops to ask: rows of a table, read again every few seconds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import orjson

from holdfast.clock import Clock
from holdfast.errors import Failed, UserError
from holdfast.pipeline import Context, Row
from holdfast_catalog.options import CatalogOptions
from holdfast_catalog.providers.contract import Provider, Shop
from holdfast_catalog.providers.json_api import JsonApi
from holdfast_catalog.providers.local import LOCAL, LocalCatalog
from holdfast_catalog.providers.structured_data import StructuredData

KINDS = ("local", "json", "html")


class Shops:
    def __init__(self, options: CatalogOptions, clock: Clock) -> None:
        self._options = options
        self._clock = clock
        self._read_at: float | None = None
        self._providers: list[Provider] = []

    async def providers(self, ctx: Context, only: str = "") -> Sequence[Provider]:
        """Returns providers in order of priority; the local catalogue unless it was switched off.

        It is an error if there is none to ask: saying that no shop has an offer would be wrong."""
        now = self._clock.monotonic()
        if self._read_at is None or now - self._read_at >= self._options.providers_seconds:
            rows = await ctx.read("catalog_providers")
            self._providers = self._opened(rows)
            self._read_at = now
        names = {name.strip() for name in only.split(",") if name.strip()}
        unknown = sorted(names - {each.shop.name for each in self._providers})
        if unknown:
            raise Failed("SHOP_SETUP", f"there is no shop {unknown[0]!r}, or it is off")
        if not self._providers:
            raise Failed("SHOP_SETUP", "every shop is off, the local catalogue too")
        return [each for each in self._providers if not names or each.shop.name in names]

    def _opened(self, rows: Sequence[Row]) -> list[Provider]:
        shops = [shop_of(row) for row in with_local(rows) if row["enabled"]]
        return [make_provider(shop, self._options) for shop in shops]


def with_local(rows: Iterable[Row | Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns all shops: the local catalogue is one, the first unless it was set up otherwise."""
    shops = [dict(row) for row in rows]
    if any(shop["kind"] == LOCAL.kind for shop in shops):
        return shops
    return [{**asdict(LOCAL), "enabled": 1, "settings": "{}"}, *shops]


def shop_of(row: Row | Mapping[str, object]) -> Shop:
    settings = row["settings"]
    return Shop(
        str(row["name"]),
        str(row["kind"]),
        int(str(row["priority"])),
        bool(row["trusted"]),
        float(str(row["cost"])),
        str(row["currency"]),
        orjson.loads(settings) if isinstance(settings, str) else settings,  # type: ignore[arg-type]
    )


def make_provider(shop: Shop, options: CatalogOptions) -> Provider:
    match shop.kind:
        case "local":
            return LocalCatalog(shop)
        case "json":
            return JsonApi.of(shop, options)
        case "html":
            return StructuredData.of(shop, options)
    raise UserError(f"there is no kind of shop {shop.kind!r}", f"Kinds: {', '.join(KINDS)}.")
