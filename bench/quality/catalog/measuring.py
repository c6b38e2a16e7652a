"""Prices a labelled list and counts right choices, wrong ones, and those left to a person."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from holdfast.columns import BAD_ROW, column_mapping, mapped_row
from holdfast.errors import UserError
from holdfast.tables.files import TableFile
from holdfast_catalog.choosing import Choice, Status
from holdfast_catalog.normalising.gtin import article_number
from holdfast_catalog.normalising.product import INPUTS, Product, product_of
from holdfast_catalog.normalising.words import text_of
from holdfast_catalog.offers import Offer

FOLDER = Path(__file__).parent / "lists"
#: Lists with their catalogues. The second is of other trades: units, packs, variants, accessories,
#: typing errors, shops that do not state brand or model. The third is written as people write:
#: short, abbreviated, in any order. The others were written before the rules were adapted to them:
#: medical devices, offices, gardens, car parts, clothing; the last nine in the words of people who
#: do not know the catalogue, with remarks.
NAMES = (
    "labelled", "hard", "everyday", "trades", "households", "contents", "workshop", "personal",
    "basement", "apartment", "family", "hotel", "claims", "hobbies",
)  # fmt: skip
#: Lists that the weights are fitted to as well.
MORE_LISTS = Path(__file__).parent / "more_lists"
_CATALOGUE = "_catalogue"
EXPECTED = "Expected"
#: A label: no offer is the right one; a person has to choose.
REVIEW = "review"
_PAGE_ROWS, _PAGE_BYTES = 1000, 4 * 1024 * 1024

LookUp = Callable[[Product], Awaitable[Choice]]


@dataclass(frozen=True, slots=True)
class Label:
    """The right answer for a row.

    `expected` is the SKU of the right offer; empty: there is none."""

    product: Product
    expected: str


@dataclass(slots=True)
class Accuracy:
    rows: int = 0
    correct: int = 0
    wrong_prices: int = 0  # accepted, but not the right one
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


def with_catalogue(labelled: Path) -> tuple[Path, Path]:
    return labelled, labelled.with_name(f"{labelled.stem}{_CATALOGUE}.csv")


LISTS = tuple(with_catalogue(FOLDER / f"{name}.csv") for name in NAMES)


def lists_in(folder: Path) -> list[tuple[Path, Path]]:
    """Returns the lists of a folder, each with its catalogue."""
    lists = [file for file in sorted(folder.glob("*.csv")) if not file.stem.endswith(_CATALOGUE)]
    if not lists:
        raise UserError(
            f"{folder} has no lists", f"A list is NAME.csv, beside it NAME{_CATALOGUE}.csv."
        )
    return [with_catalogue(file) for file in lists]


def labels_in(table: TableFile, currency: str) -> Iterator[Label]:
    columns = table.detected.columns
    if EXPECTED not in columns:
        raise UserError(
            f"the list has no column {EXPECTED}",
            "It names the SKU of the right offer; empty: there is none.",
        )
    mapping = column_mapping([name for name in columns if name != EXPECTED], INPUTS)
    for page in table.pages(0, lambda: _PAGE_ROWS, _PAGE_BYTES):
        for row in map(orjson.loads, page.inputs):
            if BAD_ROW not in row:
                expected = text_of(row.pop(EXPECTED, ""))
                yield Label(product_of(mapped_row(row, mapping), currency), expected)
        if page.end:
            return


async def measure(labels: Iterator[Label], look_up: LookUp) -> Accuracy:
    accuracy = Accuracy()
    for label in labels:
        choice = await look_up(label.product)
        chosen = _named(choice.offer, label) if choice.is_priced and choice.offer else ""
        accuracy.reviews += choice.status is Status.REVIEW
        if not add_result(accuracy, label, chosen):
            accuracy.misses.append(
                {
                    "row": label.product.text,
                    "expected": label.expected or "none",
                    "chosen": chosen or str(choice.status),
                    "reason": choice.reason,
                }
            )
    return accuracy


def add_result(accuracy: Accuracy, label: Label, chosen: str) -> bool:
    """Adds a result; returns whether it is correct. `chosen` is empty if no price was accepted."""
    is_correct = _is_correct(label, chosen)
    accuracy.rows += 1
    accuracy.correct += is_correct
    accuracy.wrong_prices += bool(chosen) and not is_correct
    return is_correct


def _named(offer: Offer, label: Label) -> str:
    """Returns the name of an offer: its SKU, or what the label names if the catalogue has none."""
    number = article_number(label.expected).gtin
    if not offer.sku and number is not None and number == offer.gtin:
        return label.expected
    return offer.sku or offer.title


def _is_correct(label: Label, chosen: str) -> bool:
    """Whether the choice is correct; if no offer is right, any answer without a price is."""
    if label.expected in ("", REVIEW):
        return not chosen
    return chosen == label.expected
