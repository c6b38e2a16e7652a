"""Prices a labelled list and counts what was chosen rightly, wrongly, or left to a person."""

from __future__ import annotations

import csv
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.columns import column_mapping, mapped_row
from holdfast.pipelines.catalog.choosing import Choice, Status
from holdfast.pipelines.catalog.normalising.product import INPUTS, Product, product_of

HERE = Path(__file__).parent
CATALOGUE, LABELLED = HERE / "catalogue.csv", HERE / "labelled.csv"
#: The lists that come with Holdfast, each with its catalogue. The second is of other trades:
#: units, packs, variants, accessories, typing errors, shops that do not state brand or model. The
#: third is written as people write: short, abbreviated, in any order.
LISTS = (
    (LABELLED, CATALOGUE),
    (HERE / "hard.csv", HERE / "hard_catalogue.csv"),
    (HERE / "everyday.csv", HERE / "everyday_catalogue.csv"),
)
EXPECTED = "Expected"
#: A label: no offer is the right one; a person has to choose.
REVIEW = "review"

LookUp = Callable[[Product], Awaitable[Choice]]


@dataclass(frozen=True, slots=True)
class Label:
    """`expected` is the SKU of the right offer; empty: there is none."""

    product: Product
    expected: str


@dataclass(slots=True)
class Accuracy:
    rows: int = 0
    correct: int = 0
    wrong_prices: int = 0  # accepted, and not the right one
    reviews: int = 0
    misses: list[dict[str, Any]] = field(default_factory=list)

    def add(self, other: Accuracy) -> None:
        self.rows += other.rows
        self.correct += other.correct
        self.wrong_prices += other.wrong_prices
        self.reviews += other.reviews
        self.misses += other.misses

    @property
    def correct_share(self) -> float:
        return self.correct / self.rows if self.rows else 0.0

    @property
    def wrong_share(self) -> float:
        return self.wrong_prices / self.rows if self.rows else 0.0


def labels_in(path: Path, currency: str) -> Iterator[Label]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file)
        columns = [name for name in reader.fieldnames or () if name != EXPECTED]
        mapping = column_mapping(columns, INPUTS)
        for row in reader:
            expected = (row.pop(EXPECTED, "") or "").strip()
            yield Label(product_of(mapped_row(dict(row), mapping), currency), expected)


async def measure(labels: Iterator[Label], look_up: LookUp) -> Accuracy:
    accuracy = Accuracy()
    for label in labels:
        choice = await look_up(label.product)
        chosen = choice.offer.sku if choice.is_priced and choice.offer else ""
        accuracy.rows += 1
        accuracy.reviews += choice.status is Status.REVIEW
        is_correct = _is_correct(label, chosen)
        accuracy.correct += is_correct
        accuracy.wrong_prices += bool(chosen) and not is_correct
        if not is_correct:
            accuracy.misses.append(
                {
                    "row": label.product.text,
                    "expected": label.expected or "none",
                    "chosen": chosen or str(choice.status),
                    "reason": choice.reason,
                }
            )
    return accuracy


def _is_correct(label: Label, chosen: str) -> bool:
    """Where no offer is right, any answer without a price is."""
    if label.expected in ("", REVIEW):
        return not chosen
    return chosen == label.expected
