"""Reads a row of a list as a product to look for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from decimal import Decimal, InvalidOperation
from typing import Any

from holdfast.model import Json
from holdfast_catalog.normalising.gtin import article_number
from holdfast_catalog.normalising.money import amount, currency_named
from holdfast_catalog.normalising.words import compact, text_of

#: Fields and the names that their columns have in lists.
INPUTS: Mapping[str, Sequence[str]] = {
    "item": ("Item #", "Item No", "Item Number", "No.", "#", "Line"),
    "item_description": ("Item Description", "Title", "Product", "Product Name", "Name"),
    "description": ("Description", "Details", "Product Description"),
    "brand": ("Brand or Manufacturer", "Brand", "Manufacturer", "Make"),
    "model": ("Model#", "Model", "Model Number", "Model No", "MPN", "Part Number"),
    "gtin": ("GTIN", "UPC", "EAN", "UPC/EAN", "Barcode", "EAN13", "ISBN"),
    "sku": ("SKU", "Article Number", "Article No"),
    "quantity": ("QTY", "Quantity", "Count", "Pieces"),
    "price": ("Cost to Replace Pre-Tax (each)", "Cost to Replace", "Replacement Cost", "Price"),
    "purchase_price": ("Purchase price", "Original Price", "Price Paid"),
    "currency": ("Currency", "Currency Code"),
    "category": ("Category", "Cat"),
    "subcategory": ("Sub Cat", "Subcategory", "Sub Category"),
    "condition": ("Condition", "State of Item"),
}

_FEWEST_OF_HEADER = 2
_MOST_PIECES = 1_000_000
#: What people write if nothing is known.
_UNKNOWN = frozenset(("na", "none", "unknown", "unk", "tbd", "notavailable", "notknown"))
#: The condition of a thing says nothing about its replacement, which is new.
_CONDITIONS = {
    "new": "new",
    "brand new": "new",
    "like new": "used",
    "good": "worn",
    "fair": "worn",
    "poor": "worn",
    "average": "worn",
    "excellent": "worn",
    "used": "used",
    "pre-owned": "used",
    "refurbished": "refurbished",
    "renewed": "refurbished",
}


@dataclass(frozen=True, slots=True)
class Product:
    """A product to look for.

    `price_minor` is what the list says that it cost. `problems` are sentences about cells that
    could not be used."""

    item: str
    item_description: str
    description: str
    brand: str
    model: str
    gtin: str | None
    sku: str
    quantity: int
    price_minor: int | None
    currency: str
    category: str
    subcategory: str
    condition: str
    problems: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        return self.item_description or self.description or f"{self.brand} {self.model}".strip()

    @property
    def text(self) -> str:
        """Everything that describes it."""
        parts = (self.brand, self.model, self.item_description, self.description)
        return " ".join(part for part in parts if part)

    @property
    def is_empty(self) -> bool:
        return not (self.text or self.gtin or self.sku)

    def as_json(self) -> Json:
        return asdict(self) | {"problems": list(self.problems)}

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Product:
        """Restores a product from `as_json`."""
        known = {field.name: values[field.name] for field in fields(cls)}
        return cls(**known | {"problems": tuple(known["problems"])})


def repeats_header(row: Mapping[str, Any]) -> bool:
    """Whether its cells are the names of their columns: a header within a list."""
    cells = {name: compact(text_of(row.get(name))) for name in INPUTS}
    known = {name: cell for name, cell in cells.items() if cell}
    return len(known) >= _FEWEST_OF_HEADER and all(
        cell in {compact(other) for other in (name, *INPUTS[name])} for name, cell in known.items()
    )


def product_of(row: Mapping[str, Any], currency: str) -> Product:
    """Returns the product of a row; `currency` is that of prices that name none."""
    number = article_number(row.get("gtin"))
    own = currency_named(text_of(row.get("currency"))) or currency
    price, price_problem = _price(row, own)
    quantity, quantity_problem = _quantity(row.get("quantity"))
    problems = (number.problem, price_problem, quantity_problem)
    item, title = text_of(row.get("item")), text_of(row.get("item_description"))
    if not title and not text_of(row.get("description")) and any(map(str.isalpha, item)):
        title = item  # a column "Item" of names, not of numbers
    return Product(
        item=item,
        item_description=title,
        description=text_of(row.get("description")),
        brand=_named(row.get("brand")),
        model=_named(row.get("model")),
        gtin=number.gtin,
        sku=text_of(row.get("sku")),
        quantity=quantity,
        price_minor=price[0] if price else None,
        currency=price[1] if price else own,
        category=text_of(row.get("category")),
        subcategory=text_of(row.get("subcategory")),
        condition=_CONDITIONS.get(text_of(row.get("condition")).casefold(), ""),
        problems=tuple(problem for problem in problems if problem),
    )


def _named(value: Any) -> str:
    text = text_of(value)
    short = compact(text)
    return "" if not short or short in _UNKNOWN else text


def _price(row: Mapping[str, Any], currency: str) -> tuple[tuple[int, str] | None, str | None]:
    """Returns the price of the first column that has one."""
    problem = None
    for name in ("price", "purchase_price"):
        read = amount(row.get(name), currency)
        if read.money is not None:
            return (read.money.minor, read.money.currency), None
        problem = problem or read.problem
    return None, problem


def _quantity(value: Any) -> tuple[int, str | None]:
    text = text_of(value)
    if not text:
        return 1, None
    try:
        number = Decimal(text.replace(",", ""))
    except InvalidOperation:
        return 1, f"the quantity {text[:30]!r} is not a number; 1 is used"
    if not (number.is_finite() and number == number.to_integral_value()):
        return 1, f"the quantity {text[:30]} is not a whole number; 1 is used"
    if not 1 <= number <= _MOST_PIECES:
        return 1, f"the quantity {text[:30]} is out of range; 1 is used"
    return int(number), None
