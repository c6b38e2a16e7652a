"""Entries: the mapping is checked before any row; no cell makes a row fail."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import InputError
from holdfast_linker.entries import (
    ColumnMapping,
    Entry,
    read_entry,
    read_mapping,
)

COLUMNS = ["id", "Name", "Also", "Kind", "Born", "VIAF", "Job"]
MAPPING = ColumnMapping(
    name="Name",
    id="id",
    aliases=("Also",),
    type="Kind",
    types={"person": "Q5"},
    dates={"Born": "P569"},
    identifiers={"VIAF": "P214"},
    properties={"Job": "P106"},
)


def _codes(entry: Entry) -> list[str]:
    return [problem.code for problem in entry.problems]


def test_mapping_is_read_as_given() -> None:
    options = {
        "name": "Name",
        "id": "id",
        "aliases": "Also",
        "type": "Kind",
        "types": {"Person": "http://www.wikidata.org/entity/Q5"},
        "dates": {"Born": "P569"},
        "identifiers": {"VIAF": "P214"},
    }
    mapping = read_mapping(options, COLUMNS)
    assert mapping.property_ids == ["P214", "P569"]
    assert read_entry({"Name": "x", "Kind": "PERSON"}, mapping, 1).type == "Q5"


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"name": "name"}, "the table has no column 'name'"),
        ({"name": "Name", "dates": {"Born": "569"}}, "'569', for column 'Born', is not a property"),
        ({"name": "Name", "properties": {"Job": "Q5"}}, "is not a property id"),
        ({"name": "Name", "dates": ["Born"]}, "map texts to ids"),
        ({"name": "Name", "aliases": ["Name"]}, "'Name' is mapped twice"),
        ({"name": "Name", "label": "Also"}, "a mapping has no part 'label'"),
        ({"name": ["Name"]}, "must be the name of one column"),
        ({"aliases": [1], "name": "Name"}, "must be names of columns"),
        ({"name": "Name", "types": {"person": "human"}}, "is not an item id"),
        ({"dates": {"Born": "P569"}}, "names neither a column with names"),
    ],
)
def test_wrong_mapping_is_refused_before_any_row(options: Any, complaint: str) -> None:
    with pytest.raises(InputError) as raised:
        read_mapping(options, COLUMNS)
    assert complaint in raised.value.message


def test_row_becomes_an_entry() -> None:
    row = {
        "id": 17.0,
        "Name": " Douglas\u00a0Adams\x00",
        "Also": "Douglas Noel Adams; DNA|Douglas Adams",
        "Kind": "Q5",
        "Born": "1952-03-11",
        "VIAF": "113230702",
        "Job": ["Q36180", "comedian"],
    }
    entry = read_entry(row, MAPPING, 1)
    assert (entry.key, entry.name, entry.type) == ("17", "Douglas Adams", "Q5")
    assert entry.aliases == ("Douglas Noel Adams", "DNA")
    assert str(entry.dates[0].date) == "1952-03-11"
    assert [given.text for given in entry.properties] == ["Q36180", "comedian"]
    assert entry.problems == ()


def test_row_without_a_name_can_still_be_found_by_its_identifier() -> None:
    entry = read_entry({"id": "1", "VIAF": "113230702"}, MAPPING, 1)
    assert entry.searchable
    assert _codes(entry) == ["NAME_MISSING"]
    assert not read_entry({"id": "2", "Name": "\u200e \x07"}, MAPPING, 2).searchable


def test_name_that_is_too_long_is_cut_and_says_so() -> None:
    entry = read_entry({"id": "1", "Name": "é" * 10_000}, MAPPING, 1)
    assert entry.name == "é" * 250
    assert not entry.name_is_whole
    assert _codes(entry) == ["NAME_CUT"]


def test_date_that_does_not_exist_leaves_its_year_in_doubt() -> None:
    entry = read_entry({"id": "1", "Name": "x", "Born": "1952-02-30"}, MAPPING, 1)
    assert _codes(entry) == ["DATE_DOES_NOT_EXIST"]
    assert (str(entry.dates[0].date), entry.dates[0].doubtful) == ("1952", True)


def test_unknown_type_and_overlong_values_are_left_out_and_named() -> None:
    row = {"Name": "x", "Kind": "alien", "Job": "j" * 2000, "VIAF": "|".join(map(str, range(99)))}
    entry = read_entry(row, MAPPING, 3)
    assert entry.key == "row 3"
    assert (entry.type, entry.properties, len(entry.identifiers)) == (None, (), 50)
    assert sorted(_codes(entry)) == [
        "ID_MISSING",
        "TOO_MANY_VALUES",
        "TYPE_UNKNOWN",
        "VALUE_TOO_LONG",
    ]


_CELLS = st.one_of(
    st.none(),
    st.text(max_size=60),
    st.integers(),
    st.floats(),
    st.booleans(),
    st.lists(st.one_of(st.text(max_size=20), st.integers(), st.none()), max_size=4),
    st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2),
)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(COLUMNS), _CELLS))
def test_no_cell_makes_a_row_fail(row: dict[str, Any]) -> None:
    entry = read_entry(row, MAPPING, 1)
    assert entry.key
    assert len(entry.name) <= 250
