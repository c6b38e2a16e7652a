"""The products of the demo, the same at every start."""

from __future__ import annotations

import csv
import zlib
from collections.abc import Iterator
from pathlib import Path

SHOPS = ("Kontor Nord", "Marktgasse 7", "Brightside Goods")
BRANDS = ("Aquarell", "Ironmoor", "Mahlwerk", "Sakai Forge", "Hobart & Sons", "Fjellberg", "Ōmi")
KINDS = {
    "kitchen": ("Kettle", "Toaster", "Burr grinder", "Pan", "Bread knife", "Stand mixer"),
    "tools": ("Cordless drill", "Socket set", "Spirit level", "Laser meter", "Hand plane"),
    "outdoor": ("Tent", "Gas stove", "Head torch", "Dry bag", "Hammock", "Water filter"),
    "home": ("Wool blanket", "Desk lamp", "Umbrella stand", "Curtain", "Steam iron"),
}
SIZES = ("small", "medium", "large", "1.7 l", "5 l", "18 V", "28 cm", "40 m", "140 x 200")
CRASHING = "Kettle, pressure untested"
CATALOGUE_SIZE = 2500
LIST_SIZE = 1500


def fate(text: str, below: int) -> int:
    """Returns a number from 0 that depends only on the text."""
    return zlib.crc32(text.encode()) % below


def product(number: int) -> dict[str, object]:
    category = sorted(KINDS)[fate(f"category {number}", len(KINDS))]
    kind = KINDS[category][fate(f"kind {number}", len(KINDS[category]))]
    size = SIZES[fate(f"size {number}", len(SIZES))]
    brand = BRANDS[fate(f"brand {number}", len(BRANDS))]
    return {
        "sku": f"{number:05d}",
        "title": f"{kind} {size} no. {number}",
        "brand": brand,
        "category": category,
        "weight": 50 + fate(f"weight {number}", 9000),
    }


def offers(title: str) -> list[dict[str, object]]:
    sellers = [shop for shop in SHOPS if fate(title + shop, 3)] or [SHOPS[0]]
    return [{"shop": shop, "price": (990 + fate(shop + title, 24_000)) / 100} for shop in sellers]


def shopping_list() -> Iterator[dict[str, object]]:
    for number in range(1, LIST_SIZE + 1):
        row = product(number)
        yield row | {"title": CRASHING} if number == LIST_SIZE // 3 else row


def write_shopping_list(path: Path) -> None:
    """Writes a file like a real spreadsheet: other headings, semicolons, leading zeros."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=";")
        writer.writerow(["SKU no.", "Product title", "Brand", "Category"])
        for row in shopping_list():
            writer.writerow([row["sku"], row["title"], row["brand"], row["category"]])
