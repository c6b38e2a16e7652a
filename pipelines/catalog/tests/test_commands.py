"""The commands of a person who prices a list or photographs."""

from __future__ import annotations

import json
import random
import zipfile
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from PIL import Image

from bench.quality.catalog.photographs import photograph
from tests.cli.desk import Desk
from tests.command import HoldfastCommand

DIGITS = "4006381333931"
SHOP = f"""
    Title,Brand,Model,UPC,Price,URL
    Sony BRAVIA 55 inch 4K TV,Sony,KD55X80K,027242923782,$699.99,https://shop.example/tv
    Stabilo Boss highlighter yellow,Stabilo,,{DIGITS},1.49,https://shop.example/pen
"""
LIST = """
    Item #,Item Description,Brand or Manufacturer,Model#,QTY,Category
    1,55 inch television,Sony,KD55X80K,2,Electronics
    2,Garden gnome,,,1,
"""
ONCE = {"HOLDFAST_CATALOG_ATTEMPTS_NOT_FOUND": "1", "HOLDFAST_CATALOG_READ_TEXT": "false"}

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.fixture
def desk(holdfast_command: HoldfastCommand) -> Desk:
    desk = Desk(holdfast_command)
    desk.write("shop.csv", SHOP)
    loaded = desk.holdfast("catalog", "load", "shop.csv")
    assert "Loaded 2 products: shop" in loaded.stderr, loaded.stderr
    return desk


def test_list_is_priced_into_a_workbook(desk: Desk) -> None:
    desk.write("products.csv", LIST)
    done = desk.holdfast("run", "catalog", "products.csv", "--out", "priced.xlsx", env=ONCE)
    assert done.returncode == 0, done.stderr
    television, gnome = _rows(desk.folder / "priced.xlsx")
    assert television["Status"] == "Found" and television["Price"] == 699.99
    assert (television["Dep. Cat"], television["Dep %"]) == ("Electronics", 30)
    assert television["Total Replacement Price"] == 1399.98
    assert television["Dep Amount"] == 419.99
    assert gnome["Status"] == "No Market Price" and gnome["Price"] is None
    assert gnome["Reason"]


def test_photographs_and_what_is_wrong_with_others_in_their_zip(desk: Desk) -> None:
    photo = photograph(DIGITS, random.Random(2))
    photo.save(desk.folder / "pen.jpg")
    whole = (desk.folder / "pen.jpg").read_bytes()
    Image.new("L", (12_000, 12_000)).save(desk.folder / "huge.png")
    with zipfile.ZipFile(desk.folder / "inner.zip", "w") as inner:
        inner.writestr("pen.jpg", whole)
    with zipfile.ZipFile(desk.folder / "photos.zip", "w") as archive:
        archive.writestr("pen.jpg", whole)
        archive.write(desk.folder / "huge.png", "huge.png")
        archive.writestr("cut.jpg", whole[: len(whole) // 2])
        archive.writestr("fake.jpg", b"\xff\xd8\xff\xe0 not an image")
        archive.writestr("../outside.jpg", whole)
        archive.write(desk.folder / "inner.zip", "inner.zip")
        archive.writestr("locked.jpg", whole)
    _lock(desk.folder / "photos.zip", b"locked.jpg")
    done = desk.holdfast("run", "catalog", "photos.zip", "--out", "priced.xlsx", env=ONCE)
    assert done.returncode == 3, done.stderr  # some rows have errors
    rows = _rows(desk.folder / "priced.xlsx")
    assert (rows[0]["Status"], rows[0]["Price"]) == ("Found", 1.49)
    assert f"Barcode {DIGITS}" in rows[0]["Reason"]
    errors = [row["error"] for row in rows[1:]]
    for error, part in zip(
        errors,
        ("pixels", "", "", "leads out of the zip", "is not an image", "password"),
        strict=True,
    ):
        assert error and part in error, errors


def test_shops_and_catalogues_are_listed_and_removed(desk: Desk) -> None:
    sources = json.loads(desk.succeed("catalog", "sources", "--json"))
    assert [(source["source"], source["products"]) for source in sources] == [("shop", 2)]
    address = "https://api.acme.example/search?q={query}"
    fields = ("--items", "results", "--field", "title=name", "--field", "price=cost")
    desk.succeed("catalog", "shop", "acme", "--url", address, *fields, "--untrusted")
    shops = json.loads(desk.succeed("catalog", "shops", "--json"))
    assert [shop["name"] for shop in shops] == ["local", "acme"]
    acme = next(shop for shop in shops if shop["name"] == "acme")
    assert acme["kind"] == "json" and not acme["trusted"]
    desk.succeed("catalog", "switch-shop", "acme", "off")
    desk.succeed("catalog", "switch-shop", "local", "off")
    switched = json.loads(desk.succeed("catalog", "shops", "--json"))
    assert [shop.pop("enabled") for shop in switched] == [0, 0]
    assert switched[1] == {name: acme[name] for name in acme if name != "enabled"}
    desk.succeed("catalog", "switch-shop", "local", "on")
    assert "no shop 'bob'" in desk.fail("catalog", "switch-shop", "bob", "on")
    assert "on or off" in desk.fail("catalog", "switch-shop", "acme", "of")
    desk.succeed("catalog", "drop-shop", "acme")
    assert "acme" in desk.fail("catalog", "drop-shop", "acme")
    desk.succeed("catalog", "unload", "shop")
    assert json.loads(desk.succeed("catalog", "sources", "--json")) == []
    assert "Kinds" in desk.fail("catalog", "shop", "bob", "--kind", "fax", "--url", address)


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("https://shop.example/{query.secret}", "unknown place"),
        ("https://shop.example/{query!r}", "unknown place"),
        ("https://shop.example/{query:>999999999}", "unknown place"),
        ("https://shop.example/{query", "unknown place"),
        ("https://shop.example/", "no place for what is looked for"),
        ("https://{brand}.example/{query}", "no host, or one that rows choose"),
        ("https://{query}", "no host, or one that rows choose"),
        ("https:///{query}", "no host, or one that rows choose"),
    ],
)
def test_address_of_a_shop_that_cannot_work_is_refused(
    desk: Desk, address: str, problem: str
) -> None:
    assert problem in desk.fail("catalog", "shop", "acme", "--url", address)


def _rows(path: Path) -> list[dict[str, Any]]:
    header, *rows = openpyxl.load_workbook(path).active.iter_rows(values_only=True)
    return [dict(zip(map(str, header), row, strict=True)) for row in rows]


def _lock(path: Path, name: bytes) -> None:
    """Sets the flag of a password at a file in the directory of the zip."""
    content = bytearray(path.read_bytes())
    directory = content.rindex(name) - 46
    assert content[directory : directory + 4] == b"PK\x01\x02"
    content[directory + 8] |= 1
    path.write_bytes(content)
