"""The rows that every contender is given: a product list of about 200 bytes a row."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

COLUMNS = ("id", "title", "brand", "sku", "gtin", "note")
ROW_BYTES = 200


def row(number: int) -> dict[str, str]:
    """Returns row `number` as a CSV reader returns it: every value is text."""
    values = {
        "id": str(number),
        "title": f"Hex bolt M8 x {number % 400 + 10} stainless steel A2 pack of {number % 90 + 10}",
        "brand": "Example Fasteners GmbH",
        "sku": f"SKU-{number:010d}",
        "gtin": str(4006381000000 + number),
    }
    used = sum(len(value) + 1 for value in values.values())
    return values | {"note": "n" * (ROW_BYTES - used - 1)}


def rows(count: int, start: int = 0) -> Iterator[dict[str, str]]:
    return (row(number) for number in range(start, start + count))


def write_csv(path: Path, count: int, start: int = 0) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows(count, start))
    return path


def work(item: dict[str, str]) -> dict[str, object]:
    """Does the whole work on one item, the same for every contender."""
    return {"id": item["id"], "ok": True, "title_len": len(item["title"])}
