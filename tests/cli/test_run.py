"""`holdfast run`, as a user gives it."""

from __future__ import annotations

import csv
import json
import shutil

import pytest
from python_calamine import CalamineWorkbook

from tests.cli.desk import UPPER, Desk
from tests.fleet import on_sqlite_and_fleet

on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)

MIXED = """
    from holdfast import Failed, NotFound, Retry, Skip, pipeline

    @pipeline(columns=["title", "price"])
    async def mixed(row, ctx):
        match row["title"]:
            case "gone":
                raise NotFound
            case "none":
                return NotFound
            case "old":
                return Skip("too old")
            case "bad":
                return Failed("PARSE_ERROR", "no price on the page")
            case "again" if ctx.attempt == 1:
                raise Retry(after=0.01)
            case "broken":
                raise ValueError("no such shop")
        return {"title": row["title"], "price": 12.5}
"""
TITLES = ["chair", "gone", "none", "old", "bad", "again", "broken"]
STATUSES = ["DONE", "NOT_FOUND", "NOT_FOUND", "SKIPPED", "ERROR", "DONE", "ERROR"]


def test_run_takes_in_works_exports_and_sums_up(desk: Desk) -> None:
    desk.write("mixed.py", MIXED)
    desk.write("in.csv", "title\n" + "\n".join(TITLES) + "\n")
    done = desk.holdfast("run", "mixed.py", "in.csv", "--out", "out.xlsx", "--workers", "2")
    assert done.returncode == 3, done.stderr
    assert "in.csv: CSV, utf-8, delimiter ',', header in row 1 (assumed), 1 column" in done.stderr
    assert "Job 1 DONE: 7 accepted, 2 done, 2 not found, 1 skipped, 2 error, 0 open" in done.stderr
    assert "Results: out.xlsx" in done.stderr
    assert "holdfast items 1 --status ERROR" in done.stderr

    sheet = CalamineWorkbook.from_path(desk.folder / "out.xlsx").get_sheet_by_index(0)
    rows = sheet.to_python()
    assert rows[0] == ["row", "title", "price", "status", "error"]
    assert [row[3] for row in rows[1:]] == STATUSES
    assert rows[1] == [1, "chair", 12.5, "DONE", ""]
    assert rows[4][4] == "too old"
    assert rows[5][4] == "PARSE_ERROR: no price on the page"
    assert rows[7][4] == "UNKNOWN_ERROR: ValueError: no such shop"

    assert desk.statuses() == STATUSES
    assert desk.counters()["retried"] >= 1
    again = desk.json("items", "1", "--item", "6")
    assert again["tries"] == 2
    assert [tried["error_message"] for tried in again["tries_before"]] == [
        "requested by the pipeline"
    ]


@on_sqlite
def test_results_are_the_same_in_every_format(desk: Desk) -> None:
    desk.write("upper.py", UPPER)
    desk.write("in.csv", 'title\n007\n1234567890123456789\n"=1+1"\n"two\nlines"\n')
    titles = ["007", "1234567890123456789", "=1+1", "TWO\nLINES"]
    for format in ("csv", "jsonl"):
        desk.succeed("run", "upper.py", "in.csv", "--out", f"out.{format}")
    with (desk.folder / "out.csv").open(newline="") as file:
        from_csv = list(csv.DictReader(file))
    lines = (desk.folder / "out.jsonl").read_text().splitlines()
    # What a spreadsheet would run is marked as text.
    assert [row["title"].removeprefix("'") for row in from_csv] == titles
    assert [json.loads(line)["title"] for line in lines] == titles
    assert desk.succeed("export", "1", "--format", "jsonl").splitlines() == lines
    assert [item["input"]["title"].upper() for item in desk.json("items", "1")] == titles
    assert len(desk.json("jobs")) == 1


@on_sqlite
def test_job_is_found_by_the_content_of_its_input(desk: Desk) -> None:
    desk.write("upper.py", UPPER)
    desk.write_rows("in.csv", 3)
    desk.succeed("run", "upper.py", "in.csv")
    shutil.move(desk.folder / "in.csv", desk.folder / "renamed.csv")
    done = desk.holdfast("run", "upper.py", "renamed.csv", "--out", "out.csv")
    assert done.returncode == 0
    assert "Job 1 is already done; use --new to start another one." in done.stderr
    assert (desk.folder / "out.csv").exists()

    desk.write_rows("renamed.csv", 4)
    desk.succeed("run", "upper.py", "renamed.csv")
    assert [(job["id"], job["counters"]["done"]) for job in desk.json("jobs")] == [(2, 4), (1, 3)]

    desk.succeed("run", "upper.py", "renamed.csv", "--new")
    assert [job["id"] for job in desk.json("jobs")] == [3, 2, 1]


@on_sqlite
def test_one_of_several_pipelines_is_chosen_by_name(desk: Desk) -> None:
    desk.write(
        "two.py",
        """
        from holdfast import pipeline

        @pipeline
        async def first(row, ctx):
            return {"by": "first"}

        @pipeline
        async def second(row, ctx):
            return {"by": "second"}
        """,
    )
    desk.write_rows("in.csv", 1)
    assert "Choose one, for example two.py:first" in desk.fail("run", "two.py", "in.csv")
    assert "It has: first, second." in desk.fail("run", "two.py:third", "in.csv")
    desk.succeed("run", "two.py:second", "in.csv")
    assert desk.results() == [{"by": "second"}]


@on_sqlite_and_fleet
def test_no_work_only_takes_the_records_in(desk: Desk) -> None:
    desk.write("upper.py", UPPER)
    desk.write_rows("in.csv", 5)
    said = desk.holdfast("run", "upper.py", "in.csv", "--no-work").stderr
    assert "Process them with: holdfast work upper.py --job 1" in said
    assert desk.counters()["open"] == 5
    assert desk.reason() == "no live worker"
    desk.succeed("work", "upper.py", "--until-idle")
    assert desk.counters()["done"] == 5


@on_sqlite
def test_columns_named_like_ours_keep_their_values(desk: Desk) -> None:
    desk.write(
        "shipping.py",
        """
        from holdfast import pipeline

        @pipeline(columns=["row", "status", "Error"])
        async def shipping(row, ctx):
            return {"row": "A7", "status": "shipped", "Error": "none"}
        """,
    )
    desk.write_rows("in.csv", 1)
    desk.succeed("run", "shipping.py", "in.csv")
    (line,) = desk.succeed("export", "1", "--format", "jsonl").splitlines()
    assert json.loads(line) == {
        "item.row": 1, "row": "A7", "status": "shipped", "Error": "none",
        "item.status": "DONE", "item.error": None,
    }  # fmt: skip


@on_sqlite
def test_without_declared_columns_no_value_is_left_out(desk: Desk) -> None:
    desk.write(
        "free.py",
        """
        from holdfast import pipeline

        @pipeline
        async def free(row, ctx):
            return {"late": 1} if row["id"] == "01499" else {"usual": 1}
        """,
    )
    desk.write_rows("in.csv", 1500)
    desk.succeed("run", "free.py", "in.csv")
    lines = desk.succeed("export", "1", "--format", "csv", "--with-input").splitlines()
    assert lines[0] == "row,input.id,input.title,usual,late,status,error"
    assert lines[-1] == "1500,01499,t1499,,1,DONE,"


@on_sqlite
def test_written_wrongly_is_exit_code_2(desk: Desk) -> None:
    assert "--outt" in desk.fail("run", "upper.py", "--outt", "x.csv", code=2)
    desk.fail("show", "one", code=2)
    desk.fail("shwo", code=2)
    assert "Show the version" in desk.fail(code=2)


@on_sqlite
def test_output_that_cannot_be_written_is_said_before_the_work(desk: Desk) -> None:
    desk.write("upper.py", UPPER)
    desk.write_rows("in.csv", 2)
    assert "is the input file" in desk.fail("run", "upper.py", "in.csv", "--out", "./in.csv")
    assert "format" in desk.fail("run", "upper.py", "in.csv", "--out", "out.pdf")
    assert "missing" in desk.fail("run", "upper.py", "in.csv", "--out", "missing/out.csv")
    (desk.folder / "folder.csv").mkdir()
    assert "folder" in desk.fail("run", "upper.py", "in.csv", "--out", "folder.csv")
    assert desk.json("jobs") == []


@on_sqlite
def test_function_without_discover_asks_for_its_input(desk: Desk) -> None:
    desk.write("upper.py", UPPER)
    assert "the pipeline upper needs an input file" in desk.fail("run", "upper.py")
    assert "--option 'x' is not of the form NAME=VALUE" in desk.fail(
        "run", "upper.py", "--option", "x"
    )
