"""Names of columns and fields: exact, alias, the same letters; never a part of a name."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.columns import BAD_ROW, NAMES, RowNames, chosen_names, column_mapping, with_names
from holdfast.errors import TwinColumns

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
    named = RowNames(None, INPUTS)
    assert [named(row), named(row)] == [fields, fields]
    assert list(named(row)) == list(fields)


def test_any_number_of_shapes_is_matched_in_little_memory() -> None:
    named = RowNames(None, INPUTS)
    for number in range(3000):
        assert named({f"x{number}": 1, "Name": 2}) == {f"x{number}": 1, "title": 2}


def test_mapping_is_stored_with_a_record_only_if_its_names_do_not_show_it() -> None:
    columns = ["Name", "Cost", "note"]
    mapping = {"Name": "title", "Cost": "price", "note": "note"}
    assert chosen_names(columns, INPUTS, mapping) == {"Name": "title", "Cost": "price"}
    assert chosen_names(columns, INPUTS, {"Name": "title"}) is None
    assert chosen_names(columns, INPUTS, {}) == {}  # Name keeps its name
    assert chosen_names(columns, (), {}) is None
    assert with_names({"Name": 1}, None) == {"Name": 1}


@pytest.mark.parametrize("inputs", [INPUTS, ()])
def test_chosen_names_of_a_record_come_before_its_own(inputs: Any) -> None:
    named = RowNames(None, inputs)
    row = {"Name": 1, "Cost": 2}
    assert named(with_names(row, {"Cost": "price"})) == {"Name": 1, "price": 2}
    assert named(with_names(row, {})) == row
    assert row == {"Name": 1, "Cost": 2}


@pytest.mark.parametrize("value", [None, "x", ["Name"], {"Name": 1}])
def test_field_that_only_has_the_reserved_name_is_a_field(value: Any) -> None:
    assert RowNames(None, INPUTS)({"Name": 1, NAMES: value}) == {"title": 1, NAMES: value}


def test_rows_of_a_file_are_mapped_by_their_job_alone() -> None:
    row = {"a": 1, NAMES: {"a": "c"}}
    assert RowNames({"a": "b"})(row) == {"b": 1, NAMES: {"a": "c"}}
    assert not RowNames({}) and RowNames(None) and RowNames({"a": "b"})


@pytest.mark.parametrize("columns", [["a", "b"], ["a"], []])
def test_two_columns_for_one_field_are_refused_with_both_names(columns: list[str]) -> None:
    with pytest.raises(TwinColumns, match="'a' and 'b' would both be read as 'title'"):
        column_mapping(columns, INPUTS, {"a": "title", "b": "title"})


def test_record_loses_no_cell_to_another_of_the_same_field() -> None:
    for named in (RowNames({"a": "title"}), RowNames(None, INPUTS)):
        with pytest.raises(TwinColumns, match="'a' and 'title' would both be read as 'title'"):
            named({"a": 1, "title": 2, NAMES: {"a": "title"}})
    marked = with_names({"a": 1, "title": 2}, {"a": "title"})
    assert marked[BAD_ROW] == "has both 'a' and 'title', which would be read as 'title'"
