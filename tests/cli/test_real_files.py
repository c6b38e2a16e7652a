"""Files that people really have, through the real command: flawed rows, no header, titles, packed,
columns under other names."""

from __future__ import annotations

import gzip

from tests.cli.desk import Desk

NAMES = """
    from holdfast import pipeline

    @pipeline(inputs={"title": ["Product name"], "price": []}, columns=["title", "price"])
    async def names(row, ctx):
        return {"title": row["title"], "price": row["price"]}
"""
ECHO = """
    from holdfast import pipeline

    @pipeline
    async def echo(row, ctx):
        return row
"""


def inputs(desk: Desk) -> list[dict[str, object]]:
    numbers = range(1, desk.counters()["accepted"] + 1)
    return [desk.json("items", "1", "--item", str(number))["input"] for number in numbers]


def test_unreadable_row_becomes_an_error_item(desk: Desk) -> None:
    desk.write("echo.py", ECHO)
    (desk.folder / "in.csv").write_bytes(b"sku,title\n1,Lamp\n2,De\x00sk\n3,Sofa\n")
    done = desk.holdfast("run", "echo.py", "in.csv", "--out", "out.csv")
    assert done.returncode == 3, done.stderr
    assert "rows that cannot be read (each becomes an ERROR item): 1" in done.stderr
    assert desk.statuses() == ["DONE", "ERROR", "DONE"]
    bad = desk.json("items", "1", "--item", "2")
    assert bad["error_code"] == "BAD_ROW"
    assert bad["error_message"] == "line 3 holds a NUL character: 2,De\\x00sk"
    assert bad["tries"] == 1
    assert bad["input"]["_excerpt"] == "2,De\\x00sk"
    assert "BAD_ROW: line 3 holds a NUL character" in (desk.folder / "out.csv").read_text()


def test_too_many_unreadable_rows_stop_the_file_and_a_raised_limit_resumes_it(desk: Desk) -> None:
    desk.write("echo.py", ECHO)
    desk.write("in.jsonl", '{"a":1}\n' * 100 + "{broken\n" * 3 + '{"a":2}\n')
    two, three = {"HOLDFAST_MAX_BAD_ROWS": "2"}, {"HOLDFAST_MAX_BAD_ROWS": "3"}
    stopped = desk.fail("run", "echo.py", "in.jsonl", env=two)
    assert "3 of the first 103 rows cannot be read" in stopped
    assert desk.holdfast("run", "echo.py", "in.jsonl", env=three).returncode == 3
    assert desk.counters()["accepted"] == 104
    assert desk.counters()["error"] == 3


def test_columns_are_mapped_and_the_raw_row_is_kept(desk: Desk) -> None:
    desk.write("names.py", NAMES)
    desk.write("in.csv", "Product name,Cost (each)\nLamp,12.5\nDesk,99.0\n")
    done = desk.holdfast("run", "names.py", "in.csv", "--column", "Cost (each)=price")
    assert done.returncode == 0, done.stderr
    assert "The column 'Product name' is read as 'title'." in done.stderr
    assert "The column 'Cost (each)' is read as 'price'." in done.stderr
    assert done.stderr.count("The column 'Product name' is read as 'title'.") == 2  # in the summary
    assert "The column 'Product name' is read as 'title'." in desk.holdfast("show", "1").stdout
    assert desk.results()[0] == {"title": "Lamp", "price": "12.5"}
    assert inputs(desk)[0] == {"Product name": "Lamp", "Cost (each)": "12.5"}
    again = desk.holdfast("run", "names.py", "in.csv")
    assert "already done" in again.stderr
    other = desk.fail("run", "names.py", "in.csv", "--column", "Cost (each)=title")
    assert "different options" in other
    missing = desk.fail("run", "names.py", "in.csv", "--new", "--column", "Cost=price")
    assert "There is no column 'Cost'." in missing
    unknown = desk.fail("run", "names.py", "in.csv", "--new", "--column", "Cost (each)=cost")
    assert "The pipeline has no field 'cost'." in unknown
    assert "Its fields are: title, price." in unknown
    left_out = desk.holdfast("run", "names.py", "in.csv", "--new", "--no-work").stderr
    assert "No column is read as price. To choose one: --column 'Cost (each)=price'" in left_out


def test_table_without_a_header_is_said_to_have_none(desk: Desk) -> None:
    desk.write("echo.py", ECHO)
    desk.write("in.csv", "Lamp,12.5\nDesk,99.0\nSofa,310.0\n")
    done = desk.holdfast("run", "echo.py", "in.csv")
    assert "in.csv: CSV, utf-8, delimiter ',', no header, 2 columns" in done.stderr
    assert "The first row is data, not a header" in done.stderr
    assert "in.csv was read as CSV, utf-8, delimiter ',', no header, 2 columns." in done.stderr
    assert inputs(desk)[0] == {"column_1": "Lamp", "column_2": "12.5"}
    desk.succeed("run", "echo.py", "in.csv", "--new", "--header-row", "1")
    assert desk.results(2) == [
        {"Lamp": "Desk", "12.5": "99.0"},
        {"Lamp": "Sofa", "12.5": "310.0"},
    ]
    desk.write("words.csv", "Lamp,red\nDesk,blue\n")
    assert "header in row 1 (assumed)" in desk.holdfast("run", "echo.py", "words.csv").stderr
    desk.succeed("run", "echo.py", "words.csv", "--new", "--no-header")
    assert len(desk.results(4)) == 2
    both = ("--no-header", "--header-row", "2")
    assert "exclude each other" in desk.fail("run", "echo.py", "words.csv", *both, code=2)
    desk.succeed("open", "echo.py")
    assert "exclude each other" in desk.fail("add", "5", "words.csv", *both, code=2)


def test_packed_table_with_titles_is_read(desk: Desk) -> None:
    desk.write("echo.py", ECHO)
    text = "Sales of 2024\n\nsku;price\n1;12\n2;13\n"
    (desk.folder / "in.csv.gz").write_bytes(gzip.compress(text.encode()))
    done = desk.holdfast("run", "echo.py", "in.csv.gz")
    assert "CSV, packed with gzip, utf-8, delimiter ';', header in row 3, 2 columns" in done.stderr
    assert desk.results() == [{"sku": "1", "price": "12"}, {"sku": "2", "price": "13"}]
