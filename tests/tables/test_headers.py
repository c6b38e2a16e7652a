"""Which row is the header: found where the rows show it, assumed otherwise, never silently."""

from __future__ import annotations

from pathlib import Path

import pytest
import xlsxwriter

from holdfast.tables.files import TableFile, TableOptions
from holdfast.tables.plan import header_words, read_as
from tests.tables.header_corpus import HEADER_ROWS, HEADERS, NO_HEADERS, TITLES, UNDECIDED
from tests.tables.reading import read, records_of, refusal


@pytest.fixture
def table(tmp_path: Path):
    def make(text: str, name: str = "table.csv") -> Path:
        path = tmp_path / name
        path.write_text(text, newline="")
        return path

    return make


def header_of(path: Path) -> tuple[int | None, str]:
    with TableFile(path) as file:
        return file.detected.header_row, file.detected.header_reason


@pytest.mark.parametrize("name", HEADERS)
def test_normal_file_keeps_its_header(table, name: str) -> None:
    row, _ = header_of(table(HEADERS[name]))
    assert row == HEADER_ROWS.get(name, 1)


@pytest.mark.parametrize("name", NO_HEADERS)
def test_first_row_that_is_like_the_others_is_data(table, name: str) -> None:
    path = table(NO_HEADERS[name])
    assert header_of(path) == (0, "found")
    rows = read(path)
    assert len(rows) == NO_HEADERS[name].count("\n")
    assert "column_1" in rows[0]


@pytest.mark.parametrize("name", TITLES)
def test_titles_above_the_header_are_left_out(table, name: str) -> None:
    text, row = TITLES[name]
    path = table(text)
    assert header_of(path) == (row, "found")
    header = text.splitlines()[row - 1]
    assert len(read(path)) == len(text.splitlines()) - row
    assert "".join(read(path)[0]) == "".join(c for c in header if c not in ",;\t")


@pytest.mark.parametrize("name", UNDECIDED)
def test_without_evidence_the_first_row_is_assumed_to_be_the_header(table, name: str) -> None:
    path = table(UNDECIDED[name])
    assert header_of(path) == (1, "assumed")
    with TableFile(path) as file:
        assert header_words(file.detected) == "header in row 1 (assumed)"
    with TableFile(path, TableOptions(header_row=0)) as file:
        assert len(records_of(file)) == 3
        assert header_words(file.detected) == "no header (as given)"


def test_what_was_found_is_said(table) -> None:
    with TableFile(table("Lamp,12.50\nDesk,99.00\n")) as file:
        first, note = read_as(file.detected, {})
        assert first == "CSV, utf-8, delimiter ',', no header, 2 columns"
        assert "The first row is data" in note
        assert "column_1 to column_2" in note
    with TableFile(table("Sales\nsku,price\n1,2\n3,4\n")) as file:
        assert any("Row 2 is the header" in note for note in file.detected.notes)


def test_short_header_over_wider_rows_is_said(table) -> None:
    with TableFile(table("text\nred, green\nup, down\n")) as file:
        assert file.detected.header_row == 1
        assert any("set the header row" in note for note in file.detected.notes)


SECOND = "looks like the header of a second table"


def notes_of(path: Path) -> str:
    with TableFile(path) as file:
        return " ".join(file.detected.notes)


def test_second_table_below_the_first_is_said(table, tmp_path: Path) -> None:
    first = "#,title,brand,price\n1,Lamp,Acme,12\n2,Desk,Bolt,99\n"
    text = f"{first}\nName,Phone,,\nAnn,555,,\nBob,556,,\n"
    path = table(text)
    assert f"The row 'Name, Phone' {SECOND}" in notes_of(path)
    assert len(read(path)) == 5  # nothing is left out
    workbook = xlsxwriter.Workbook(tmp_path / "two.xlsx")
    sheet = workbook.add_worksheet()
    for number, line in enumerate(text.split("\n")):
        sheet.write_row(number, 0, line.split(","))
    workbook.close()
    assert SECOND in notes_of(tmp_path / "two.xlsx")


@pytest.mark.parametrize(
    "text",
    [
        *HEADERS.values(),
        "sku,title,brand\n1,Lamp,Acme\nABC,Chair,Bolt\n3,Desk,Acme\n",
        "title,price,note\nLamp,12,\nDesk,,old\nSofa,,\n",
    ],
)
def test_one_table_is_not_taken_for_two(table, text: str) -> None:
    assert SECOND not in notes_of(table(text))


def test_header_row_can_be_given(table) -> None:
    path = table("made by,Ann\n,\nname,age\nBob,31\n")
    assert read(path, header_row=3) == [{"name": "Bob", "age": "31"}]
    assert "no row 9" in refusal(path, header_row=9).message


def test_no_header_can_be_given(table) -> None:
    path = table("name,age\nBob,31\n")
    assert read(path, header_row=0) == [
        {"column_1": "name", "column_2": "age"},
        {"column_1": "Bob", "column_2": "31"},
    ]


@pytest.mark.parametrize("cursor", range(4))
def test_reading_without_a_header_continues_at_a_cursor(table, cursor: int) -> None:
    with TableFile(table("Lamp,12.50\nDesk,99.00\nSofa,310.00\n")) as file:
        everything = records_of(file)
        assert len(everything) == 3
        assert records_of(file, cursor) == everything[cursor:]


def test_workbooks_are_judged_alike(tmp_path: Path) -> None:
    def workbook(name: str, rows: list[list[object]]) -> Path:
        path = tmp_path / name
        with xlsxwriter.Workbook(path) as book:
            sheet = book.add_worksheet()
            for number, row in enumerate(rows):
                sheet.write_row(number, 0, row)
        return path

    plain = workbook("plain.xlsx", [["sku", "price"], ["a", 1.5], ["b", 2.5]])
    bare = workbook("bare.xlsx", [["a", 1.5], ["b", 2.5], ["c", 0.5]])
    titled = workbook("titled.xlsx", [["Sales"], ["sku", "price"], ["a", 1.5], ["b", 2.5]])
    assert (
        read(plain) == read(titled) == [{"sku": "a", "price": "1.5"}, {"sku": "b", "price": "2.5"}]
    )
    assert header_of(titled) == (2, "found")
    assert header_of(bare) == (0, "found")
    assert len(read(bare)) == 3
    assert read(plain, header_row=0)[0] == {"column_1": "sku", "column_2": "price"}
    assert "no row 7" in refusal(plain, header_row=7).message
    with TableFile(bare) as file:
        assert records_of(file, 1) == read(bare)[1:]
        assert records_of(file) == read(bare)
