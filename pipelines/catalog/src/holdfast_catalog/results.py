"""Converts a choice to a row of the grid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.model import Json
from holdfast_catalog.choosing import Choice
from holdfast_catalog.normalising.depreciation import amount_of, depreciation_of
from holdfast_catalog.normalising.money import as_number
from holdfast_catalog.normalising.product import Product
from holdfast_catalog.strategies import Query

_LIST = "list"  # the pricer, if the list itself gives the price
COLUMNS = (
    "Item #",
    "Description",
    "Status",
    "Replacement Source",
    "Price",
    "Currency",
    "Qty",
    "Dep. Cat",
    "Dep %",
    "Dep Amount",
    "Total Replacement Price",
    "URL",
    "Cat",
    "Sub Cat",
    "Pricer",
    "Search Query Used",
    "Query Strategy",
    "Reason",
)


def row_of(product: Product, choice: Choice, query: Query | None, most_candidates: int) -> Json:
    offer = choice.offer
    notes = [choice.reason, *(f"Note: {problem}" for problem in product.problems)]
    row: Json = {
        "Item #": product.item,
        "Description": product.label,
        "Status": str(choice.status),
        "Replacement Source": offer.source if offer else None,
        "URL": (offer.url or None) if offer else None,
        "Cat": product.category or None,
        "Sub Cat": product.subcategory or None,
        "Pricer": offer.provider if offer else _LIST if choice.is_priced else None,
        "Search Query Used": query.text if query else None,
        "Query Strategy": query.strategy if query else None,
        "Reason": ". ".join(notes),
    }
    row |= priced(product, choice.price_minor)
    row["tier"] = str(choice.tier)
    row["price_minor"] = choice.price_minor
    row["candidates"] = [
        {"id": number, "score": round(each.value, 3), "why": each.why, **each.offer.as_json()}
        for number, each in enumerate(choice.scores[:most_candidates], 1)
    ]
    return row


def priced(product: Product, price_minor: int | None) -> Json:
    """Returns the columns that follow from a price."""
    category = depreciation_of(product.category, product.label)
    row: Json = {
        "Price": None,
        "Currency": product.currency,
        "Qty": product.quantity,
        "Dep. Cat": category.name,
        "Dep %": category.percent,
        "Dep Amount": None,
        "Total Replacement Price": None,
    }
    if price_minor is None:
        return row
    total, currency = price_minor * product.quantity, product.currency
    row["Price"] = as_number(price_minor, currency)
    row["Dep Amount"] = as_number(amount_of(total, category.percent), currency)
    row["Total Replacement Price"] = as_number(total, currency)
    return row


def candidate_of(result: Any, number: Any) -> Mapping[str, Any] | None:
    """Returns one of a result's candidates, by its id."""
    candidates = result.get("candidates", []) if isinstance(result, dict) else []
    return next((each for each in candidates if str(each["id"]) == str(number)), None)
