"""What people order while workers run, and what `show` then says."""

from __future__ import annotations

import json
import signal
import urllib.request

import pytest

from tests.cli.desk import SLOW, UPPER, Desk, stop, wait_until
from tests.fleet import on_sqlite_and_fleet
from tests.ports import free_port

on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
HANGING, AT_ONCE = "60", "0"


def put_slow_job(desk: Desk, rows: int = 20, speed: str = "0.1") -> None:
    desk.write("slow.py", SLOW)
    desk.write("speed", speed)
    desk.write_rows("in.csv", rows)
    desk.succeed("run", "slow.py", "in.csv", "--no-work")


def test_pause_resume_and_cancel_while_a_worker_runs(desk: Desk) -> None:
    put_slow_job(desk, rows=4000)
    desk.start("work", "slow.py", env={"HOLDFAST_CONCURRENCY_MAX": "8"})
    wait_until(desk.started)
    desk.succeed("pause", "1")
    paused = wait_until(desk.show_if_unleased)
    begun = len(desk.started())
    assert paused["state"] == "PAUSED"
    assert (paused["why"]["kind"], paused["problems"]) == ("paused", [])
    assert "holdfast resume 1" in paused["why"]["text"]
    assert "cannot pause a job that is PAUSED" in desk.fail("pause", "1")
    assert "is paused" in desk.fail("run", "slow.py", "in.csv")

    desk.succeed("resume", "1")
    wait_until(lambda: len(desk.started()) > begun)
    desk.succeed("cancel", "1")
    cancelled = desk.show()
    assert (cancelled["state"], cancelled["ranges"], cancelled["problems"]) == ("CANCELLED", [], [])
    assert cancelled["counters"]["open"] == 0
    assert "cannot resume a job that is CANCELLED" in desk.fail("resume", "1")
    skipped = [i for i in desk.json("items", "1", "--limit", "0") if i["status"] == "SKIPPED"]
    assert skipped and skipped[-1]["error_code"] == "CANCELLED"


@on_sqlite
@pytest.mark.parametrize(
    ("order", "said"),
    [
        ("pause", "Not finished: paused; continue with: holdfast resume 1"),
        ("cancel", "Job 1 was cancelled; run the same command to start a new one."),
    ],
    ids=["pause", "cancel"],
)
def test_run_ends_when_a_person_pauses_or_cancels_its_job(
    desk: Desk, order: str, said: str
) -> None:
    desk.write("slow.py", SLOW)
    desk.write("speed", "0.1")
    desk.write_rows("in.csv", 4000)
    process = desk.start("run", "slow.py", "in.csv", env={"HOLDFAST_CONCURRENCY_MAX": "8"})
    wait_until(desk.started)
    desk.succeed(order, "1")
    _, told = process.communicate(timeout=60)
    assert process.returncode == 1
    assert said in told and "Traceback" not in told
    assert desk.show()["problems"] == []


@on_sqlite_and_fleet
def test_kill_switch_stops_each_scope_until_it_is_off(desk: Desk) -> None:
    put_slow_job(desk, rows=4000)
    desk.start("work", "slow.py", env={"HOLDFAST_CONCURRENCY_MAX": "8"})
    wait_until(desk.started)
    for scope in ([], ["--pipeline", "slow"]):
        desk.succeed("kill-switch", "on", *scope, "--reason", "the shop asked")
        told = wait_until(desk.show_if_unleased)
        assert told["why"]["kind"] == "kill switch"
        assert "(the shop asked)" in told["why"]["text"]
        begun = desk.started()
        (switch,) = desk.json("kill-switch", "list")
        assert switch["reason"] == "the shop asked"
        assert desk.started() == begun
        desk.succeed("kill-switch", "off", *scope)
        wait_until(desk.started_since(begun))
    assert desk.json("kill-switch", "list") == []
    assert "not both" in desk.fail("kill-switch", "on", "--pipeline", "a", "--source", "b")
    assert "Use on, off or list" in desk.fail("kill-switch", "maybe")


@pytest.mark.parametrize("option", ["--pipeline", "--source"])
def test_kill_switch_without_a_name_stops_nothing(desk: Desk, option: str) -> None:
    """As with a variable of the shell that is not set."""
    for name in ("", "a\nb", "\x1b[31mred"):
        assert "is not a scope" in desk.fail("kill-switch", "on", option, name)
    assert desk.json("kill-switch", "list") == []


def test_kill_switch_has_one_scope_even_if_a_name_is_empty(desk: Desk) -> None:
    refused = desk.fail("kill-switch", "on", "--pipeline", "", "--source", "b")
    assert "not both" in refused and desk.json("kill-switch", "list") == []


def test_kill_switch_for_a_pipeline_that_is_not_installed_says_so(desk: Desk) -> None:
    said = desk.holdfast("kill-switch", "on", "--pipeline", "meetngs").stderr
    assert "no installed pipeline is called 'meetngs'" in " ".join(said.split())
    said = desk.holdfast("kill-switch", "on", "--pipeline", "meetings").stderr
    assert "is on." in said and "Check the name" not in said


@on_sqlite_and_fleet
def test_show_names_who_holds_the_last_items(desk: Desk) -> None:
    put_slow_job(desk, rows=2, speed=HANGING)
    worker = desk.start("work", "slow.py")
    wait_until(lambda: len(desk.started()) == 2)
    told = desk.show()
    assert told["why"]["kind"] == "leased by"
    assert told["why"]["text"] == told["ranges"][0]["worker"]
    assert "Not running" not in (page := desk.succeed("show", "1"))
    assert f"Processed by {told['why']['text']}" in page
    assert desk.statuses() == ["PROCESSING"] * 2
    assert len(desk.json("items", "1", "--status", "processing")) == 2
    stop(worker, signal.SIGTERM)
    assert desk.statuses() == ["PENDING"] * 2


@on_sqlite
def test_show_says_when_items_are_tried_again(desk: Desk) -> None:
    desk.write(
        "later.py",
        """
        from holdfast import Retry, pipeline

        @pipeline
        async def later(row, ctx):
            return Retry("come back", after=3600) if ctx.attempt == 1 else {}
        """,
    )
    desk.write_rows("in.csv", 2)
    process = desk.start("run", "later.py", "in.csv")
    wait_until(lambda: desk.command.folder.joinpath(".holdfast").exists())
    told = wait_until(
        lambda: (jobs := desk.json("jobs")) and jobs[0]["counters"]["retried"] == 2 and desk.show()
    )
    assert told["why"]["kind"] == "retry at"
    assert told["why"]["until"] > told["created_at"]
    code, said = stop(process, signal.SIGINT)
    assert (code, "Traceback" in said) == (130, False)


@on_sqlite_and_fleet
def test_reprocess_opens_by_status_and_by_item(desk: Desk) -> None:
    desk.write(
        "moody.py",
        """
        from pathlib import Path
        from holdfast import Failed, NotFound, pipeline

        @pipeline(columns=["title"])
        async def moody(row, ctx):
            bad = Path(__file__).with_name("bad").read_text()
            if bad and row["title"] == "t0":
                return Failed("AUTH_FAILED", "no key")
            if bad and row["title"] == "t1":
                return NotFound
            return {"title": row["title"] + " " + str(ctx.attempt)}
        """,
    )
    desk.write("bad", "yes")
    desk.write_rows("in.csv", 3)
    desk.fail("run", "moody.py", "in.csv", code=3)
    assert desk.statuses() == ["ERROR", "NOT_FOUND", "DONE"]
    (error,) = desk.show()["errors"]
    assert (error["code"], error["count"]) == ("AUTH_FAILED", 1)

    desk.write("bad", "")
    assert "nothing is selected to reprocess" in desk.fail("reprocess", "1")
    assert "no status 'WRONG'" in desk.fail("reprocess", "1", "--status", "WRONG")
    assert "still open" in desk.fail("reprocess", "1", "--status", "PENDING")
    desk.succeed("reprocess", "1", "--status", "ERROR,NOT_FOUND")
    assert desk.statuses() == ["PENDING", "PENDING", "DONE"]
    desk.succeed("work", "moody.py", "--until-idle")
    assert desk.statuses() == ["DONE"] * 3
    desk.succeed("reprocess", "1", "--item", "3", "--item", "1")
    desk.succeed("work", "moody.py", "--until-idle")
    assert desk.counters()["done"] == 3
    tries = desk.json("items", "1", "--item", "1")
    assert [tried["status"] for tried in tries["tries_before"]] == ["ERROR", "DONE"]


@on_sqlite_and_fleet
def test_worker_serves_metrics(desk: Desk) -> None:
    desk.write("upper.py", UPPER)
    desk.write_rows("in.csv", 30)
    desk.succeed("run", "upper.py", "in.csv", "--no-work")
    port = free_port()
    with_token = {"HOLDFAST_METRICS_TOKEN": "sesame"}
    worker = desk.start("work", "upper.py", "--health-port", str(port), env=with_token)

    def scrape() -> str:
        try:
            url, token = f"http://127.0.0.1:{port}/metrics", {"Authorization": "Bearer sesame"}
            request = urllib.request.Request(url, headers=token)
            with urllib.request.urlopen(request, timeout=5) as reply:
                return str(reply.read().decode())
        except OSError:
            return ""

    done = 'holdfast_items_total{pipeline="upper",status="DONE"} 30.0'
    found = wait_until(lambda: done in (text := scrape()) and text)
    for name in ("item_seconds", "database_seconds", "claim_items"):
        assert f"holdfast_{name}" in found
    assert stop(worker, signal.SIGTERM)[0] == 0
    assert "port" in desk.fail("work", "upper.py", "--health-port", "70000", code=2)


@on_sqlite
def test_orders_to_jobs_that_are_not_there(desk: Desk) -> None:
    for order in ("show", "items", "pause", "resume", "cancel"):
        assert "there is no job 7" in desk.fail(order, "7")
    assert "there is no job 7" in desk.fail("reprocess", "7", "--item", "1")
    assert "there is no job 7" in desk.fail("export", "7", "--format", "csv")
    assert json.loads(desk.succeed("jobs", "--json")) == []
    assert "No jobs yet" in desk.succeed("jobs")
    assert "No dead letters" in desk.succeed("dead", "list")
