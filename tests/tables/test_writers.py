from __future__ import annotations

import csv
import datetime
import os
import re
import subprocess
import sys
from pathlib import Path

import openpyxl
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.errors import UserError
from holdfast.tables.files import TableFile
from holdfast.tables.writers import (
    CELL_CHARACTERS,
    CUT_MARK,
    FORMATS,
    XlsxWriter,
    format_of,
    open_writer,
)


def export(path: Path, rows, columns=None, format: str | None = None) -> list[str]:
    columns = columns or list(rows[0])
    with open_writer(path, format_of(path, format), columns) as writer:
        for row in rows:
            writer.write([row])
    return writer.notes


def csv_rows(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def xlsx_rows(path: Path, sheet: str = "Results") -> list[list[object]]:
    book = openpyxl.load_workbook(path)
    return [[cell.value for cell in row] for row in book[sheet].iter_rows()]


def test_format_is_given_by_name_or_by_option() -> None:
    assert [format_of(Path(f"a.{end}"), None) for end in ("csv", "XLSX", "jsonl", "ndjson")] == [
        "csv",
        "xlsx",
        "jsonl",
        "jsonl",
    ]
    assert format_of(Path("a.txt"), "csv") == "csv"
    with pytest.raises(UserError, match="which format"):
        format_of(Path("a.txt"), None)
    with pytest.raises(UserError, match="no export format 'pdf'"):
        format_of(Path("a.csv"), "pdf")


@pytest.mark.parametrize(
    "start", ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠", "\ufeff"]
)
def test_csv_cells_that_look_like_formulas_are_neutralised(tmp_path: Path, start: str) -> None:
    path = tmp_path / "out.csv"
    export(path, [{"a": f"{start}cmd|' /C calc'!A0", start: "x"}])
    header, row = csv_rows(path)
    assert header == ["a", f"'{start}"]
    assert row == [f"'{start}cmd|' /C calc'!A0", "x"]


@pytest.mark.parametrize("number", ["-1.50", "+3", "-1,50", "-1e-5", "-12", "-1.234.567,89"])
def test_csv_leaves_text_that_is_a_number_alone(tmp_path: Path, number: str) -> None:
    export(tmp_path / "out.csv", [{"a": number}])
    assert csv_rows(tmp_path / "out.csv")[1] == [number]


@pytest.mark.parametrize("text", ["-1+1", "+49 30 123", "-", "--1", "-1\n", "-٣", "+1-HYPERLINK()"])
def test_csv_neutralises_what_only_begins_like_a_number(tmp_path: Path, text: str) -> None:
    export(tmp_path / "out.csv", [{"a": text}])
    assert csv_rows(tmp_path / "out.csv")[1] == [f"'{text}"]


def test_csv_writes_each_kind_of_value(tmp_path: Path) -> None:
    row = {
        "text": 'say "hi",\r\nthen; go',
        "lone": "a\rb",
        "whole": -12345678901234567890,
        "part": -1.5,
        "yes": True,
        "no": False,
        "none": None,
        "nested": {"a": [1, None, "ä"]},
        "list": [],
        "day": datetime.date(2024, 1, 31),
    }
    path = tmp_path / "out.csv"
    export(path, [row], [*row, "missing"])
    assert csv_rows(path)[1] == [
        'say "hi",\r\nthen; go',
        "a\rb",
        "-12345678901234567890",
        "-1.5",
        "true",
        "false",
        "",
        '{"a":[1,null,"ä"]}',
        "[]",
        "2024-01-31",
        "",
    ]
    assert not path.read_bytes().startswith(b"\xef\xbb\xbf")


@pytest.mark.parametrize("separator", [";", "\t", "\n", "\r"])
@pytest.mark.parametrize("before", ["", "x", 'x"'])
@pytest.mark.parametrize("start", ["=", "+", "-", "@", "＝", '"=', '""@'])
def test_csv_cells_hold_no_formula_for_programs_that_separate_otherwise(
    tmp_path: Path, separator: str, before: str, start: str
) -> None:
    path = tmp_path / "out.csv"
    text = f"a{separator}{start}1+1|cmd"
    export(path, [{"first": before, "second": text, "third": text}])
    assert csv_rows(path)[1][1].replace("'", "") == text
    assert formulas_in(path) == []


def test_csv_leaves_separators_and_numbers_within_cells_alone(tmp_path: Path) -> None:
    cells = ["a; b", "1;-5;+3,5", "x\ty", "one\ntwo", "-1;-2", 'say "a;b"']
    export(tmp_path / "out.csv", [{str(n): cell for n, cell in enumerate(cells)}])
    assert csv_rows(tmp_path / "out.csv")[1] == [
        "a; b", "1;-5;'+3,5", "x\ty", "one\ntwo", "'-1;'-2", 'say "a;b"',
    ]  # fmt: skip


def test_csv_cell_makes_no_formula_with_the_one_after_it(tmp_path: Path) -> None:
    """A comma is a decimal comma where semicolons separate: what follows it is the same cell."""
    export(tmp_path / "out.csv", [{"title": "a;-2", "brand": "5+WEBSERVICE(A1&B1)"}])
    assert (tmp_path / "out.csv").read_text().splitlines()[1] == "a;'-2,5+WEBSERVICE(A1&B1)"


def formulas_in(path: Path) -> list[str]:
    """Cells that begin as a formula does, read as spreadsheets in all countries would."""
    with path.open(encoding="utf-8", newline="") as file:
        lines = list(file)
    cells = [
        cell
        for delimiter in ",;\t"
        for row in csv.reader(lines, delimiter=delimiter)
        for cell in row
    ]
    return [cell for cell in cells if cell.startswith(tuple("=+-@＝＋－＠")) and cell != "-"]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(rows=st.lists(st.tuples(st.text(), st.text()), max_size=10))
def test_csv_of_random_text_comes_back_but_for_added_marks(tmp_path_factory, rows) -> None:
    path = tmp_path_factory.getbasetemp() / "random.csv"
    export(path, [{"a": a, "b": b} for a, b in rows], ["a", "b"])
    found = csv_rows(path)[1:]
    assert [[cell.replace("'", "") for cell in cells] for cells in found] == [
        [cell.replace("'", "") for cell in cells] for cells in rows
    ]


DANGEROUS = st.text('a1,;\t\r\n"=+-@ ', max_size=12)


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(rows=st.lists(st.tuples(DANGEROUS, DANGEROUS), min_size=1, max_size=4))
def test_csv_of_dangerous_text_comes_back_and_holds_no_formula(tmp_path_factory, rows) -> None:
    path = tmp_path_factory.getbasetemp() / "dangerous.csv"
    export(path, [{"a": a, "b": b} for a, b in rows], ["a", "b"])
    found = csv_rows(path)[1:]
    assert [[cell.replace("'", "") for cell in cells] for cells in found] == [list(r) for r in rows]
    numbers = re.compile(r"[+-]?\d+(?:[.,]\d+)*")
    assert [cell for cell in formulas_in(path) if not numbers.match(cell)] == []


def test_jsonl_keeps_values_as_they_are(tmp_path: Path) -> None:
    row = {"a": "=1+1", "b": -1.5, "c": None, "d": {"x": [True]}, "e": 1234567890123456789}
    path = tmp_path / "out.jsonl"
    export(path, [row, {"a": "ä"}], list(row))
    first, second = path.read_bytes().splitlines()
    assert orjson.loads(first) == row
    assert orjson.loads(second) == dict.fromkeys(row) | {"a": "ä"}


def test_json_is_one_array(tmp_path: Path) -> None:
    rows = [{"a": "=1+1", "b": None}, {"a": "ä", "b": [1.5]}]
    export(tmp_path / "out.json", rows, ["a", "b"])
    assert orjson.loads((tmp_path / "out.json").read_bytes()) == rows


def test_xlsx_keeps_text_as_text_and_numbers_as_numbers(tmp_path: Path) -> None:
    row = {
        "formula": "=1+1",
        "url": "https://shop.example/",
        "sku": "00712",
        "price": -1.5,
        "count": 999_999_999_999_999,
        "long": 1234567890123456789,
        "yes": True,
        "none": None,
        "nested": {"a": 1},
        "infinite": float("inf"),
        "spaces": "  x  ",
        "markup": "<r>&<t>x</t></r>",
    }
    path = tmp_path / "out.xlsx"
    assert export(path, [row]) == []
    sheet = openpyxl.load_workbook(path)["Results"]
    header, cells = sheet.iter_rows()
    assert [cell.value for cell in header] == list(row)
    kinds = {key: (cell.value, cell.data_type) for key, cell in zip(row, cells, strict=True)}
    assert kinds == {
        "formula": ("=1+1", "s"),
        "url": ("https://shop.example/", "s"),
        "sku": ("00712", "s"),
        "price": (-1.5, "n"),
        "count": (999_999_999_999_999, "n"),
        "long": ("1234567890123456789", "s"),
        "yes": (True, "b"),
        "none": (None, "n"),
        "nested": ('{"a":1}', "s"),
        "infinite": ("inf", "s"),
        "spaces": ("  x  ", "s"),
        "markup": ("<r>&<t>x</t></r> ", "s"),
    }
    assert not cells[1].hyperlink


def test_xlsx_control_characters_and_their_escapes_come_back(tmp_path: Path) -> None:
    path = tmp_path / "out.xlsx"
    texts = ["bell\x07", "_x0041_ literal", "tab\tline\n", "lone \ud800 half"]
    export(path, [{"a": text} for text in texts])
    with TableFile(path) as file:
        (page,) = file.pages(0, lambda: 10, 10_000)
    found = [orjson.loads(text)["a"] for text in page.inputs]
    assert found == [*texts[:3], "lone ? half"]


@pytest.mark.parametrize("letter", ["x", "ä", "😀"])
def test_xlsx_cuts_cells_that_are_too_long_and_says_so(tmp_path: Path, letter: str) -> None:
    units = len(letter.encode("utf-16-le")) // 2
    fits = letter * (CELL_CHARACTERS // units)
    path = tmp_path / "out.xlsx"
    (note,) = export(path, [{"a": fits}, {"a": fits + "yy"}, {"a": fits * 2}])
    assert note.startswith("2 cells")
    whole, cut, _ = (row[0] for row in xlsx_rows(path)[1:])
    assert whole == fits
    assert cut.startswith(letter * 1000)
    assert cut.endswith(CUT_MARK)
    assert CELL_CHARACTERS - 2 <= len(cut.encode("utf-16-le")) // 2 <= CELL_CHARACTERS


def test_xlsx_continues_in_another_sheet(tmp_path: Path) -> None:
    path = tmp_path / "out.xlsx"
    writer = XlsxWriter(path, ["n"], rows_per_sheet=3)
    writer.write([{"n": n} for n in range(7)])
    writer.close()
    assert openpyxl.load_workbook(path).sheetnames == ["Results", "Results 2", "Results 3"]
    assert xlsx_rows(path) == [["n"], [0], [1], [2]]
    assert xlsx_rows(path, "Results 2") == [["n"], [3], [4], [5]]
    assert xlsx_rows(path, "Results 3") == [["n"], [6]]
    assert writer.notes == ["The rows fill 3 sheets."]


@pytest.mark.parametrize("format", FORMATS)
def test_no_rows_make_a_file_with_a_header(tmp_path: Path, format: str) -> None:
    path = tmp_path / f"out.{format}"
    with open_writer(path, format, ["a", "b"]) as writer:
        writer.write([])
    if format == "csv":
        assert path.read_bytes() == b"a,b\r\n"
    elif format == "xlsx":
        assert xlsx_rows(path) == [["a", "b"]]
    else:
        assert path.read_bytes() == (b"[]\n" if format == "json" else b"")


@pytest.mark.parametrize("format", FORMATS)
def test_failed_export_leaves_the_old_file_and_nothing_else(tmp_path: Path, format: str) -> None:
    path = tmp_path / f"out.{format}"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), open_writer(path, format, ["a"]) as writer:
        writer.write([{"a": 1}])
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("format", FORMATS)
def test_successful_export_replaces_the_old_file(tmp_path: Path, format: str) -> None:
    path = tmp_path / f"out.{format}"
    path.write_text("old")
    with open_writer(path, format, ["a"]) as writer:
        writer.write([{"a": 1}])
        assert path.read_text() == "old"
    assert path.read_bytes() != b"old"
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("format", FORMATS)
def test_full_disk_is_a_clear_error(tmp_path: Path, format: str) -> None:
    """A file-size limit simulates a full disk: the write fails in the same place."""
    program = (
        "import resource, signal, sys; from pathlib import Path\n"
        "from holdfast.errors import UserError; from holdfast.tables.writers import open_writer\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "try:\n"
        "    with open_writer(Path(sys.argv[1]), sys.argv[2], ['a']) as writer:\n"
        "        for n in range(200): writer.write([{'a': 'x' * 1000 + str(n)}] * 10)\n"
        "except UserError as error: print(error, error.hint)\n"
    )
    path = tmp_path / f"out.{format}"
    command = [sys.executable, "-W", "error", "-c", program, str(path), format]
    done = subprocess.run(command, capture_output=True, text=True)
    assert f"out.{format} cannot be written: File too large." in done.stdout
    assert done.stderr == ""
    assert os.listdir(tmp_path) == []


def test_folder_and_missing_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is a folder"), open_writer(tmp_path, "csv", ["a"]):
        pass
    missing = tmp_path / "none" / "out.csv"
    with pytest.raises(UserError, match="cannot be written"), open_writer(missing, "csv", ["a"]):
        pass


def test_caller_own_errors_pass_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    with pytest.raises(ConnectionError), open_writer(path, "csv", ["a"]):
        raise ConnectionError("the database is gone")
    assert os.listdir(tmp_path) == []
