"""`holdfast open` and `add`, and workers that end when nothing is open."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from holdfast.cli.standing import add_batches, lines_of
from holdfast.configuration import load_settings
from holdfast.errors import DatabaseGone
from holdfast.kernel import NewJob, open_store
from holdfast.kernel.arrivals.enqueue import Additions
from holdfast.tables.types import TableOptions
from tests.cli.desk import UPPER, Desk
from tests.store.checks import execute_at


def test_records_are_added_to_a_standing_job_and_worked_off(desk: Desk) -> None:
    desk.write("upper.py", UPPER)
    desk.write("more.jsonl", '{"title": "oak"}\n{"title": "elm"}\n{"title": "oak"}\n')
    desk.succeed("open", "upper.py")
    assert "there is no job 9" in desk.fail("add", "9", "more.jsonl")
    desk.succeed("open", "upper.py")
    assert [job["idle"] for job in desk.json("jobs", "--state", "idle")] == [True]
    assert desk.json("jobs", "--state", "PAUSED,DONE") == desk.json("jobs", "--pipeline", "x") == []
    assert "no state 'SLEEPY'" in desk.fail("jobs", "--state", "sleepy")
    desk.succeed("add", "1", "more.jsonl", "--key", "title")
    assert desk.json("jobs", "--state", "IDLE") == []
    desk.succeed("add", "1", "more.jsonl", "--key", "title")
    desk.succeed("work", "upper.py", "--until-idle")
    shown = desk.show()
    assert (shown["state"], shown["idle"], shown["problems"]) == ("RUNNING", True, [])
    assert shown["counters"]["done"] == 2


@pytest.mark.parametrize("processes", ["1", "2"])
def test_worker_says_once_what_it_waits_for_and_what_it_does_not(
    desk: Desk, processes: str
) -> None:
    desk.write("upper.py", UPPER)
    desk.write("more.jsonl", '{"title": "oak"}\n')
    desk.succeed("open", "upper.py")
    desk.succeed("add", "1", "more.jsonl", "--run-at", "2100-01-01T00:00:00Z")
    worker = desk.start("work", "upper.py", "--until-idle", "--processes", processes)
    lines = iter(worker.stderr.readline, "")
    due = next(line for line in lines if line.startswith("Waiting for job 1"))
    assert "due at 2100-01-01 00:00" in due and "all open items are due later" in due
    alive = (
        "insert into workers (name, host, machine, pid, pipelines, started_at, seen_at,"
        " lost_after_seconds) values ('elsewhere', '', '', 7, '[]', @now, @now, 1000)"
    )
    hold = "update ranges set worker = 'elsewhere', token = 'x', available_at = @now"
    for statement in (alive, hold):
        execute_at(desk.command.database_url, statement)
    assert "leased by" in (leased := next(lines)) and "elsewhere" in leased
    desk.succeed("pause", "1")
    rest = [line for line in lines if "job 1" in line]
    assert rest == ["Not waiting for job 1, which is paused: holdfast resume 1\n"]
    assert worker.wait(60) == 0


def test_old_items_of_a_standing_job_are_removed_by_a_policy(desk: Desk) -> None:
    desk.write("upper.py", UPPER)
    desk.write("more.jsonl", '{"title": "oak"}\n{"title": "elm"}\n')
    desk.succeed("open", "upper.py")
    desk.succeed("add", "1", "more.jsonl", "--key", "title")
    desk.succeed("work", "upper.py", "--until-idle")
    execute_at(desk.command.database_url, "update outcomes set updated_at = @after(-864000)")
    policy = {"HOLDFAST_RETAIN_ITEMS_DAYS": "5"}
    shown = json.loads(desk.succeed("retention", "--json", env=policy))
    assert {"what": "items of standing jobs", "keeps": "5 days", "removes": 2} in shown
    assert len(desk.statuses()) == 2  # nothing was removed
    desk.succeed("retention", "--now", env=policy)
    assert desk.statuses() == []
    job = desk.show()
    assert (job["problems"], job["removed"], job["counters"]["done"]) == ([], {"DONE": 2}, 2)
    assert "2 older finished items were removed by retention" in desk.succeed("show", "1")
    assert "removed by retention" in desk.fail("items", "1", "--item", "1")
    desk.succeed("add", "1", "more.jsonl", "--key", "title")  # the keys are new again
    desk.succeed("work", "upper.py", "--until-idle")
    assert (len(desk.statuses()), desk.counters()["done"]) == (2, 4)


def test_rows_that_cannot_be_read_become_errors_and_what_was_assumed_is_shown(desk: Desk) -> None:
    desk.write("upper.py", UPPER)
    desk.write("bad.jsonl", '{"title": "oak"}\n{bad\n{"title": "elm"}\n')
    desk.write("plain.csv", "7,ash\n8,yew\n9,fir\n")
    desk.succeed("open", "upper.py")
    for words, stdin in (("bad.jsonl",), None), (("-",), '\ufeff{"title": "fig"}\n{bad\n'):
        added = desk.command.run("add", "1", *words, "--key", "title", stdin=stdin)
        assert added.returncode == 0, added.stderr
        assert "1 of them could not be read and will end as ERROR" in added.stderr
    assert "no header" in desk.holdfast("add", "1", "plain.csv").stderr
    desk.succeed("work", "upper.py", "--until-idle")
    assert desk.counters()["done"] == 3
    codes = [item["error_code"] for item in desk.json("items", "1", "--status", "ERROR")]
    assert codes.count("BAD_ROW") == 2


NAMED = """
    from holdfast import Dedupe, Pipeline

    class Named(Pipeline):
        name = "named"
        inputs = {"title": ["Product title"], "brand": []}
        columns = ["title", "brand"]
        dedupe = Dedupe("named")

        def key(self, row):
            return row["title"]

        async def process(self, row, ctx):
            return {"title": row["title"], "brand": row.get("brand")}
"""


def test_added_files_are_read_and_matched_as_by_run(desk: Desk) -> None:
    desk.write("named.py", NAMED)
    desk.write("list.csv", "Product title;Brand;subtitle\noak;ACME;x\n")
    desk.write("bare.csv", "7,elm,Bolt\n8,ash,Bolt\n")
    desk.succeed("open", "named.py")
    added = desk.holdfast("add", "1", "list.csv", "--pipeline", "named.py")
    ran = desk.holdfast("run", "named.py", "list.csv", "--no-work")
    shown = [line for line in ran.stderr.splitlines() if "is read as" in line][:2]
    assert added.stderr.splitlines()[1:3] == shown == [
        "  The column 'Product title' is read as 'title'.",
        "  The column 'Brand' is read as 'brand'.",
    ]  # fmt: skip
    assert "1 record added, 0 already known" in added.stderr
    again = desk.holdfast("add", "1", "list.csv", "--pipeline", "named.py")
    assert "0 records added, 1 already known" in again.stderr
    bare = ("bare.csv", "--no-header", "--column", "column_2=title", "--column", "column_3=brand")
    columns = desk.holdfast("add", "1", *bare, "--key", "title")
    assert "no header (as given)" in columns.stderr and "2 records added" in columns.stderr
    line = '{"PRODUCT TITLE": "fir", "Maker": "Core"}\n'
    piped = desk.command.run("add", "1", "-", "--column", "Maker=brand", stdin=line)
    assert "key is not known here" in piped.stderr and "1 record added" in piped.stderr
    desk.succeed("work", "named.py", "--job", "1", "--until-idle")
    items = desk.json("items", "1")
    assert [(item["result"]["title"], item["result"]["brand"]) for item in items] == [
        ("oak", "ACME"), ("elm", "Bolt"), ("ash", "Bolt"), ("fir", "Core"),
    ]  # fmt: skip
    assert items[0]["input"] == {"Product title": "oak", "Brand": "ACME", "subtitle": "x"}
    names = {"column_2": "title", "column_3": "brand"}
    assert items[1]["input"] == {"column_1": "7", "column_2": "elm", "column_3": "Bolt"} | {
        "_names": names
    }
    names = {"PRODUCT TITLE": "title", "Maker": "brand"}
    assert items[3]["input"] == {"PRODUCT TITLE": "fir", "Maker": "Core", "_names": names}


def test_columns_that_cannot_be_are_refused_before_anything_is_added(desk: Desk) -> None:
    desk.write("named.py", NAMED)
    desk.write("upper.py", UPPER)
    desk.write("list.csv", "Product title;Brand\noak;ACME\n")
    desk.succeed("open", "named.py")
    for column, words in ("Brand=colour", "no field 'colour'"), ("Colour=brand", "no column"):
        assert words in desk.fail("add", "1", "list.csv", "--column", column)
    both = "'Product title' and 'Brand' would both be read as 'brand'"
    twins = ("--column", "Product title=brand", "--column", "Brand=brand")
    assert both in desk.fail("add", "1", "list.csv", *twins)
    assert both in desk.fail("run", "named.py", "list.csv", *twins)
    assert "does not define 'named'" in desk.fail("add", "1", "list.csv", "--pipeline", "upper.py")
    desk.succeed("run", "upper.py", "list.csv", "--no-work")
    assert "not a standing job" in desk.fail("add", "2", "list.csv")
    for time in ("soon", "2100-01-01T00:00:00"):
        assert "time" in desk.fail("add", "1", "list.csv", "--run-at", time)
    assert desk.counters()["accepted"] == 0
    desk.succeed("add", "1", "list.csv", "--run-at", "2100-01-01T00:00:00Z")
    (waiting,) = desk.show()["ranges"]
    assert waiting["available_at"].startswith("2100-01-01")


def test_line_with_two_fields_for_one_stops_only_itself(desk: Desk) -> None:
    desk.write("named.py", NAMED)
    desk.succeed("open", "named.py")
    fine, twins = (
        '{"title": "oak", "Maker": "A"}\n',
        '{"title": "elm", "Maker": "B", "brand": "C"}\n',
    )
    own = '{"a": "fir", "b": "D", "_names": {"a": "title", "b": "title"}}\n'
    words = ("add", "1", "-", "--pipeline", "named.py", "--column", "Maker=brand")
    first = desk.command.run(*words, stdin=twins + fine)
    assert "'Maker' and 'brand' would both be read as 'brand'" in first.stderr
    assert "0 records added" in first.stderr and first.returncode == 1
    later = desk.command.run(*words, stdin=fine + twins + own + fine.replace("oak", "ash"))
    assert later.returncode == 0, later.stderr
    assert "4 records added" in later.stderr and "2 of them could not be read" in later.stderr
    desk.succeed("work", "named.py", "--job", "1", "--until-idle")
    assert [item["status"] for item in desk.json("items", "1")] == [
        "DONE",
        "ERROR",
        "ERROR",
        "DONE",
    ]


def test_records_added_before_a_mistake_are_counted(desk: Desk) -> None:
    desk.write("upper.py", UPPER)
    desk.succeed("open", "upper.py")
    rows = '{"title": "oak"}\n' * 3000 + '{"other": 1}\n'
    desk.write("more.jsonl", rows)
    text = desk.fail("add", "1", "more.jsonl", "--key", "title")
    assert "1 record added, 2,999 already known" in text
    assert "has no 'title'" in text
    assert "line 1 is not" in desk.command.run("add", "1", "-", stdin="title\noak\n").stderr


def test_first_lines_of_a_slow_program_do_not_wait_for_the_last() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as stream, os.fdopen(writing, "wb", buffering=0) as program:
        batches = lines_of(stream, TableOptions())
        program.write(b'{"n": 1}\n{"n"')
        assert next(batches) == [{"n": 1}]
        program.write(b": 2}")
        program.close()
        assert [row for rows in batches for row in rows] == [{"n": 2}]


async def test_batch_whose_reply_is_lost_is_added_once(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await open_store(database_url)
    job_id, _ = await store.jobs.open(NewJob("events", "events", [], standing=True), "ada")
    enqueue, tries = Additions.enqueue, 0

    async def lose_the_reply(self: Additions, *words: Any) -> Any:
        nonlocal tries
        tries += 1
        enqueued = await enqueue(self, *words)
        if tries == 1:
            raise DatabaseGone("the reply was lost")
        return enqueued

    monkeypatch.setattr(Additions, "enqueue", lose_the_reply)
    settings = load_settings({"HOLDFAST_DATABASE_URL": database_url})
    await add_batches(settings, job_id, None, lambda _: iter([[{"n": 1}, {"n": 2}]]))
    assert tries == 2
    assert (await store.reads.counters(job_id)).accepted == 2
    await store.close()


async def test_connections_that_are_closed_while_a_program_is_slow_lose_no_record(
    postgres_url: str,
) -> None:
    """As by a restart of the server."""

    def slowly() -> Iterator[list[Any]]:
        yield [{"n": 1}]
        others = "from pg_stat_activity where datname = current_database() and pid <> "
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(f"select pg_terminate_backend(pid) {others} pg_backend_pid()")
            while connection.execute(f"select 1 {others} pg_backend_pid()").fetchone():
                pass
        yield [{"n": 2}]

    store = await open_store(postgres_url)
    job_id, _ = await store.jobs.open(NewJob("events", "events", [], standing=True), "ada")
    await store.close()
    settings = load_settings({"HOLDFAST_DATABASE_URL": postgres_url})
    await asyncio.wait_for(add_batches(settings, job_id, None, lambda _: slowly()), 60)
    store = await open_store(postgres_url)
    assert (await store.reads.counters(job_id)).accepted == 2
    await store.close()
