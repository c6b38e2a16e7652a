"""Names: cleaned for showing, folded for comparing."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast_linker.names import (
    clean,
    cut,
    fold,
    language_of,
    latin_form,
    likeness,
    spoken_order,
)


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("  Douglas\u00a0 Adams\t", "Douglas Adams"),
        ("Doug\x00las\x07 Adams", "Douglas Adams"),
        ("\u200fעמוס עוז\u202c", "עמוס עוז"),
        ("\u2067محمد\u2069 صلاح", "محمد صلاح"),
        ("Zoe\u0308", "Zo\u00eb"),
        ("line\none\u2028two", "line one two"),
        ("soft\u00adhyphen\ufeff", "softhyphen"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("half \ud800 pair", "half \ufffd pair"),
        ("\u0007\u200e", ""),
    ],
)
def test_clean_keeps_what_people_see_and_nothing_else(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


def test_long_text_is_not_cut_between_a_letter_and_its_marks() -> None:
    text = "a" * 248 + "xq\u0323\u0307" + "b"
    assert cut(text, 250) == "a" * 248 + "x"
    assert cut(text, 252) == "a" * 248 + "xq\u0323\u0307"
    assert cut("short", 250) == "short"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Douglas Adams", "ADAMS, Douglas"),
        ("Jürgen Müller", "Jurgen Muller"),
        ("O'Brien", "O’Brien"),
        ("Siobhán OBrien", "Siobhan O'Brien"),
        ("习近平", "Xi Jinping"),
        ("Никола Тесла", "Nikola Tesla"),
        ("Ｄouglas Adams", "Douglas Adams"),
        ("Jean-Paul Sartre", "Jean Paul Sartre"),
    ],
)
def test_the_same_name_written_otherwise_is_wholly_alike(one: str, other: str) -> None:
    assert likeness(one, other) == 100


@pytest.mark.parametrize(
    ("one", "other"),
    [("Ann", "Ann Arbor"), ("Smith", "John Smith"), ("York", "New York City"), ("", "Anybody")],
)
def test_part_of_a_name_is_not_the_name(one: str, other: str) -> None:
    assert likeness(one, other) < 80


def test_names_that_cannot_be_written_in_latin_are_compared_as_they_are() -> None:
    assert fold("!!!") == ""
    assert likeness("!!!", "!!!") == 100
    assert likeness("!!!", "???") == 0


@settings(deadline=None)
@given(st.text(max_size=40), st.text(max_size=40))
def test_likeness_is_symmetric_and_bounded_for_any_text(one: str, other: str) -> None:
    first, second = clean(one), clean(other)
    assert 0 <= likeness(first, second) == likeness(second, first) <= 100
    assert likeness(first, first) == 100


@pytest.mark.parametrize(
    ("text", "language"),
    [("Никола", "ru"), ("محمد", "ar"), ("渡辺", "zh"), ("渡辺 はる", "ja"), ("Zoë", "de")],
)
def test_language_to_search_in_follows_the_script(text: str, language: str) -> None:
    assert language_of(text, "de") == language


def test_family_name_first_is_turned_and_other_commas_are_left() -> None:
    assert spoken_order("Adams, Douglas") == "Douglas Adams"
    assert spoken_order("Paris, Texas, Film") == "Paris, Texas, Film"
    assert spoken_order("Adams,") == "Adams,"
    assert latin_form("Никола Тесла") == "Nikola Tesla"
