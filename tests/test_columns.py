"""Names of columns and fields: exact, alias, the same letters; never a part of a name."""

from __future__ import annotations

import pytest

from holdfast.columns import RowNames, names_to_store

INPUTS = {"title": ["name", "Product title"], "price": []}


@pytest.mark.parametrize(
    ("row", "fields"),
    [
        ({"title": 1, "name": 2}, {"title": 1, "name": 2}),
        ({"name": 1, "Title": 2}, {"title": 1, "Title": 2}),
        ({"product-title": 1, "PRICE": 2}, {"title": 1, "price": 2}),
        ({"subtitle": 1, "price list": 2}, {"subtitle": 1, "price list": 2}),
        ({"Price": 1, "PRICE": 2}, {"Price": 1, "PRICE": 2}),
        ({}, {}),
    ],
)
def test_each_record_is_matched_by_its_own_names(
    row: dict[str, int], fields: dict[str, int]
) -> None:
    named = RowNames({}, INPUTS)
    assert [named(row), named(row)] == [fields, fields]
    assert list(named(row)) == list(fields)


def test_any_number_of_shapes_is_matched_in_little_memory() -> None:
    named = RowNames({}, INPUTS)
    for number in range(3000):
        assert named({f"x{number}": 1, "Name": 2}) == {f"x{number}": 1, "title": 2}


def test_only_what_a_record_does_not_show_by_itself_is_renamed() -> None:
    columns = ["Name", "Cost", "note"]
    mapping = {"Name": "title", "Cost": "price", "note": "note"}
    assert names_to_store(columns, INPUTS, mapping) == {"Cost": "price"}
    assert names_to_store(columns, (), mapping) == {"Name": "title", "Cost": "price"}
    assert not RowNames({}) and RowNames({}, INPUTS) and RowNames({"a": "b"})
