"""Cells of a list in canonical form; what cannot be read is said, not guessed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import holdfast_catalog as catalog
from holdfast.columns import column_mapping
from holdfast.errors import InputError
from holdfast.word_lists import WordList
from holdfast_catalog.normalising.depreciation import (
    amount_of,
    categories,
    depreciation_of,
    read_categories,
)
from holdfast_catalog.normalising.gtin import article_number, check_digit
from holdfast_catalog.normalising.money import amount
from holdfast_catalog.normalising.product import INPUTS, Product, product_of
from holdfast_catalog.normalising.word_files import FOLDER
from holdfast_catalog.normalising.words import telling_words


@pytest.mark.parametrize(
    ("value", "gtin"),
    [
        ("4006381333931", "04006381333931"),
        ("036000291452", "00036000291452"),
        (36000291452, "00036000291452"),  # a spreadsheet dropped its zero
        (4006381333931.0, "04006381333931"),
        ("400-6381 333931", "04006381333931"),
        ("96385074", "00000096385074"),
        ("", None),
        (None, None),
    ],
)
def test_article_numbers_have_fourteen_digits(value: Any, gtin: str | None) -> None:
    number = article_number(value)
    assert (number.gtin, number.problem) == (gtin, None)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("4.00638E+12", "digits are lost"),
        ("1e+12", "digits are lost"),
        (2.4e11, "digits are lost"),  # its check digit is right by chance
        ("4006380000008", "check digit"),
        (5901230000000, "digits are lost"),
        ("4006381333930", "check digit"),
        ("12345", "digits"),
        ("none", "is not an article number"),
        ("000000000000", "is not an article number"),
        (12.5, "is not an article number"),
    ],
)
def test_bad_article_numbers_are_not_guessed(value: Any, problem: str) -> None:
    number = article_number(value)
    assert number.gtin is None
    assert problem in (number.problem or "")


def test_check_digit_finds_every_single_wrong_digit() -> None:
    good = "400638133393"
    digit = check_digit(good)
    for at in range(len(good)):
        for other in "0123456789":
            if other != good[at]:
                assert check_digit(good[:at] + other + good[at + 1 :]) != digit


@pytest.mark.parametrize(
    ("value", "minor", "currency"),
    [
        ("$1,299.00", 129900, "USD"),
        ("1.299,50 €", 129950, "EUR"),
        ("EUR 12", 1200, "EUR"),
        ("£5.5", 550, "GBP"),
        (12.5, 1250, "USD"),
        (19.99, 1999, "USD"),
        ("1,299", 129900, "USD"),
        ("1 299,95", 129995, "USD"),
        ("12,5", 1250, "USD"),
        ("¥1200", 1200, "JPY"),
        (".5", 50, "USD"),
        ("25,990,000 ₫", 25990000, "VND"),
        ("1.234.567,89", 123456789, "USD"),
        ("10 000", 1000000, "USD"),
        ("$450 CAD", 45000, "CAD"),
        ("$450 each", 45000, "USD"),
    ],
)
def test_prices_are_minor_units(value: Any, minor: int, currency: str) -> None:
    money = amount(value, "USD").money
    assert money is not None
    assert (money.minor, money.currency) == (minor, currency)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (-5, "negative"),
        ("-5.00", "negative"),
        ("$-5", "negative"),
        (0, "is 0"),
        (1e300, "absurd"),
        ("99999999999", "absurd"),
        ("1.299", "not clearly"),
        ("call us", "not clearly"),
        ("12 or 13", "not clearly"),
        ("5 10", "not clearly"),
        ("12,345 678", "not clearly"),
        ("12,34.56", "not clearly"),
        ("1.2.3,4", "not clearly"),
        ("$420 or so", "not clearly"),
        ("€20 USD", "not clearly"),
        ("nan", "not clearly"),
        ("=A1*2", "not clearly"),
    ],
)
def test_prices_that_are_not_clear_are_said(value: Any, problem: str) -> None:
    read = amount(value, "USD")
    assert read.money is None
    assert problem in (read.problem or "")


def test_columns_of_the_trade_are_recognised() -> None:
    columns = [
        "Item #", "Item Description", "Description", "Brand or Manufacturer", "Model#",
        "Cost to Replace Pre-Tax (each)", "Purchase price", "QTY", "Category", "Condition",
    ]  # fmt: skip
    mapping = column_mapping(columns, INPUTS)
    fields = ["item", "item_description", "description", "brand", "model", "price",
              "purchase_price", "quantity", "category", "condition"]  # fmt: skip
    assert [mapping.get(column) for column in columns] == fields


def test_row_becomes_a_product_and_says_what_it_could_not_use() -> None:
    row = {"item": 7, "item_description": " Kettle\n steel ", "quantity": "two", "price": "-1"}
    product = product_of(row, "EUR")
    assert (product.item, product.label, product.quantity) == ("7", "Kettle steel", 1)
    assert (product.price_minor, product.currency) == (None, "EUR")
    assert len(product.problems) == 2
    assert Product.of(product.as_json()) == product


def test_column_of_names_called_item_describes() -> None:
    assert product_of({"item": "Toaster"}, "USD").label == "Toaster"
    assert product_of({"item": "7", "description": "Toaster"}, "USD").label == "Toaster"
    assert product_of({"item": "7"}, "USD").is_empty


def test_words_lose_their_marks() -> None:
    assert telling_words("Nestlé, the Café-crème 2×") == ("nestle", "cafe", "creme", "2")
    assert telling_words('128 GB 55" 5-Quart') == telling_words("128gb 55inch 5 qt")


def test_depreciation_follows_the_category_then_the_words() -> None:
    assert depreciation_of("Furniture", "television").name == "Furniture"
    assert depreciation_of("", "55 inch television").name == "Electronics"
    assert depreciation_of("", "garden gnome").percent == 20
    assert amount_of(12345, 20) == 2469
    assert amount_of(5, 10) == 1  # half a cent is rounded up


def test_mistake_in_a_category_is_said_with_its_line(tmp_path: Path) -> None:
    text = (FOLDER / "categories.toml").read_text("utf-8")
    file = tmp_path / "categories.toml"
    file.write_text(text.replace("percent = 30", 'percent = "much"', 1))
    with pytest.raises(InputError, match="line 6: percent in ELC is not a number"):
        read_categories(WordList(file))


def test_depreciation_is_documented() -> None:
    page = (Path(catalog.__file__).parent / "docs" / "reference.md").read_text()
    lines = [f"| {each.name} | `{each.code}` | {each.percent} |" for each in categories()]
    assert "\n".join(lines) in page
