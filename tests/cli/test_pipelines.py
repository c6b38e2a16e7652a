"""What a user can write: functions, threads, classes with all they may say."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.cli.desk import Desk, stop, wait_until
from tests.world import Answer, Request, World, json_answer

on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with World() as found:
        yield found


async def run(desk: Desk, *arguments: str, code: int = 0) -> str:
    """Runs the command while the server keeps answering."""
    done = await asyncio.to_thread(desk.holdfast, "run", *arguments)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


@on_sqlite
def test_declared_options_are_checked_before_anything_is_done(desk: Desk) -> None:
    desk.write(
        "said.py",
        """
        from holdfast import Option, pipeline

        @pipeline(columns=["text"], options=[Option("times", int, default=2), Option("end")])
        async def said(row, ctx):
            return {"text": row["title"] * ctx.options["times"] + ctx.options.get("end", "")}
        """,
    )
    desk.write("titles.csv", "title\nho\n")
    refused = desk.holdfast("run", "said.py", "titles.csv", "--option", "often=3")
    assert refused.returncode == 1 and "Traceback" not in refused.stderr
    assert "times (whole number); end (text)" in refused.stderr
    desk.succeed("run", "said.py", "titles.csv", "--option", "times=3", "--out", "out.jsonl")
    assert '"hohoho"' in (desk.folder / "out.jsonl").read_text()
    # The same command continues, with the option or without any; with another it is another job.
    desk.succeed("run", "said.py", "titles.csv", "--option", "times=3")
    desk.succeed("run", "said.py", "titles.csv")
    other = desk.holdfast("run", "said.py", "titles.csv", "--option", "end=!")
    assert other.returncode == 1 and "different options" in other.stderr


MEETINGS = """
    from holdfast import Dedupe, Failed, Gate, Option, Pipeline
    from holdfast.errors import Category, ErrorCode, RetryClass
    from holdfast.sources.cursor_api import CursorApi, NextToken

    class Meetings(Pipeline):
        columns = ["id", "title"]
        options = [Option("url"), Option("day")]
        gates = [Gate("office", concurrency=2)]
        dedupe = Dedupe("meetings", changed="skip")
        error_codes = {
            "CLOSED": ErrorCode("CLOSED", Category.CONTENT, RetryClass.NEVER),
        }
        schema = [
            "CREATE TABLE IF NOT EXISTS meeting (id text PRIMARY KEY, title text NOT NULL)",
        ]

        def source(self, options):
            return CursorApi(
                options["url"], NextToken("next", "after"), records="meetings", key="id",
                total="count",
            )

        def fingerprint(self, source, options):
            return self.source(options).fingerprint() + options.get("day", "")

        async def discover(self, source, cursor, ctx):
            async for page in self.source(ctx.options).pages(ctx.http, cursor):
                yield page

        def normalize(self, row):
            return {**row, "title": row["title"] and row["title"].strip()}

        async def process(self, row, ctx):
            async with ctx.gate("office"):
                if row["id"] == "m3":
                    return Failed("CLOSED", "not open to the public")
                return {"id": row["id"], "title": row["title"]}

        async def save(self, tx, settled):
            rows = [each.result for each in settled if each.status == "DONE"]
            await tx.execute_many(
                "INSERT INTO meeting (id, title) VALUES (:id, :title)", rows
            )
"""


def serve_meetings(world: World, titles: list[str | None], per_page: int = 4) -> None:
    entries = [{"id": f"m{n}", "title": title} for n, title in enumerate(titles)]

    def answer(request: Request) -> Any:
        start = int(request.query.get("after", 0))
        end = start + per_page
        following = str(end) if end < len(entries) else None
        page = {"meetings": entries[start:end], "next": following, "count": len(entries)}
        return json_answer(page)

    world.on("/meetings", answer)


def meetings_saved(desk: Desk) -> dict[str, str]:
    return {
        item["result"]["id"]: item["result"]["title"]
        for item in desk.json("items", "1", "--limit", "0")
        if item["status"] == "DONE"
    }


async def test_class_discovers_normalizes_processes_saves_and_dedupes(
    desk: Desk, world: World
) -> None:
    desk.write("meetings.py", MEETINGS)
    serve_meetings(world, [f" title {n} " for n in range(10)])
    url = f"url={world.url('/meetings')}"
    said = await run(desk, "meetings.py", "--option", url, "--out", "out.csv", code=3)
    assert "10 accepted, 9 done, 0 not found, 0 skipped, 1 error" in said
    assert len(world.asked("/meetings")) == 3
    told = desk.show()
    (stream,) = told["streams"]
    assert (stream["state"], stream["pages_count"], stream["expected_count"]) == ("COMPLETE", 3, 10)
    item = desk.json("items", "1", "--item", "1")
    assert item["input"]["title"] == " title 0 "
    assert item["normalized"]["title"] == item["result"]["title"] == "title 0"
    closed = desk.json("items", "1", "--status", "ERROR")
    assert [(i["error_code"], i["attempts"]) for i in closed] == [("CLOSED", 1)]

    serve_meetings(world, [f" title {n} " for n in range(12)])
    said = await run(desk, "meetings.py", "--option", url, "--option", "day=2", code=3)
    assert "3 accepted, 2 done, 0 not found, 0 skipped, 1 error" in said
    assert "9 already known" in said


async def test_bad_row_in_save_harms_only_itself(desk: Desk, world: World) -> None:
    desk.write("meetings.py", MEETINGS)
    serve_meetings(world, ["a", None, "c", "closed", "e"])
    await run(desk, "meetings.py", "--option", f"url={world.url('/meetings')}", code=3)
    items = desk.json("items", "1")
    assert [item["status"] for item in items] == ["DONE", "ERROR", "DONE", "ERROR", "DONE"]
    assert items[1]["error_code"] == "DATABASE_ERROR"
    assert "save:" in items[1]["error_message"]
    assert meetings_saved(desk) == {"m0": "a", "m2": "c", "m4": "e"}


@on_sqlite
async def test_discovery_that_fails_says_so_and_resumes(desk: Desk, world: World) -> None:
    desk.write("meetings.py", MEETINGS)
    world.on("/meetings", json_answer({"error": "moved to v2"}))
    url = f"url={world.url('/meetings')}"
    said = await run(desk, "meetings.py", "--option", url, code=1)
    assert "discovery failed" in said
    assert "no list of records" in said
    told = desk.show()
    assert (told["state"], told["why"]["kind"]) == ("FAILED", "discovery failed")

    serve_meetings(world, ["a", "b"])
    said = await run(desk, "meetings.py", "--option", url)
    assert "Continuing job 1." in said
    assert desk.counters()["done"] == 2


@on_sqlite
async def test_plain_function_runs_in_threads_with_a_blocking_client(
    desk: Desk, world: World
) -> None:
    desk.write(
        "blocking.py",
        """
        import threading
        import time
        from holdfast import NotFound, Option, pipeline

        @pipeline(columns=["title", "size", "main"], options=[Option("shop")])
        def blocking(row, ctx):
            time.sleep(0.01)
            reply = ctx.http.get(ctx.options["shop"], params={"q": row["title"]})
            if not reply.json():
                raise NotFound
            main = threading.current_thread() is threading.main_thread()
            return {"title": row["title"], "size": reply.json()["size"], "main": main}
        """,
    )
    desk.write_rows("in.csv", 12)
    world.on("/shop", lambda request: json_answer({"size": len(request.query["q"])}))
    await run(desk, "blocking.py", "in.csv", "--option", f"shop={world.url('/shop')}")
    assert {result["size"] for result in desk.results()} == {2, 3}
    assert {result["main"] for result in desk.results()} == {False}
    assert len(world.asked("/shop")) == 12


@on_sqlite
async def test_closed_gate_is_shown_and_the_private_address_setting_is_named(
    desk: Desk, world: World
) -> None:
    desk.write(
        "shop.py",
        """
        from holdfast import Option, pipeline

        @pipeline(options=[Option("shop")])
        async def shop(row, ctx):
            return (await ctx.http.get(ctx.options["shop"])).json()
        """,
    )
    desk.write_rows("in.csv", 30)
    shop = f"shop={world.url('/shop')}"
    refused = await asyncio.to_thread(
        desk.holdfast, "run", "shop.py", "in.csv", "--new", "--option", shop,
        env={"HOLDFAST_ALLOW_PRIVATE_ADDRESSES": "false"},
    )  # fmt: skip
    assert refused.returncode == 3
    assert "HOLDFAST_ALLOW_PRIVATE_ADDRESSES" in desk.json("items", "1")[0]["error_message"]
    assert world.requests == []

    world.on("/shop", Answer(429, b"slow down", {"Retry-After": "3600"}))
    process = desk.start("run", "shop.py", "in.csv", "--new", "--option", shop)

    def closed() -> Any:
        told = desk.show(2) if len(desk.json("jobs")) == 2 else None
        why = told["why"] if told else None
        return told if why and why["kind"] == "gate closed until" else None

    told = await asyncio.to_thread(wait_until, closed)
    assert "127.0.0.1" in told["why"]["text"]
    assert told["counters"]["open"] == 30
    assert len(world.requests) < 30
    await asyncio.sleep(2)  # a line of the run's own says so within a second
    code, said = await asyncio.to_thread(stop, process, signal.SIGINT)
    assert (code, "Waiting: gate closed until" in said) == (130, True)


@on_sqlite
def test_attempt_number_rotates_strategies_and_slow_items_time_out(desk: Desk) -> None:
    desk.write(
        "tries.py",
        """
        import asyncio
        from holdfast import Retry, pipeline

        @pipeline(timeout=0.2, max_attempts=3)
        async def tries(row, ctx):
            if row["title"] == "t0":
                await asyncio.sleep(60)
            strategy = ["fast", "careful", "slow"][ctx.attempt - 1]
            return {"by": strategy} if strategy == "slow" else Retry(strategy)
        """,
    )
    desk.write_rows("in.csv", 3)
    desk.fail("run", "tries.py", "in.csv", code=3)
    items = desk.json("items", "1")
    assert (items[0]["error_code"], items[0]["attempts"]) == ("TIMEOUT", 3)
    assert [item["result"] for item in items[1:]] == [{"by": "slow"}] * 2


@on_sqlite
def test_results_that_break_the_contract_are_errors_of_their_rows(desk: Desk) -> None:
    desk.write(
        "odd.py",
        """
        from holdfast import pipeline

        @pipeline(columns=["title"])
        async def odd(row, ctx):
            return [
                {"title": 1}, {"other": 1}, None, "text", {"title": object()},
                {"title": float("nan")}, {"title": "\\ud800"},
            ][int(row["id"])]
        """,
    )
    desk.write_rows("in.csv", 7)
    desk.fail("run", "odd.py", "in.csv", "--out", "out.csv", code=3)
    items = desk.json("items", "1")
    messages = [item["error_message"] or "" for item in items]
    assert items[0]["status"] == "DONE"
    assert "lacks the column title" in messages[1]
    assert "NoneType, not a dict" in messages[2]
    assert "str, not a dict" in messages[3]
    assert "not JSON" in messages[4]
    assert {item["error_code"] for item in items[1:5]} == {"INVALID_RESULT"}
    assert items[6]["error_code"] == "INVALID_RESULT"


@on_sqlite
def test_options_of_a_job_are_not_changed_in_silence(desk: Desk) -> None:
    desk.write(
        "greet.py",
        """
        from holdfast import Option, pipeline

        @pipeline(options=[Option("word")])
        async def greet(row, ctx):
            return {"text": ctx.options["word"] + " " + row["title"]}
        """,
    )
    desk.write_rows("in.csv", 1)
    desk.succeed("run", "greet.py", "in.csv", "--option", "word=hello")
    assert "started with different options" in desk.fail(
        "run", "greet.py", "in.csv", "--option", "word=bye"
    )
    desk.succeed("run", "greet.py", "in.csv")
    desk.succeed("run", "greet.py", "in.csv", "--option", "word=bye", "--new")
    assert desk.results(2) == [{"text": "bye t0"}]
