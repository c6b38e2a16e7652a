"""Caps, schedules and kill switches of pipelines that find their records by themselves."""

from __future__ import annotations

import signal

import pytest

from tests.cli.desk import UPPER, Desk, stop, wait_until
from tests.fleet import on_sqlite_and_fleet
from tests.store.checks import MAKE_DUE, execute_at

on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)

#: Named like a module of Python, which it must not shadow.
NUMBERS = """
    from holdfast import Option, Page, Pipeline, Record

    class Numbers(Pipeline):
        columns = ["n"]
        options = [Option("sources")]

        def sources(self, options):
            return options.get("sources", "evens").split("+")

        async def discover(self, source, cursor, ctx):
            for page in range(cursor or 0, 5):
                numbers = range(page * 10, page * 10 + 10)
                yield Page(
                    [Record({"n": n, "of": source}) for n in numbers],
                    next_cursor=page + 1,
                    end=page == 4,
                )

        async def process(self, row, ctx):
            return {"n": row["n"]}
"""


def numbers_of(desk: Desk, job_id: int = 1) -> list[int]:
    return [result["n"] for result in desk.results(job_id)]


def test_cap_cuts_exactly_and_continues_exactly(desk: Desk) -> None:
    desk.write("numbers.py", NUMBERS)
    done = desk.holdfast("run", "numbers.py", "--max-items", "17", "--out", "out.csv")
    assert done.returncode == 0, done.stderr
    assert "stopped at the cap" in done.stderr
    assert numbers_of(desk) == list(range(17))
    told = desk.show()
    assert (told["state"], told["why"]["kind"]) == ("DONE", "cap reached")
    assert "holdfast resume 1 --max-items" in told["why"]["text"]

    desk.succeed("resume", "1", "--max-items", "23")
    desk.succeed("work", "numbers.py", "--until-idle")
    assert numbers_of(desk) == list(range(23))

    desk.succeed("run", "numbers.py", "--max-items", "1000")
    assert numbers_of(desk) == list(range(50))
    assert desk.reason() is None


@on_sqlite
def test_cap_of_a_file_and_of_each_source(desk: Desk) -> None:
    desk.write("upper.py", UPPER)
    desk.write_rows("in.csv", 30)
    desk.succeed("run", "upper.py", "in.csv", "--max-items", "4")
    assert desk.counters()["done"] == 4
    why = desk.json("show", "1")["why"]["text"]
    assert "holdfast run PIPELINE.py " in why and "in.csv --max-items N" in why
    desk.succeed("resume", "1", "--max-items", "5")
    why = desk.json("show", "1")["why"]["text"]
    assert why.startswith("the rest of the file is not being read; continue with: holdfast run")
    desk.succeed("run", "upper.py", "in.csv", "--max-items", "9")
    assert [result["title"] for result in desk.results()] == [f"T{n}" for n in range(9)]

    desk.write("numbers.py", NUMBERS)
    desk.succeed(
        "run", "numbers.py", "--option", "sources=evens+odds", "--max-per-source", "12"
    )  # fmt: skip
    inputs = [item["input"]["of"] for item in desk.json("items", "2", "--limit", "0")]
    assert (inputs.count("evens"), inputs.count("odds")) == (12, 12)


@on_sqlite_and_fleet
def test_kill_switch_of_a_source_holds_its_discovery(desk: Desk) -> None:
    desk.write("numbers.py", NUMBERS)
    desk.succeed("kill-switch", "on", "--source", "evens", "--reason", "they asked")
    assert "kill switch source:evens is on: they asked" in desk.fail("run", "numbers.py")
    assert desk.json("jobs") == []
    process = desk.start("run", "numbers.py", "--option", "sources=evens+odds")
    wait_until(lambda: desk.json("jobs") and desk.counters()["done"] == 50)
    wait_until(lambda: desk.reason() == "kill switch")
    desk.succeed("kill-switch", "off", "--source", "evens")
    _, said = process.communicate(timeout=180)
    assert process.returncode == 0, said
    assert desk.counters()["done"] == 100


@on_sqlite_and_fleet
def test_schedule_is_added_listed_fired_by_a_worker_and_removed(desk: Desk) -> None:
    desk.write("numbers.py", NUMBERS)
    desk.write("upper.py", UPPER)
    add = ("schedule", "add", "nightly", "numbers.py", "--cron")
    assert "is not a cron expression" in desk.fail(*add, "at six")
    assert "there is no time zone" in desk.fail(*add, "0 6 * * *", "--zone", "Mars/Base")
    assert "does not find its own records" in desk.fail(
        "schedule", "add", "x", "upper.py", "--cron", "* * * * *"
    )
    for name in ("", "a\nb", "n" * 201):
        assert "the schedule needs a name" in desk.fail(
            "schedule", "add", name, "numbers.py", "--cron", "* * * * *"
        )
    assert desk.json("schedule", "list") == []
    desk.succeed(*add, "0 6 * * *", "--zone", "Europe/Zagreb", "--option", "sources=odds")
    (found,) = desk.json("schedule", "list")
    assert (found["name"], found["cron"], found["zone"], found["last_job_id"]) == (
        "nightly", "0 6 * * *", "Europe/Zagreb", None,
    )  # fmt: skip
    assert "nightly" in desk.succeed("schedule", "list")

    execute_at(desk.command.database_url, MAKE_DUE)
    worker = desk.start("work", "numbers.py")
    wait_until(lambda: (jobs := desk.json("jobs")) and jobs[0]["state"] == "DONE")
    assert stop(worker, signal.SIGTERM)[0] == 0
    assert [item["input"]["of"] for item in desk.json("items", "1", "--limit", "1")] == ["odds"]
    (fired,) = desk.json("schedule", "list")
    assert fired["last_job_id"] == 1
    assert fired["next_at"] > fired["last_at"]

    desk.succeed("schedule", "remove", "nightly")
    assert desk.json("schedule", "list") == []
    assert "there is no schedule 'nightly'" in desk.fail("schedule", "remove", "nightly")


@on_sqlite
def test_sources_that_break_the_contract_fail_with_a_reason(desk: Desk) -> None:
    desk.write(
        "broken.py",
        """
        from holdfast import Option, Page, Pipeline, Record

        class Broken(Pipeline):
            options = [Option("how")]

            async def discover(self, source, cursor, ctx):
                match ctx.options["how"]:
                    case "repeats":
                        while True:
                            yield Page([Record({"n": 1})], next_cursor="same")
                    case "silent":
                        yield Page([Record({"n": 1})], next_cursor=1)
                    case "neither":
                        yield Page([Record({"n": 1})])
                    case "raises":
                        raise KeyError("items")
                    case "odd":
                        yield Page([Record({"n": object()})], end=True)

            def fingerprint(self, source, options):
                return options["how"]

            async def process(self, row, ctx):
                return row
        """,
    )
    reasons = {
        "repeats": "the same cursor twice", "silent": "without an end signal",
        "neither": "neither a next cursor nor an end signal",
        "raises": "KeyError in the pipeline's discover", "odd": "not JSON",
    }  # fmt: skip
    for number, (how, reason) in enumerate(reasons.items(), 1):
        said = desk.fail("run", "broken.py", "--option", f"how={how}")
        assert reason in said, how
        told = desk.show(number)
        assert (told["state"], told["why"]["kind"]) == ("FAILED", "discovery failed")
        assert told["counters"]["open"] == 0
