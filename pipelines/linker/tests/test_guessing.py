"""Columns are recognized by their whole names."""

from __future__ import annotations

from holdfast_linker.guessing import guess_mapping, mapping_sentences


def test_columns_are_recognized_by_whole_names_and_property_ids() -> None:
    mapping = guess_mapping(
        ["ID", "Full_Name", "Birth date", "VIAF", "Employer (P108)", "P570", "birthplace", ""]
    )
    assert mapping is not None
    assert mapping.to_json() == {
        "id": "ID",
        "name": "Full_Name",
        "dates": {"Birth date": "P569", "P570": "P570"},
        "identifiers": {"VIAF": "P214"},
        "properties": {"Employer (P108)": "P108"},
    }
    assert "identifier P214: VIAF" in mapping_sentences(mapping)


def test_table_without_names_or_identifiers_is_not_guessed_at() -> None:
    assert guess_mapping(["birthname", "year"]) is None
