"""Bad input through the real command: a clear message, the right exit code, nothing half-done."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
import xlsxwriter

from tests.cli.desk import UPPER, Desk

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)

ECHO = """
    from holdfast import pipeline

    @pipeline
    async def echo(row, ctx):
        return row
"""


@pytest.fixture
def echo(desk: Desk) -> Desk:
    desk.write("echo.py", ECHO)
    return desk


def assert_nothing_made(desk: Desk) -> None:
    assert desk.json("jobs") == []


def write_bytes(desk: Desk, name: str, content: bytes) -> Path:
    path = desk.folder / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "in.csv does not exist"),
        (b"", "in.csv is empty"),
        (b"a,b\n1,x\x00y\n2,x\x00y\n", "NUL character in line 2"),
        (b"a,b\n1,\xff\xfe\x81\n2,\xff\n", "cannot be decoded"),
        (b"\x1f\x8b\x08", "cannot be unpacked"),
        (b"<html><body>log in", "HTML or XML"),
        (b"PK\x03\x04 and no zip", "The workbook is damaged"),
    ],
    ids=["missing", "empty", "nul", "no-text", "gzip", "html", "broken-zip"],
)
def test_file_that_cannot_be_read_is_refused(
    echo: Desk, content: bytes | None, message: str
) -> None:
    if content is not None:
        write_bytes(echo, "in.csv", content)
    encoding = ["--encoding", "utf-8"] if message == "cannot be decoded" else []
    said = echo.fail("run", "echo.py", "in.csv", "--out", "out.csv", *encoding)
    assert message in said
    assert len(said.strip().splitlines()) >= 2, "it does not say what to do next"
    assert not (echo.folder / "out.csv").exists()
    assert_nothing_made(echo)


def test_encoding_is_detected_and_shown_and_can_be_given(echo: Desk) -> None:
    write_bytes(echo, "in.csv", "name\nŠimić Žarko\nČović\n".encode("cp1250"))
    done = echo.holdfast("run", "echo.py", "in.csv")
    assert "The encoding looks like cp1250; if letters look wrong, set another encoding" in (
        done.stderr
    )
    assert echo.results() == [{"name": "Šimić Žarko"}, {"name": "Čović"}]
    assert "started with different options" in echo.fail(
        "run", "echo.py", "in.csv", "--encoding", "cp1252"
    )
    echo.succeed("run", "echo.py", "in.csv", "--encoding", "cp1252", "--new")
    assert echo.results(2)[0] == {"name": "Šimiæ Žarko"}
    assert "There is no encoding called" in echo.fail(
        "run", "echo.py", "in.csv", "--encoding", "martian"
    )


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        (b"a;b\n1;2\n", [{"a": "1", "b": "2"}]),
        (b"a\tb\n1\t2\n", [{"a": "1", "b": "2"}]),
        (b"\xef\xbb\xbfa,b\n1,2\n", [{"a": "1", "b": "2"}]),
        (b"sep=|\na|b\n1|2\n", [{"a": "1", "b": "2"}]),
        (b'{"a": 1}\n{"b": "x"}\n', [{"a": 1}, {"b": "x"}]),
    ],
    ids=["semicolon", "tab", "bom", "sep", "json-lines"],
)
def test_other_forms_of_text_are_read(echo: Desk, content: bytes, rows: list[object]) -> None:
    write_bytes(echo, "in.txt", content)
    echo.succeed("run", "echo.py", "in.txt")
    assert echo.results() == rows


def test_ragged_rows_and_odd_headers_are_kept_and_reported(echo: Desk) -> None:
    echo.write("in.csv", "id,id,,name\n1,2,3,a\n4\n5,6,7,b,extra\n")
    done = echo.holdfast("run", "echo.py", "in.csv")
    assert done.returncode == 0
    for told in (
        "The header 'id' is used twice; column 2 is called id_2.",
        "Column 3 has no header; it is called column_3.",
        "rows with too few cells (the missing ones are empty): 1",
        "rows with too many cells (the surplus is kept under _extra): 1",
    ):
        assert told in done.stderr
    assert echo.results() == [
        {"id": "1", "id_2": "2", "column_3": "3", "name": "a"},
        {"id": "4", "id_2": "", "column_3": "", "name": ""},
        {"id": "5", "id_2": "6", "column_3": "7", "name": "b", "_extra": ["extra"]},
    ]


def test_header_without_rows_is_a_job_without_items(echo: Desk) -> None:
    echo.write("in.csv", "id,name\n")
    done = echo.holdfast("run", "echo.py", "in.csv", "--out", "out.csv")
    assert done.returncode == 0
    assert "The file has a header and no rows." in done.stderr
    assert (echo.folder / "out.csv").read_text().split() == ["row,status,error"]
    assert echo.counters()["accepted"] == 0


def test_ids_are_kept_as_text_to_the_last_digit(echo: Desk) -> None:
    ids = ["007", "1234567890123456789", "1e5", "0012-3", " 5 ", "TRUE", "=1+1", "-3", "NaN"]
    echo.write("in.csv", "id,title\n" + "".join(f"{value},x\n" for value in ids))
    echo.succeed("run", "echo.py", "in.csv")
    assert [row["id"] for row in echo.results()] == ids
    table = echo.succeed("items", "1")
    assert all(value.strip() in table for value in ids)


def test_huge_cell_is_an_error_item_that_names_the_limit(echo: Desk) -> None:
    path = echo.folder / "in.csv"
    with path.open("wb") as file:
        file.write(b"id,text\n1,")
        for _ in range(100):
            file.write(b"x" * 1_000_000)
        file.write(b"\n2,y\n")
    assert echo.holdfast("run", "echo.py", "in.csv").returncode == 3
    assert echo.statuses() == ["ERROR", "DONE"]
    message = echo.json("items", "1", "--item", "1")["error_message"]
    assert "line 2 has a cell of more than 10,485,760 bytes ('text')" in message


def assert_nothing_half_done(desk: Desk) -> None:
    """Either no job was made, or it says that its input could not be read to the end."""
    for job in desk.json("jobs"):
        assert job["state"] == "FAILED", job
        assert desk.show(job["id"])["why"]["kind"] == "discovery failed"


def workbook(path: Path, cells: list[tuple[int, int, object]]) -> None:
    with xlsxwriter.Workbook(str(path)) as book:
        sheet = book.add_worksheet("Products")
        for row, column, value in cells:
            if isinstance(value, str) and value.startswith("="):
                sheet.write_formula(row, column, value, value="#DIV/0!")
            elif isinstance(value, str):
                sheet.write_string(row, column, value)
            else:
                sheet.write(row, column, value)


def test_workbook_is_read_with_formulas_errors_and_texts(echo: Desk) -> None:
    workbook(
        echo.folder / "in.xlsx",
        [(0, 0, "id"), (0, 1, "price"), (1, 0, "007"), (1, 1, 2.5), (2, 0, "x"), (2, 1, "=1/0")],
    )
    done = echo.holdfast("run", "echo.py", "in.xlsx", "--sheet", "Products")
    assert done.returncode == 0, done.stderr
    rows = echo.results()
    assert rows[0] == {"id": "007", "price": "2.5"}
    assert rows[1]["id"] == "x"
    assert "sheet 'Products'" in done.stderr
    assert "Formulas are read as the values that were saved with them" in done.stderr
    assert "Nowhere" in echo.fail("run", "echo.py", "in.xlsx", "--new", "--sheet", "Nowhere")


def test_cell_in_the_last_corner_takes_nothing_down(echo: Desk) -> None:
    workbook(echo.folder / "in.xlsx", [(0, 0, "id"), (1, 0, "1"), (1_048_575, 16_383, "far")])
    done = echo.holdfast("run", "echo.py", "in.xlsx")
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert_nothing_half_done(echo)


def test_zip_bomb_is_refused(echo: Desk) -> None:
    workbook(echo.folder / "good.xlsx", [(0, 0, "id"), (1, 0, "1")])
    with (
        zipfile.ZipFile(echo.folder / "good.xlsx") as good,
        zipfile.ZipFile(echo.folder / "in.xlsx", "w", zipfile.ZIP_DEFLATED) as bomb,
    ):
        for name in good.namelist():
            head, end, tail = good.read(name).partition(b"</sheetData>")
            with bomb.open(name, "w") as part:
                part.write(head + end)
                for _ in range(400 if end else 0):
                    part.write(b" " * 1_000_000)
                part.write(tail)
    done = echo.holdfast("run", "echo.py", "in.xlsx")
    assert "Traceback" not in done.stderr
    assert done.returncode == 1, done.stderr
    assert_nothing_half_done(echo)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def broken(:\n    pass\n", "bad.py, line 1"),
        ("x = 1\n", "contains no pipeline"),
        ("import nowhere\n", "No module named 'nowhere'"),
        ("raise RuntimeError('not today')\n", "See line 1 of bad.py"),
        (
            "from holdfast import pipeline\n@pipeline(colums=['a'])\ndef f(row, ctx): ...\n",
            "no option 'colums'",
        ),
        ("import sys\nsys.exit('bye')\n", "bad.py"),
    ],
    ids=["syntax", "none", "import", "raises", "option", "exits"],
)
def test_pipeline_file_that_cannot_be_used_is_explained(
    desk: Desk, source: str, message: str
) -> None:
    desk.write("bad.py", source)
    desk.write_rows("in.csv", 1)
    assert message in desk.fail("run", "bad.py", "in.csv")
    assert_nothing_made(desk)


def test_pipeline_that_is_not_there_is_explained(desk: Desk) -> None:
    assert "there is no file nowhere.py" in desk.fail("run", "nowhere.py", "in.csv")
    desk.write("upper.txt", UPPER)
    assert "must end in .py" in desk.fail("run", "upper.txt", "in.csv")


def test_record_that_is_too_large_is_an_error_item(echo: Desk) -> None:
    echo.write("in.csv", "text\n" + "x" * 5000 + "\ny\n")
    done = echo.holdfast("run", "echo.py", "in.csv", env={"HOLDFAST_MAX_INPUT_BYTES": "1000"})
    assert done.returncode == 3
    assert echo.statuses() == ["ERROR", "DONE"]


def test_argument_that_is_not_utf_8_is_refused(desk: Desk) -> None:
    assert "is not UTF-8 text" in desk.fail("kill-switch", "on", "--source", "a\udcff")
