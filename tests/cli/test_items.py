"""What went in, what came out, and how it is shown."""

from __future__ import annotations

import csv
import io
import json

import pytest
from python_calamine import CalamineWorkbook

from tests.cli.desk import UPPER, Desk

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)

ECHO = """
    from holdfast import NotFound, Skip, pipeline

    @pipeline(columns=["text"])
    async def echo(row, ctx):
        if row["text"] == "gone":
            raise NotFound
        return {"text": row["text"]}
"""
HARD = [
    "plain", "007", "1234567890123456789", "1.10", "=cmd()", "+1", "-1", "@x", "a,b;c\td", '"q"',
    "two\nlines", "ČĆŽŠĐ", "日本語", "🙂", "a\u200bb", "[red]markup[/]", "NULL", "true", "1e400",
    "\x1b[31mred", "ERROR", "x" * 3000,
]  # fmt: skip


@pytest.fixture
def echoed(desk: Desk) -> Desk:
    """A finished job whose results are its texts."""
    desk.write("echo.py", ECHO)
    lines = (json.dumps({"text": text}) + "\n" for text in HARD)
    (desk.folder / "in.jsonl").write_text("".join(lines))
    desk.succeed("run", "echo.py", "in.jsonl")
    return desk


def test_text_comes_out_of_every_format_as_it_went_in(echoed: Desk) -> None:
    assert [item["result"]["text"] for item in echoed.json("items", "1")] == HARD
    lines = echoed.succeed("export", "1", "--format", "jsonl").splitlines()
    assert [json.loads(line)["text"] for line in lines] == HARD

    echoed.succeed("export", "1", "--out", "out.csv")
    text = (echoed.folder / "out.csv").read_bytes().decode()
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert rows[0] == ["row", "text", "status", "error"]
    marked = [f"'{text}" if text[0] in "=@" else text for text in HARD]
    assert [row[1] for row in rows[1:]] == marked

    echoed.succeed("export", "1", "--out", "out.xlsx")
    sheet = CalamineWorkbook.from_path(echoed.folder / "out.xlsx").get_sheet_by_index(0)
    cells = [row[1] for row in sheet.to_python()[1:]]
    assert [str(cell) for cell in cells if "\x1b" not in str(cell)] == [
        text for text in HARD if "\x1b" not in text
    ]


def test_piped_table_is_wide_and_whole_and_harmless(echoed: Desk) -> None:
    table = echoed.succeed("items", "1")
    lines = table.splitlines()
    assert len(lines) == len(HARD) + 1
    assert "x" * 3000 in table
    assert "[red]markup[/]" in table
    assert "1234567890123456789" in table
    assert "\x1b" not in table and "\\x1b[31mred" in table
    assert "two\\nlines" in table


def test_items_are_listed_by_status_and_limit(echoed: Desk) -> None:
    assert len(echoed.json("items", "1", "--limit", "3")) == 3
    assert "Only the first 3 are shown; --limit 0 shows all." in echoed.holdfast(
        "items", "1", "--limit", "3"
    ).stderr  # fmt: skip
    done = echoed.json("items", "1", "--status", "done", "--limit", "0")
    exported = echoed.succeed("export", "1", "--format", "jsonl", "--status", "DONE")
    assert [json.loads(line)["row"] for line in exported.splitlines()] == [
        item["seq"] for item in done
    ]
    assert echoed.json("items", "1", "--status", "ERROR") == []
    assert "No items." in echoed.succeed("items", "1", "--status", "ERROR")
    assert "there is no status 'DNOE'" in echoed.fail("items", "1", "--status", "DNOE")
    assert "job 1 has no item 99" in echoed.fail("items", "1", "--item", "99")
    story = echoed.succeed("items", "1", "--item", "1")
    assert 'input {"text":"plain"}' in story and "status DONE" in story


def test_export_says_what_it_needs(echoed: Desk) -> None:
    assert "no format is given" in echoed.fail("export", "1")
    assert "no export format 'pdf'" in echoed.fail("export", "1", "--format", "pdf")
    assert "cannot be written" in echoed.fail("export", "1", "--out", "nowhere/out.csv")
    assert echoed.succeed("export", "1", "--format", "xlsx", "--out", "out.dat") == ""
    assert (echoed.folder / "out.dat").read_bytes().startswith(b"PK")


def test_jobs_and_show_tell_the_same_to_people_and_scripts(echoed: Desk) -> None:
    (job,) = echoed.json("jobs")
    assert (job["pipeline"], job["name"], job["state"]) == ("echo", "in.jsonl", "DONE")
    (header, line) = echoed.succeed("jobs").splitlines()
    assert header.split()[:4] == ["job", "pipeline", "name", "state"]
    assert line.split()[:4] == ["1", "echo", "in.jsonl", "DONE"]
    shown = echoed.succeed("show", "1", "--verify")
    assert "Job 1 DONE · echo · in.jsonl" in shown
    assert f"accepted {len(HARD)} · done {len(HARD)}" in shown
    assert "Verified: the counters match the rows" in shown
    assert "upload-1  COMPLETE" in shown
    told = echoed.show()
    assert (told["why"], told["ranges"], told["problems"]) == (None, [], [])


def test_items_of_any_number_are_printed_page_by_page(desk: Desk) -> None:
    desk.write("upper.py", UPPER)
    desk.write_rows("in.csv", 2_500)
    desk.succeed("run", "upper.py", "in.csv")
    assert [item["seq"] for item in desk.json("items", "1", "--limit", "0")] == [*range(1, 2_501)]
    assert len(desk.json("items", "1", "--limit", "1000")) == 1_000
    assert len(desk.succeed("items", "1", "--limit", "0").splitlines()) == 2_500 + 3  # headers
