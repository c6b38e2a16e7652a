"""A person's decision about a price: another candidate, or a price that was typed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from holdfast.columns import RowNames
from holdfast.errors import UserError
from holdfast.model import Json
from holdfast.rulings import Ruled, RulingKind
from holdfast_catalog.choosing import Status
from holdfast_catalog.normalising.money import amount
from holdfast_catalog.normalising.product import INPUTS, Product, product_of
from holdfast_catalog.results import candidate_of, priced


def changes(ruled: Ruled, currency: str) -> Mapping[str, Any] | None:
    """Returns the columns that the decision changes, with everything that follows from a price."""
    product = _product(ruled, currency)
    if ruled.kind is RulingKind.CHOOSE:
        return _chosen(ruled, product)
    if ruled.kind is RulingKind.EDIT and isinstance(ruled.value, dict) and "Price" in ruled.value:
        return _named(ruled, product) | _typed(ruled, product)
    if ruled.kind is RulingKind.REJECT:
        return _no_price(ruled, product)
    return None


def _product(ruled: Ruled, currency: str) -> Product:
    """Returns what the row names.

    A photograph names nothing: its category is that of what was found."""
    if ruled.job.reading.images:
        product = product_of({"item_description": ruled.row.get("name")}, currency)
        known = (ruled.result or {}).get("Dep. Cat")
        return replace(product, category=known) if known else product
    named = RowNames(None if ruled.job.standing else ruled.job.reading.column_names, INPUTS)
    return product_of(named(dict(ruled.row)), currency)


def _named(ruled: Ruled, product: Product) -> Json:
    """Returns the naming columns of a row that failed, which has no result that names it."""
    if ruled.result is not None:
        return {}
    return {"Item #": product.item or str(ruled.seq), "Description": product.label}


def _chosen(ruled: Ruled, product: Product) -> Json:
    value = ruled.value.get("id") if isinstance(ruled.value, dict) else ruled.value
    candidate = candidate_of(ruled.result, value)
    if candidate is None:
        numbers = [each["id"] for each in (ruled.result or {}).get("candidates", [])]
        raise UserError(
            f"there is no candidate {value!r}",
            f"Candidates: {', '.join(map(str, numbers))}." if numbers else "There are none.",
        )
    seen = ruled.value if isinstance(ruled.value, dict) else {}
    if any(candidate.get(name) != known for name, known in seen.items() if name != "id"):
        raise UserError(
            f"candidate {value} is another offer now: the row was processed again",
            "Look at the row again.",
        )
    if "price_minor" not in candidate:
        raise UserError(f"candidate {value} has no price", "Type one instead.")
    if candidate["currency"] != product.currency:
        raise UserError(
            f"candidate {value} has a price in {candidate['currency']}, not {product.currency}",
            "Type the converted price instead.",
        )
    described: Json = {}
    if ruled.job.reading.images:
        product = replace(product, category="", item_description=candidate["title"])
        described = {"Description": product.label}
    return {
        **described,
        **priced(product, candidate["price_minor"]),
        "Status": str(Status.FOUND),
        "Replacement Source": candidate.get("shop") or candidate["provider"],
        "URL": candidate.get("url"),
        "Pricer": ruled.author,
        "Reason": _why("chosen", ruled),
    }


def _typed(ruled: Ruled, product: Product) -> Json:
    read = amount(ruled.value["Price"], product.currency)
    if read.money is None:
        raise UserError(read.problem or "there is no price", "Write it as 129.99.")
    if read.money.currency != product.currency:
        raise UserError(
            f"the price is in {read.money.currency}, the row in {product.currency}",
            f"Convert it to {product.currency}.",
        )
    unknown = sorted(set(ruled.value) - set(ruled.columns)) if ruled.columns else []
    if unknown:
        raise UserError(
            f"there is no column {unknown[0]!r}", f"Columns: {', '.join(ruled.columns)}."
        )
    follow = priced(product, read.money.minor)
    conflict = sorted((set(ruled.value) & set(follow)) - {"Price"})
    if conflict:
        raise UserError(
            f"{conflict[0]!r} follows from the list and the price", "Set it in the list."
        )
    own = {
        "Status": str(Status.FOUND),
        "Replacement Source": None,  # the offer has another price
        "URL": None,
        "Pricer": ruled.author,
        "Reason": _why("priced", ruled),
    }
    return {**own, **ruled.value, **follow}


def _why(what: str, ruled: Ruled) -> str:
    """Returns who decided, and the reason that the person gave."""
    return f"{what} by {ruled.author}" + (f": {ruled.reason}" if ruled.reason else "")


def _no_price(ruled: Ruled, product: Product) -> Json:
    return {
        **priced(product, None),
        "Status": str(Status.NONE),
        "Replacement Source": None,
        "URL": None,
        "Pricer": None,
        "Reason": _why("rejected", ruled),
    }
