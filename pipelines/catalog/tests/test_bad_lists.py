"""Lists as people send them: each through the API, and what its rows say."""

from __future__ import annotations

import datetime
import io
import re
from collections.abc import AsyncIterator, Callable
from functools import partial
from html import unescape
from pathlib import Path
from typing import Any

import openpyxl
import orjson
import pytest
from openpyxl.utils.datetime import CALENDAR_MAC_1904

from holdfast.extension import installed
from holdfast.tables.files import open_table
from holdfast.tables.plan import reading_plan
from holdfast_catalog import loading
from holdfast_catalog.normalising.product import INPUTS, product_of
from pipelines.catalog.tests.scene import MIXER, TELEVISION
from tests.api.server import ApiServer, ended

HEADER = ["Item #", "Item Description", "Brand", "Model#", "UPC", "QTY", "Price"]
TV = [1, "television", "Sony", "KD55X80K", None, 1, None]
MIX = [2, "mixer", "KitchenAid", None, "883049118949", 2, None]


@pytest.fixture
async def server(tmp_path: Path, database_url: str) -> AsyncIterator[ApiServer]:
    pack = installed()["catalog"].load("web")
    settings = {"catalog_not_found_seconds": "0"}
    async with ApiServer(database_url, tmp_path / "server", [pack], **settings) as started:
        products = [product_of(row, "USD") for row in (TELEVISION, MIXER)]
        rows = [
            loading.row_of(product, "acme", loading.reference_of(product), True, "")
            for product in products
        ]
        await started.parts.store.database.write("load", partial(loading.save, rows=rows))
        yield started


def workbook(*rows: list[Any], change: Callable[[Any], None] | None = None) -> bytes:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    if change is not None:
        change(book)
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def hide_another(book: Any) -> None:
    hidden = book.create_sheet("old", 0)
    hidden.append(["nothing", "of", "this"])
    hidden.sheet_state = "hidden"


def merge(book: Any) -> None:
    book.active.merge_cells("C2:C3")


def second_table(book: Any) -> None:
    book.active.append([])
    for row in (HEADER, MIX):
        book.active.append(row)


def dates_of_1904(book: Any) -> None:
    book.epoch = CALENDAR_MAC_1904
    book.active["B2"] = datetime.date(2020, 5, 17)


FOUND = ("Found", None)
LISTS: dict[str, tuple[bytes, list[tuple[str | None, str | None]]]] = {
    "header missing": (
        b"television,Sony,KD55X80K,1\nmixer,KitchenAid,KSM,2\nvase,Ikea,V,1\n",
        [(None, "names no product")] * 3,
    ),
    "header twice": (workbook(HEADER, TV, HEADER, MIX), [FOUND, (None, "repeats"), FOUND]),
    "two tables": (workbook(HEADER, TV, change=second_table), [FOUND, (None, "repeats"), FOUND]),
    "hidden sheet": (workbook(HEADER, TV, change=hide_another), [FOUND]),
    "merged cells": (workbook(HEADER, TV, MIX, change=merge), [FOUND, FOUND]),
    "dates of 1904": (workbook(HEADER, TV, change=dates_of_1904), [FOUND]),
    "formula": (workbook(HEADER, [*TV[:5], "=1+1", None]), [FOUND]),
    "number in exponents": (
        workbook(HEADER, [1, "mixer", None, None, "8.83049E+11", 1, None]),
        [("Manual Review", "last digits are lost")],
    ),
    "negative price": (workbook(HEADER, [*TV[:6], -5]), [("Found", "-5 is negative")]),
    "absurd price": (workbook(HEADER, [*TV[:6], 10**12]), [("Found", "is absurd")]),
}


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_bad_lists_end_with_every_row_explained(server: ApiServer) -> None:
    ada = await server.person("ada")
    for name, (content, expected) in LISTS.items():
        file = "list.csv" if name == "header missing" else "list.xlsx"
        sent = {"file": (file, content)}
        made = await ada.post("/api/jobs", files=sent, data={"pipeline": "catalog"})
        assert made.status_code == 202, (name, made.text)
        job = await ended(server, ada, made.json()["id"])
        assert job["jobType"] == "CSV"
        items = (await ada.get(f"/api/jobs/{job['id']}/items")).json()["items"]
        found = [(item["row"].get("Status"), _reason(item)) for item in items]
        for (status, reason), (wanted, part) in zip(found, expected, strict=bool(expected)):
            assert status == wanted, (name, found)
            assert (part or "") in reason, (name, found)
        assert all(reason for _, reason in found), (name, found)
        if name == "header missing":
            assert "not a header" in " ".join(job["readAs"]), job["readAs"]


def _reason(item: dict[str, Any]) -> str:
    return f"{item['row'].get('Reason') or ''} {item['errorMessage'] or ''}".strip()


def test_list_none_of_whose_columns_is_known_is_said(tmp_path: Path) -> None:
    path = tmp_path / "list.csv"
    path.write_text("Foo,Bar\n1,2\n")
    detected = open_table(path, {}).detected
    words = reading_plan(detected, INPUTS, {}, {})["read_as"]
    assert "No column is read as any of the fields" in words[-1] and "--column Foo=" in words[-1]
    known = reading_plan(detected, INPUTS, {}, {"Bar": "model"})["read_as"]
    assert "No column is read as item," in known[-1] and "model" not in known[-1]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_offer_is_chosen_on_the_page_only_if_it_is_still_that_one(server: ApiServer) -> None:
    ada = await server.signed_in("ada")
    titles = ("KitchenAid mixer 'A' \"x\"><b>&amp;", "KitchenAid mixer 'B' \"x\"><b>&amp;")
    rows = [
        loading.row_of(
            product_of({"item_description": title, "price": price}, "USD"), "b", title, True, ""
        )
        for title, price in zip(titles, (10, 99), strict=True)
    ]
    await server.parts.store.database.write("load", partial(loading.save, rows=rows))
    made = await ada.post(
        "/api/jobs",
        files={"file": ("list.csv", b"Item Description\nKitchenAid mixer x\n")},
        data={"pipeline": "catalog"},
    )
    job = await ended(server, ada, made.json()["id"])
    page = (await ada.get(f"/jobs/{job['id']}/items/1")).text
    values = [unescape(value) for value in re.findall(r"name=\"value\" value='([^']*)'", page)]
    offers = [orjson.loads(value) for value in values]
    assert {offer["title"] for offer in offers} >= set(titles), page
    offer = next(offer for offer in offers if offer["title"] == titles[1])
    path = f"/jobs/{job['id']}/items/1"
    form = {"kind": "choose", "version": "0", "csrf": ada.headers["X-CSRF-Token"]}
    for stale in ({"price_minor": 1}, {"title": titles[0]}):
        value = orjson.dumps(offer | stale).decode()
        refused = await ada.post(f"{path}/ruling", data=form | {"value": value})
        assert refused.status_code == 422 and "is another offer now" in refused.text
    done = await ada.post(f"{path}/ruling", data=form | {"value": orjson.dumps(offer).decode()})
    assert done.status_code == 303, done.text
    (item,) = (await ada.get(f"/api/jobs/{job['id']}/items")).json()["items"]
    assert item["row"]["Price"] == 99.0
