from __future__ import annotations

import datetime
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import openpyxl
import psutil
import pytest
import xlsxwriter
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.columns import BAD_ROW, EXCERPT, LINE
from holdfast.errors import InputError
from holdfast.tables.files import TableFile, TableOptions
from holdfast.tables.records import EXTRA, LONG_ROWS, NO_ROWS
from holdfast.tables.spreadsheet_child import ERROR_CELLS, LONG_NUMBERS
from tests.tables.reading import read, records_of, refusal


@pytest.fixture
def workbook(tmp_path: Path):
    def write(rows, name: str = "book.xlsx", **sheets) -> Path:
        book = openpyxl.Workbook()
        for row in rows:
            book.active.append(row)
        for title, more in sheets.items():
            sheet = book.create_sheet(title)
            for row in more:
                sheet.append(row)
        book.save(tmp_path / name)
        return tmp_path / name

    return write


@pytest.fixture
def rewritten(workbook, tmp_path: Path):
    """A workbook one of whose parts is changed, as no library would write it."""

    def write(part: str, change) -> Path:
        source = workbook([["a", "b"], ["x", "y"]])
        target = tmp_path / "rewritten.xlsx"
        with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", 8) as new:
            for name in old.namelist():
                content = old.read(name)
                new.writestr(name, change(content) if name == part else content)
        return target

    return write


SHEET = "xl/worksheets/sheet1.xml"


def test_cells_become_text(workbook) -> None:
    rows = [
        ["sku", "count", "price", "sold", "day", "at", "time", "note"],
        [
            "00712",
            12,
            1.5,
            True,
            datetime.date(2024, 1, 31),
            datetime.datetime(2024, 1, 31, 10, 5),  # noqa: DTZ001 - workbooks know no zones
            datetime.time(10, 5),
            "two\nlines ",
        ],
        [None, -3, 0.1, False, None, None, None, "12345678901234567890"],
    ]
    with TableFile(workbook(rows)) as file:
        assert records_of(file) == [
            {
                "sku": "00712",
                "count": "12",
                "price": "1.5",
                "sold": "true",
                "day": "2024-01-31",
                "at": "2024-01-31T10:05:00",
                "time": "10:05:00",
                "note": "two\nlines ",
            },
            {
                "sku": "",
                "count": "-3",
                "price": "0.1",
                "sold": "false",
                "day": "",
                "at": "",
                "time": "",
                "note": "12345678901234567890",
            },
        ]
        assert not file.problems
        assert not file.detected.notes


def test_durations_show_hours(workbook) -> None:
    rows = [["span"], [datetime.timedelta(hours=27, minutes=30)]]
    assert read(workbook(rows)) == [{"span": "27:30:00"}]


def test_numbers_beyond_15_digits_are_counted_and_get_no_invented_digits(rewritten) -> None:
    path = rewritten(
        SHEET,
        lambda xml: re.sub(rb'<c r="A2".*?</c>', b'<c r="A2"><v>1234567890123456789</v></c>', xml),
    )
    with TableFile(path) as file:
        assert records_of(file) == [{"a": "1234567890123456800", "b": "y"}]
        assert file.problems == {LONG_NUMBERS: 1}


def test_formulas_are_read_as_their_saved_values(tmp_path: Path) -> None:
    path = tmp_path / "formulas.xlsx"
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, ["a", "b"])
        sheet.write_formula(1, 0, "=1+1", value=2)
        sheet.write_formula(1, 1, '="x"&"y"', value="xy")
    with TableFile(path) as file:
        assert records_of(file) == [{"a": "2", "b": "xy"}]
        assert any("Formulas" in note for note in file.detected.notes)


def test_error_cells_are_read_as_their_text_and_counted(workbook) -> None:
    rows = [[None, None, None], [None, "a", "b"], [None, "#N/A", 1], [None, 2, "#DIV/0!"]]
    with TableFile(workbook(rows)) as file:
        assert records_of(file) == [{"a": "#N/A", "b": "1"}, {"a": "2", "b": "#DIV/0!"}]
        assert file.problems == {ERROR_CELLS: 2}


def test_error_cell_without_a_value_does_not_take_its_neighbours(rewritten) -> None:
    cells = b'<c r="A2" t="e"/><c r="B2"><v>5</v></c>'
    path = rewritten(SHEET, lambda xml: re.sub(rb'<c r="A2".*</c>(?=</row>)', cells, xml))
    assert read(path) == [{"a": "", "b": "5"}]


def test_table_may_stand_anywhere_and_holds_no_blank_rows(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for cell, value in {"C4": "a", "E4": "b", "C6": 1, "E9": 2, "F9": "more"}.items():
        book.active[cell] = value
    book.save(tmp_path / "book.xlsx")
    with TableFile(tmp_path / "book.xlsx") as file:
        assert file.detected.columns == ("a", "column_2", "b")
        assert records_of(file) == [
            {"a": "1", "column_2": "", "b": ""},
            {"a": "", "column_2": "", "b": "2", EXTRA: ["more"]},
        ]
        assert file.problems == {LONG_ROWS: 1}


def test_first_visible_sheet_is_read_unless_one_is_named(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.active.title, book.active.sheet_state = "Hidden", "hidden"
    book.active.append(["h"])
    for title in ("Shown", "Other"):
        sheet = book.create_sheet(title)
        sheet.append(["name"])
        sheet.append([title])
    book.active = 1
    path = tmp_path / "book.xlsx"
    book.save(path)
    with TableFile(path) as file:
        assert file.detected.sheet == "Shown"
        assert "'Hidden', 'Other'" in file.detected.notes[0]
    assert read(path, sheet="Other") == [{"name": "Other"}]
    error = refusal(path, sheet="Prices")
    assert "'Prices'" in error.message
    assert "'Hidden', 'Shown', 'Other'" in error.hint


def test_workbook_is_recognised_whatever_its_name(workbook) -> None:
    with TableFile(workbook([["a"], [1]], name="table.csv")) as file:
        assert file.detected.format == "xlsx"
        assert "Despite its name" in file.detected.notes[0]


def test_empty_sheet_and_header_alone(workbook) -> None:
    assert "is empty" in refusal(workbook([])).message
    with TableFile(workbook([["a", "b"]])) as file:
        assert NO_ROWS in file.detected.notes
        assert [(page.inputs, page.end) for page in file.pages(0, lambda: 5, 10**6)] == [([], True)]


@pytest.mark.parametrize("cursor", [0, 1, 499, 500, 501, 1_200])
def test_reading_from_a_cursor_gives_exactly_the_rest(workbook, cursor: int) -> None:
    rows = [[n, f"text {n}"] for n in range(1_200)]
    with TableFile(workbook([["n", "text"], *rows])) as file:
        for _ in range(2):
            found = records_of(file, cursor, page_rows=333)
            assert found == [{"n": str(n), "text": text} for n, text in rows[cursor:]]


def test_one_far_cell_is_named_and_harms_nothing_else(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.active["A1"], book.active["XFD1048576"] = "a", "far"
    book.save(tmp_path / "far.xlsx")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    error = refusal(tmp_path / "far.xlsx")
    assert "XFD1048576" in error.message
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


def test_child_keeps_to_its_memory_limit(tmp_path: Path) -> None:
    """The grid would take about a gigabyte, which the machine could well give."""
    book = openpyxl.Workbook()
    book.active["A1"], book.active["BXX20000"] = "a", "far"
    book.save(tmp_path / "far.xlsx")
    error = refusal(tmp_path / "far.xlsx", max_workbook_bytes=300_000_000)
    assert "more than 300,000,000 bytes of memory" in error.message
    assert "BXX20000" in error.message


def test_zip_bomb_is_refused_unread(rewritten) -> None:
    path = rewritten(SHEET, lambda xml: xml + b" " * 50_000_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    error = refusal(path)
    assert SHEET in error.message
    assert "50,00" in error.message
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000


def test_zip_that_lies_about_its_sizes_is_refused(rewritten) -> None:
    path = rewritten(SHEET, lambda xml: xml + b" " * 50_000_000)
    with zipfile.ZipFile(path) as archive:
        size = archive.getinfo(SHEET).file_size
    content = path.read_bytes()
    assert content.count(struct.pack("<I", size)) == 2
    path.write_bytes(content.replace(struct.pack("<I", size), struct.pack("<I", 1000)))
    assert "damaged" in refusal(path).message


def test_many_honest_bytes_are_refused_above_the_limit(workbook) -> None:
    path = workbook([["a"], *[[os.urandom(20).hex()] for _ in range(500)]])
    assert "unpacks to" in refusal(path, max_workbook_bytes=10_000).message


def test_other_zips_and_damaged_ones_are_refused(workbook, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "docs.zip", "w") as archive:
        archive.writestr("readme.txt", "hello")
        archive.writestr("more.txt", "hello")
    assert "2 files, not one table: readme.txt, more.txt" in refusal(tmp_path / "docs.zip").message
    whole = workbook([["a"], [1]])
    (tmp_path / "cut.xlsx").write_bytes(whole.read_bytes()[:2000])
    assert "damaged" in refusal(tmp_path / "cut.xlsx").message


def test_broken_xml_is_refused(rewritten) -> None:
    assert "damaged" in refusal(rewritten("xl/workbook.xml", lambda xml: xml[:200])).message


def test_nul_character_makes_a_bad_row(workbook) -> None:
    _, bad, last = read(workbook([["a"], ["x"], ["_x0000_"], ["y"]]))
    assert bad == {BAD_ROW: "holds a NUL character", LINE: 3, EXCERPT: "\\x00"}
    assert last == {"a": "y"}


def test_large_row_is_a_bad_row(tmp_path: Path) -> None:
    with xlsxwriter.Workbook(tmp_path / "wide.xlsx") as book:
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, ["a", "b"])
        sheet.write_row(1, 0, ["x" * 30_000, "y" * 30_000])
    (row,) = read(tmp_path / "wide.xlsx", max_row_bytes=50_000)
    assert row[BAD_ROW] == "is larger than 50,000 bytes"
    assert row[LINE] == 2
    (row,) = read(tmp_path / "wide.xlsx", max_cell_bytes=20_000)
    assert "20,000 bytes ('a')" in row[BAD_ROW]


def child_of_this_process() -> psutil.Process:
    children = psutil.Process().children()
    (child,) = [each for each in children if "spreadsheet_child" in " ".join(each.cmdline())]
    return child


def long_workbook(workbook) -> Path:
    return workbook([["n", "text"], *[[n, "x" * 500] for n in range(3_000)]])


def test_child_that_is_killed_is_an_error_and_no_hang(workbook) -> None:
    with TableFile(long_workbook(workbook)) as file:
        pages = file.pages(0, lambda: 10, 1_000_000)
        next(pages)
        child_of_this_process().send_signal(signal.SIGKILL)
        with pytest.raises(InputError, match="reading process failed"):
            list(pages)
        assert len(records_of(file)) == 3_000


def test_no_child_outlives_its_reading(workbook) -> None:
    path = long_workbook(workbook)
    file = TableFile(path)
    waiting = child_of_this_process()
    file.close()
    assert not waiting.is_running()
    file = TableFile(path)
    pages = file.pages(0, lambda: 10, 1_000_000)
    next(pages)
    reading = child_of_this_process()
    pages.close()
    assert not reading.is_running()
    file = TableFile(path)
    forgotten = child_of_this_process()
    del file
    assert not forgotten.is_running()


def test_child_ends_when_its_parent_is_killed(workbook) -> None:
    program = (
        "import sys, psutil; from pathlib import Path\n"
        "from holdfast.tables.files import TableFile\n"
        "file = TableFile(Path(sys.argv[1]))\n"
        "print(psutil.Process().children()[0].pid, flush=True)\n"
        "sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", program, str(long_workbook(workbook))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        child = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
    psutil.wait_procs([child], timeout=20)
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


def test_reading_works_from_a_folder_with_modules_of_standard_names(
    workbook, tmp_path: Path, monkeypatch
) -> None:
    path = shutil.copy(workbook([["a"], [1]]), tmp_path / "here.xlsx")
    (tmp_path / "struct.py").write_text("raise RuntimeError('wrong module')\n")
    monkeypatch.chdir(tmp_path)
    assert read(Path(path)) == [{"a": "1"}]


VALUE = st.one_of(
    st.integers(-(10**14), 10**14),
    st.floats(-1e9, 1e9).map(lambda number: round(number, 6)),
    st.booleans(),
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn"]), min_size=1),
)


def expected_text(value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value == int(value) else repr(value)
    return str(value)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(rows=st.lists(st.lists(VALUE, min_size=3, max_size=3), min_size=1, max_size=12))
def test_random_workbooks_come_back_equal(tmp_path_factory, rows) -> None:
    path = tmp_path_factory.getbasetemp() / "random.xlsx"
    writing = {"strings_to_urls": False, "strings_to_formulas": False}
    with xlsxwriter.Workbook(path, writing) as book:
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, ["a", "b", "c"])
        for number, row in enumerate(rows, start=1):
            for column, value in enumerate(row):
                if isinstance(value, str):
                    sheet.write_string(number, column, value)
                else:
                    sheet.write(number, column, value)
    with TableFile(path, TableOptions(sheet="Sheet1")) as file:
        assert [list(record.values()) for record in records_of(file)] == [
            [expected_text(value) for value in row] for row in rows
        ]
