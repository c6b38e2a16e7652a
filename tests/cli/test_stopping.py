"""A run may end at any moment; the same command continues where it stopped."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
from contextlib import closing

import pytest

from tests.cli.desk import SLOW, Desk, kill_all, stop, wait_until
from tests.fleet import on_sqlite_and_fleet

on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
HANGING, AT_ONCE = "60", "0"


def start_hanging_run(desk: Desk, rows: int = 30) -> subprocess.Popen[str]:
    desk.write("slow.py", SLOW)
    desk.write("speed", HANGING)
    desk.write_rows("in.csv", rows)
    process = desk.start("run", "slow.py", "in.csv", "--out", "out.csv")
    wait_until(desk.started)
    return process


def assert_continues(desk: Desk, rows: int = 30) -> None:
    desk.write("speed", AT_ONCE)
    done = desk.holdfast("run", "slow.py", "in.csv", "--out", "out.csv")
    assert done.returncode == 0, done.stderr
    assert "Continuing job 1." in done.stderr
    assert desk.counters() | {"throttled": 0} == {
        "accepted": rows, "done": rows, "not_found": 0, "skipped": 0, "error": 0, "open": 0,
        "retried": 0, "throttled": 0, "known": 0,
    }  # fmt: skip
    assert len((desk.folder / "out.csv").read_text().splitlines()) == rows + 1


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@on_sqlite
def test_stops_soon_with_items_in_work_and_continues(
    desk: Desk, number: signal.Signals, code: int
) -> None:
    process = start_hanging_run(desk)
    returncode, said = stop(process, number)
    assert returncode == code
    assert "Traceback" not in said
    assert "Stopped. Run the same command to continue." in said
    assert not (desk.folder / "out.csv").exists()
    told = desk.show()
    assert told["counters"]["open"] == 30
    assert all(found["worker"] is None for found in told["ranges"])
    assert_continues(desk)


def test_killed_while_working_continues(desk: Desk) -> None:
    process = start_hanging_run(desk)
    kill_all(process)
    assert_continues(desk)
    assert set(desk.started()) == {f"t{number}" for number in range(30)}


@on_sqlite
def test_killed_continues_on_another_day(desk: Desk) -> None:
    process = start_hanging_run(desk)
    kill_all(process)
    long_ago = "2020-01-01T00:00:00.000Z"
    file = desk.command.database_url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(file)) as database:
        database.execute("update holdfast_workers set seen_at = ?", [long_ago])
        database.commit()
    assert_continues(desk)


def test_killed_while_taking_rows_in_continues(desk: Desk) -> None:
    desk.write("slow.py", SLOW)
    desk.write("speed", AT_ONCE)
    desk.write_rows("in.csv", 2000)
    small = {"INGEST_MIN_ROWS": "100", "INGEST_MAX_ROWS": "100"}
    fault = {"HOLDFAST_FAULT": "ingest/commit@7"}
    done = desk.holdfast("run", "slow.py", "in.csv", "--no-work", env=small | fault)
    assert done.returncode == -signal.SIGKILL
    assert desk.counters()["accepted"] == 600
    assert_continues(desk, 2000)


@on_sqlite
def test_second_run_of_the_same_job_works_beside_the_first(desk: Desk) -> None:
    process = start_hanging_run(desk)
    second = desk.start("run", "slow.py", "in.csv", "--out", "second.csv")
    wait_until(lambda: len(desk.json("jobs")) == 1)
    desk.write("speed", AT_ONCE)
    for each in (process, second):
        _, said = each.communicate(timeout=60)
        assert each.returncode == 0, said
    assert desk.counters()["done"] == 30


@on_sqlite_and_fleet
def test_worker_stops_on_sigterm_and_gives_its_items_back(desk: Desk) -> None:
    desk.write("slow.py", SLOW)
    desk.write("speed", HANGING)
    desk.write_rows("in.csv", 10)
    desk.succeed("run", "slow.py", "in.csv", "--no-work")
    worker = desk.start("work", "slow.py")
    wait_until(desk.started)
    returncode, said = stop(worker, signal.SIGTERM)
    assert (returncode, "Traceback" in said) == (0, False)
    told = desk.show()
    assert told["why"]["kind"] == "no live worker"
    assert told["counters"]["open"] == 10
    assert all(found["expiries"] == 0 for found in told["ranges"])


@pytest.mark.slow
@on_sqlite_and_fleet
def test_item_that_kills_its_worker_is_set_aside_and_harms_no_other(desk: Desk) -> None:
    desk.write(
        "deadly.py",
        """
        import os, signal
        from holdfast import pipeline

        @pipeline
        async def deadly(row, ctx):
            if row["title"] in ("t3", "t5"):
                os.kill(os.getpid(), signal.SIGKILL)
            return {"title": row["title"]}
        """,
    )
    desk.write_rows("in.csv", 8)
    done = desk.holdfast("run", "deadly.py", "in.csv")
    assert done.returncode == 3, done.stderr
    assert "Workers died" in done.stderr
    assert desk.statuses() == [*["DONE"] * 3, "ERROR", "DONE", "ERROR", "DONE", "DONE"]
    letters = {letter["seq"]: letter for letter in desk.json("dead", "list")}
    assert [(seq, letters[seq]["code"]) for seq in sorted(letters)] == [
        (4, "CRASHED"),
        (6, "CRASHED"),
    ]

    desk.succeed("dead", "drop", str(letters[4]["id"]))
    mended = (desk.folder / "deadly.py").read_text().replace("t5", "none")
    desk.write("deadly.py", mended)
    desk.succeed("dead", "replay", str(letters[6]["id"]))
    desk.succeed("work", "deadly.py", "--until-idle")
    assert desk.statuses() == [*["DONE"] * 3, "ERROR", *["DONE"] * 4]
    assert desk.json("dead", "list") == []
    for state, seq in (("dropped", 4), ("replayed", 6)):
        (letter,) = desk.json("dead", "list", "--state", state)
        assert (letter["seq"], letter["actor"]) == (seq, "local")
        assert "dead letter" in desk.fail("dead", "drop", str(letter["id"]))
    assert "dead letter" in desk.fail("dead", "replay", "99")


@pytest.mark.slow
@on_sqlite
def test_export_that_is_stopped_leaves_no_half_file(desk: Desk) -> None:
    desk.write(
        "fast.py",
        """
        from holdfast import pipeline

        @pipeline(columns=["title"])
        async def fast(row, ctx):
            return row
        """,
    )
    desk.write_rows("in.csv", 150_000)
    desk.succeed("run", "fast.py", "in.csv")
    process = desk.start("run", "fast.py", "in.csv", "--out", "out.xlsx")
    wait_until(lambda: list(desk.folder.glob(".holdfast-export-*")))
    returncode, said = stop(process, signal.SIGINT)
    assert (returncode, "Traceback" in said) == (130, False)
    assert "Run the same command to write the results." in said
    assert not (desk.folder / "out.xlsx").exists()
    assert not list(desk.folder.glob(".holdfast-export-*"))
    desk.succeed("run", "fast.py", "in.csv", "--out", "out.csv")
    assert len((desk.folder / "out.csv").read_text().splitlines()) == 150_001
