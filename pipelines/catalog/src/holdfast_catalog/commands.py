"""`holdfast catalog`: the local catalogue and the shops."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import orjson
import typer

from holdfast.cli.arguments import JSON
from holdfast.cli.composition import table_limits
from holdfast.cli.opening import (
    ensure_schema,
    opened_store,
    ready_settings,
    run_async,
    settings_from_environment,
)
from holdfast.cli.output import errors, print_json, print_table
from holdfast.errors import UserError
from holdfast.model import Json
from holdfast.tables.files import TableFile, open_table
from holdfast_catalog import loading
from holdfast_catalog.normalising.money import currency_named
from holdfast_catalog.options import CatalogOptions
from holdfast_catalog.providers.json_api import FIELDS
from holdfast_catalog.providers.shops import KINDS, make_provider, shop_of, with_local

app = typer.Typer(no_args_is_help=True)
NAME = typer.Argument(..., metavar="NAME", help="Name of the shop.")
_SEED = 20261116
_LARGEST = 10**9
_ROWS_OF_LIST = 250
LIST = typer.Option(None, "--list", help="Labelled list; its column Expected names an SKU.")
CATALOG = typer.Option(None, "--catalogue", help="The catalogue that it is looked up in.")


@app.command("load")
def load(
    file: Path = typer.Argument(..., metavar="FILE", help="CSV, TSV, XLSX or JSON Lines file."),
    source: str | None = typer.Option(
        None, "--source", help="Name of the catalogue. Default: the name of the file."
    ),
    untrusted: bool = typer.Option(
        False, "--untrusted", help="Its prices only count as estimates."
    ),
    replace: bool = typer.Option(
        False, "--replace", help="Remove products of this catalogue that are not in the file."
    ),
) -> None:
    """Load a list of products with prices into the local catalogue.

    Loading it again replaces the products that it had by their article number, SKU or model.
    """
    settings = settings_from_environment()
    options: CatalogOptions = settings.of("catalog")
    table = open_table(file, table_limits(settings))
    ensure_schema(settings, ["catalog"])
    name, loaded = source or file.stem, loading.Loaded()

    async def main() -> bool:
        async with opened_store(settings) as store:
            began = (await store.fetch("catalog_now"))[0]["instant"]
            rows = loading.batches(table, name, not untrusted, options.currency, loaded)
            for batch in rows:
                await store.database.write("catalog_load", partial(_save, rows=batch))
            if replace and loaded.products:
                # Last, so that jobs that run at the same time, and a load that is killed, miss
                # nothing.
                older = partial(loading.drop_older, source=name, before=began)
                await store.database.write("catalog_drop", older)
            return bool((await store.fetch("catalog_finds_misspelt"))[0]["found"])

    finds_misspelt = run_async(main())
    _require_products(loaded, table)
    errors.print(f"Loaded {loaded.products:,} products: {name}", markup=False)
    if not finds_misspelt and settings.database_url.startswith("postgres"):
        errors.print(
            "  PostgreSQL has no pg_trgm, so products are found by exact words only. A"
            " superuser can add it: create extension pg_trgm"
        )
    for count, what in (
        (loaded.without_price, "have no price that can be used"),
        (loaded.without_title, "have no description"),
        (loaded.unreadable, "cannot be read"),
    ):
        if count:
            errors.print(f"  left out: {count:,} rows {what}", markup=False)


def _require_products(loaded: loading.Loaded, table: TableFile) -> None:
    if not loaded.products:
        raise UserError(
            f"{table.path.name} has no row with a description and a price",
            f"Its columns: {', '.join(table.detected.columns[:20])}. Known names are, for example,"
            " Title, Brand, Model, UPC, SKU, Price, Currency and URL.",
        )


async def _save(tx: Any, rows: list[Json]) -> None:
    if rows:
        await loading.save(tx, rows)


async def _drop(tx: Any, source: str) -> int:
    await tx.take("catalog_drop_index_of", {"source": source})
    return len(await tx.take("catalog_drop_products", {"source": source}))


@app.command("unload")
def unload(
    source: str = typer.Argument(..., metavar="SOURCE", help="Name of a catalogue."),
) -> None:
    """Remove a catalogue that was loaded."""
    settings = ready_settings("catalog")

    async def main() -> int:
        async with opened_store(settings) as store:
            return int(await store.database.write("catalog_drop", partial(_drop, source=source)))

    count = run_async(main())
    if not count:
        raise UserError(
            f"there is no catalogue {source!r}", "`holdfast catalog sources` lists them."
        )
    errors.print(f"Removed {count:,} products of {source}.", markup=False)


@app.command("sources")
def sources(as_json: bool = JSON) -> None:
    """List the catalogues that were loaded."""
    rows = _fetched("catalog_sources")
    if as_json:
        print_json(rows)
        return
    table = [
        (row["source"], row["products"], "yes" if row["trusted"] else "no", row["updated_at"])
        for row in rows
    ]
    empty = "No catalogue is loaded. Load one with: holdfast catalog load FILE"
    print_table(("source", "products", "trusted", "updated"), table, empty, right=("products",))


@app.command("shops")
def shops(as_json: bool = JSON) -> None:
    """List shops in the order in which they are asked."""
    rows = with_local(_fetched("catalog_providers"))
    for row in rows:
        row["settings"] = orjson.loads(row["settings"])
        # They may contain keys.
        row["settings"]["headers"] = sorted(row["settings"].pop("headers", ()))
    if as_json:
        print_json(rows)
        return
    table = [
        (row["name"], row["kind"], row["priority"], "yes" if row["trusted"] else "no",
         "on" if row["enabled"] else "off", row["settings"].get("url", ""))
        for row in rows
    ]  # fmt: skip
    names = ("name", "kind", "priority", "trusted", "state", "address")
    print_table(names, table, "", right=("priority",))


@app.command("shop")
def shop(
    name: str = NAME,
    kind: str = typer.Option("json", "--kind", help=f"One of: {', '.join(KINDS)}."),
    url: str | None = typer.Option(
        None, "--url", help="Address of a search, with {query}. https://…?q={query}"
    ),
    identifier_url: str | None = typer.Option(
        None, "--identifier-url", help="Address of a product, with {gtin}, {sku} or {model}."
    ),
    items: str = typer.Option("", "--items", help="Path to the list of offers in a JSON reply."),
    field: list[str] = typer.Option(
        [],
        "--field",
        metavar="FIELD=PATH",
        help=f"Path of a field in an offer. Can be repeated. Fields: {', '.join(FIELDS)}.",
    ),
    header: list[str] = typer.Option(
        [],
        "--header",
        metavar="NAME=VALUE",
        help="Sent with each request; VALUE may be env:VARIABLE. Can be repeated.",
    ),
    priority: int = typer.Option(
        100,
        "--priority",
        min=-_LARGEST,
        max=_LARGEST,
        help="Shops with a lower number are asked first.",
    ),
    cost: float = typer.Option(
        0.0, "--cost", min=0, max=_LARGEST, help="Cost of a request. Free shops are asked first."
    ),
    currency: str = typer.Option("", "--currency", help="Currency of prices that do not name one."),
    untrusted: bool = typer.Option(False, "--untrusted", help="Its prices are only estimates."),
    off: bool = typer.Option(False, "--off", help="Add it switched off."),
) -> None:
    """Add a shop, or replace it. `local` is the catalogue of `holdfast catalog load`."""
    settings = settings_from_environment()
    details: dict[str, Any] = {"url": url, "identifier_url": identifier_url, "items": items}
    details |= {"fields": _pairs(field, "--field"), "headers": _pairs(header, "--header")}
    row: dict[str, Any] = {
        "name": name,
        "kind": kind,
        "priority": priority,
        "trusted": int(not untrusted),
        "enabled": int(not off),
        "cost": cost,
        "currency": _currency(currency),
        "settings": orjson.dumps({key: value for key, value in details.items() if value}).decode(),
    }
    make_provider(shop_of(row), settings.of("catalog"))  # refuses what cannot work
    ensure_schema(settings, ["catalog"])

    async def main() -> None:
        async with opened_store(settings) as store:
            await store.database.write(
                "catalog_shop", lambda tx: tx.take("catalog_save_provider", row)
            )

    run_async(main())
    errors.print(f"Saved the shop {name}{', switched off' if off else ''}.", markup=False)


@app.command("switch-shop")
def switch_shop(
    name: str = NAME,
    state: str = typer.Argument(..., metavar="on|off", help="Whether it is asked."),
) -> None:
    """Switch a shop on or off without changing its settings."""
    if state not in ("on", "off"):
        raise UserError(f"a shop is on or off, not {state!r}")
    settings = settings_from_environment()
    ensure_schema(settings, ["catalog"])

    async def main() -> bool:
        async with opened_store(settings) as store:
            rows = with_local(await store.fetch("catalog_providers"))
            shop = next((row for row in rows if row["name"] == name), None)
            if shop is None:
                return False
            row = shop | {"enabled": int(state == "on"), "trusted": int(shop["trusted"])}
            await store.database.write(
                "catalog_shop", lambda tx: tx.take("catalog_save_provider", row)
            )
            return True

    if not run_async(main()):
        raise _no_shop(name)
    errors.print(f"Switched the shop {name} {state}.", markup=False)


def _no_shop(name: str) -> UserError:
    return UserError(f"there is no shop {name!r}", "`holdfast catalog shops` lists them.")


@app.command("drop-shop")
def drop_shop(name: str = NAME) -> None:
    """Remove a shop."""
    settings = ready_settings("catalog")

    async def main() -> bool:
        async with opened_store(settings) as store:
            rows = await store.database.write(
                "catalog_shop", lambda tx: tx.take("catalog_drop_provider", {"name": name})
            )
            return bool(rows)

    if not run_async(main()):
        raise _no_shop(name)
    errors.print(f"Removed the shop {name}.", markup=False)


def _currency(text: str) -> str:
    code = currency_named(text)
    if text and code is None:
        raise UserError(f"{text!r} is not a currency", "Give a code such as EUR.")
    return code or ""


def _pairs(given: list[str], option: str) -> dict[str, str]:
    pairs = dict(each.partition("=")[::2] for each in given)
    if not all(pairs) or not all(pairs.values()):
        raise UserError(f"{option} is not written as NAME=VALUE", "E.g. --field price=offer.price")
    return pairs


def _fetched(query: str) -> list[dict[str, Any]]:
    settings = ready_settings("catalog")

    async def main() -> list[dict[str, Any]]:
        async with opened_store(settings) as store:
            return [dict(row) for row in await store.fetch(query)]

    return run_async(main())
