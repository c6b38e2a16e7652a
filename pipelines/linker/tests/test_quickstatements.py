"""QuickStatements: lines that the tool takes, and nothing that was guessed."""

from __future__ import annotations

import pytest

from holdfast_linker.entries import ColumnMapping, Entry, read_entry
from holdfast_linker.quickstatements import Link, Style, statements

MAPPING = ColumnMapping(
    name="name",
    aliases=("also",),
    type="type",
    dates={"born": "P569"},
    identifiers={"viaf": "P214"},
    properties={"job": "P106", "size": "P2048", "title": "P1476", "place": "P625"},
)
STYLE = Style(
    datatypes={
        "P106": "wikibase-item",
        "P2048": "quantity",
        "P1476": "monolingualtext",
        "P625": "globe-coordinate",
    }
)


def _entry(**row: str) -> Entry:
    return read_entry(row, MAPPING, 1)


def _lines(link: Link, style: Style = STYLE) -> list[str]:
    return list(statements([link], style))


def test_values_are_written_by_their_datatype() -> None:
    entry = _entry(
        name="Douglas Adams",
        born="1952-03-11",
        viaf="113230702",
        job="Q36180|comedian",
        size="1.96",
        title='The "Guide"',
        place="52.2, 0.12",
    )
    assert _lines(Link(entry, "Q42")) == [
        'Q42\tP214\t"113230702"',
        "Q42\tP569\t+1952-03-11T00:00:00Z/11",
        "Q42\tP106\tQ36180",
        "Q42\tP2048\t1.96",
        'Q42\tP1476\ten:"The "Guide""',
        "Q42\tP625\t@52.2/0.12",
    ]


@pytest.mark.parametrize(
    ("born", "value"),
    [
        ("1952", "+1952-00-00T00:00:00Z/9"),
        ("March 1952", "+1952-03-00T00:00:00Z/10"),
        ("1950s", "+1950-00-00T00:00:00Z/8"),
        ("44 BC", "-0044-00-00T00:00:00Z/9"),
    ],
)
def test_dates_carry_their_precision(born: str, value: str) -> None:
    assert _lines(Link(_entry(name="x", born=born), "Q1")) == [f"Q1\tP569\t{value}"]


@pytest.mark.parametrize("born", ["1952-02-30", "3/4/1952", "c. 1952", "soon"])
def test_guessed_dates_are_left_out(born: str) -> None:
    assert _lines(Link(_entry(name="x", born=born), "Q1")) == []


def test_new_item_is_created_with_its_names_and_sources() -> None:
    style = Style("de", stated_in="Q36578", reference_url="https://a.example/x")
    entry = _entry(name="Neue\tPerson", also="N. P.", type="Q5", viaf="7")
    source = 'S248\tQ36578\tS854\t"https://a.example/x"'
    assert _lines(Link(entry, None), style) == [
        "CREATE",
        'LAST\tLde\t"Neue Person"',
        'LAST\tAde\t"N. P."',
        f"LAST\tP31\tQ5\t{source}",
        f'LAST\tP214\t"7"\t{source}',
    ]


def test_no_value_can_break_its_line() -> None:
    entry = _entry(name="x", viaf="7\tQ1\tP31\r\u2028CREATE")
    (line,) = _lines(Link(entry, "Q42"))
    assert line == 'Q42\tP214\t"7 Q1 P31 CREATE"'
    for item_id in ("Q42\nCREATE", "LAST", "42"):
        assert _lines(Link(entry, item_id)) == [], "the id of another service"


@pytest.mark.parametrize("style", [{"language": 'en"'}, {"stated_in": "the register"}])
def test_style_is_checked(style: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="is not"):
        Style(**style)


@pytest.mark.parametrize("size", ["1e999999999", "-1e300000000", "1e-300000000", "1e51", "nan"])
def test_number_that_would_be_endless_is_left_out(size: str) -> None:
    entry = _entry(name="Douglas Adams", size=size)
    assert "P2048" not in "".join(_lines(Link(entry, "Q42")))
