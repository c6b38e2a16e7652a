"""What a pipeline does wrong harms the row it does it for, and nothing else."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.chaos.children import Child
from tests.chaos.scene import Scene, finish, wait_until
from tests.fleet import on_sqlite_and_fleet
from tests.store.checks import MAKE_DUE, execute_at

HOSTILE = Path(__file__).with_name("hostile.py")
SOME_ITEMS_FAILED = 3
PATIENCE_SECONDS = 180.0
ONE_TRY = {"HOLDFAST_MAX_ATTEMPTS_ERROR": "1"}

RAISED = [
    "raise:cancelled", "raise:unspeakable", "raise:base-exception", "raise:generator-exit",
    "raise:stop-iteration", "raise:exit-0", "raise:exit-3", "raise:interrupt",
]  # fmt: skip
UNREADABLE = [
    "retry-text", "retry-nan", "retry-ages", "failed-number", "bad-code",
]  # fmt: skip
WAITS = ["raise:retry-text", "return:retry-nan", "return:retry-ages"]

on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
on_postgres = pytest.mark.parametrize(
    "database_url", [pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True
)


def _among_innocents(hostile: Sequence[str]) -> list[str]:
    return [deed for one in hostile for deed in ("", one)] + [""] * 4


def _run(scene: Scene, pipeline: str, deeds: Sequence[str], **more: str) -> Child:
    """Fails when the command does not end by itself."""
    child = scene.start("run", f"{HOSTILE}:{pipeline}", scene.table(deeds), **more)
    child.wait(PATIENCE_SECONDS)
    return child


def _take_in(scene: Scene, pipeline: str, deeds: Sequence[str]) -> None:
    finish(scene.start("run", f"{HOSTILE}:{pipeline}", scene.table(deeds), "--no-work"))


def _errors(scene: Scene, deeds: Sequence[str]) -> dict[str, str]:
    """The deeds that ended as ERROR in job 1, with their codes."""
    rows = scene.fetch("select seq, error_code from outcomes where status = 'ERROR'")
    return {deeds[row[0] - 1]: row[1] for row in rows}


def _count(scene: Scene, table: str, job_id: int = 1) -> int:
    return int(scene.fetch(f"select count(*) from {table} where job_id = {job_id}")[0][0])


def _state(scene: Scene, job_id: int) -> str:
    return str(scene.fetch(f"select state from jobs where id = {job_id}")[0][0])


@on_sqlite
@pytest.mark.parametrize(
    ("pipeline", "hostile"),
    [
        ("unruly", RAISED),
        ("unruly", [f"{how}:{name}" for name in UNREADABLE for how in ("raise", "return")]),
        ("unruly_thread", RAISED),
    ],
    ids=["raised", "unreadable", "raised-in-threads"],
)
def test_item_that_breaks_the_rules_is_an_error_and_its_neighbours_are_done(
    scene: Scene, pipeline: str, hostile: list[str]
) -> None:
    deeds = _among_innocents(hostile)
    done = _run(scene, pipeline, deeds, **ONE_TRY)
    assert done.returncode == SOME_ITEMS_FAILED, done.said()
    assert set(_errors(scene, deeds)) == set(hostile)
    scene.assert_exact(1, done=len(deeds) - len(hostile), error=len(hostile))
    assert scene.dead_letters() == []
    assert max(scene.witnessed().values()) == 1


def test_wait_that_is_not_a_sensible_number_of_seconds_holds_up_only_its_item(scene: Scene) -> None:
    deeds = _among_innocents(WAITS)
    _take_in(scene, "unruly", deeds)
    worker = scene.start("work", HOSTILE, HOLDFAST_MAX_ATTEMPTS_ERROR="2")
    wait_until(lambda: _count(scene, "outcomes") == len(deeds), "each item had its try", 30)
    worker.send_signal(signal.SIGTERM)
    finish(worker)
    told = scene.show(1)
    assert told["problems"] == []
    assert told["counters"]["done"] == len(deeds) - len(WAITS)
    assert max(scene.witnessed().values()) <= 2


@on_postgres
def test_save_that_hides_a_refused_row_fails_only_that_row(scene: Scene) -> None:
    deeds = _among_innocents(["taken"])
    done = _run(scene, "keeper", deeds, **ONE_TRY)
    assert done.returncode == SOME_ITEMS_FAILED, done.said()
    assert set(_errors(scene, deeds)) == {"taken"}
    scene.assert_exact(1, done=len(deeds) - 1, error=1)
    assert scene.fetch("select count(*) from kept")[0][0] == len(deeds)


@on_sqlite
def test_items_that_end_their_process_are_dead_letters(scene: Scene) -> None:
    """With either exit code: it is not the worker that came to its end."""
    deeds = _among_innocents(["die:0", "die:1"])
    done = _run(scene, "unruly", deeds)
    assert done.returncode == SOME_ITEMS_FAILED, done.said()
    assert _errors(scene, deeds) == {"die:0": "CRASHED", "die:1": "CRASHED"}
    scene.assert_exact(1, done=len(deeds) - 2, error=2)
    assert {letter["seq"] for letter in scene.dead_letters()} == {2, 4}


@on_sqlite
def test_item_that_does_not_let_itself_be_stopped_is_timed_out(scene: Scene) -> None:
    deeds = _among_innocents(["swallow"])
    done = _run(scene, "deaf", deeds, **ONE_TRY)
    assert done.returncode == SOME_ITEMS_FAILED, done.said()
    assert _errors(scene, deeds) == {"swallow": "TIMEOUT"}
    scene.assert_exact(1, done=len(deeds) - 1, error=1)


@on_sqlite
def test_item_that_is_not_found_and_cannot_be_saved_ends_as_error(scene: Scene) -> None:
    deeds = _among_innocents(["miss"])
    done = _run(scene, "fussy", deeds, HOLDFAST_MAX_ATTEMPTS_ERROR="3")
    assert done.returncode == SOME_ITEMS_FAILED, done.said()
    assert set(_errors(scene, deeds)) == {"miss"}
    scene.assert_exact(1, done=len(deeds) - 1, error=1)
    assert scene.witnessed()[2] == 3


@on_sqlite_and_fleet
def test_job_of_slow_items_leaves_room_for_another_of_the_same_pipeline(scene: Scene) -> None:
    _take_in(scene, "unruly", ["sleep:50"] * 6)
    _take_in(scene, "unruly", [""] * 5)
    one_at_a_time = {
        "HOLDFAST_CONCURRENCY_MAX": "1",
        "HOLDFAST_WORKER_TARGET_SLICE_MS": "500",
        "HOLDFAST_DRAIN_SECONDS": "0",
    }
    worker = scene.start("work", HOSTILE, **one_at_a_time)
    wait_until(lambda: _state(scene, 2) == "DONE", "the second job has its turn", 20)
    worker.send_signal(signal.SIGTERM)
    finish(worker)
    told = scene.show(1)
    assert (told["state"], told["problems"]) == ("RUNNING", [])
    assert told["counters"]["open"] > 0
    scene.assert_exact(2, done=5)


@on_sqlite
def test_page_that_takes_longer_than_the_lease_is_fetched_once(scene: Scene) -> None:
    command = ("run", f"{HOSTILE}:finding_slowly", "--workers", "2")
    done = scene.run(*command)
    assert done.returncode == 0, done.said()
    scene.assert_exact(1, done=20)
    assert scene.witnessed() == {1: 1, 2: 1}


@on_sqlite
def test_discovery_that_says_it_was_cancelled_fails_its_stream(scene: Scene) -> None:
    done = scene.run("run", f"{HOSTILE}:finding_cancelled")
    assert done.returncode == 1, done.said()
    told = scene.show(1)
    assert (told["state"], told["why"]["kind"]) == ("FAILED", "discovery failed")
    assert told["problems"] == []
    assert told["counters"]["done"] == told["counters"]["accepted"] == 10


@on_sqlite
def test_gate_with_one_place_lets_two_workers_through_in_turn(scene: Scene) -> None:
    command = ("run", f"{HOSTILE}:narrow", scene.table([""] * 30), "--workers", "2")
    finish(scene.start(*command), 30)
    scene.assert_exact(1, done=30)


@on_sqlite
def test_kill_switch_holds_an_ingest_until_it_is_off(scene: Scene) -> None:
    rows = 40_000
    slow = scene.folder / "slow"
    slow.touch()
    small = {"HOLDFAST_INGEST_MIN_ROWS": "100", "HOLDFAST_INGEST_MAX_ROWS": "100"}
    command = ("run", f"{HOSTILE}:slowly_keyed", scene.table([""] * rows), "--no-work")
    run = scene.start(*command, CHAOS_SLOW=str(slow), **small)
    wait_until(lambda: _count(scene, "items") > 0, "the ingest is under way")
    finish(scene.start("kill-switch", "on"))
    wait_until(lambda: _stands_still(scene), "nothing more is taken in", 20)
    assert 0 < _count(scene, "items") < rows
    assert run.returncode is None
    slow.unlink()
    finish(scene.start("kill-switch", "off"))
    finish(run)
    told = scene.show(1)
    assert (told["counters"]["accepted"], told["problems"]) == (rows, [])


def _stands_still(scene: Scene) -> bool:
    before = _count(scene, "items")
    time.sleep(1)
    return _count(scene, "items") == before


def test_two_runs_of_one_file_at_once_make_one_job(scene: Scene) -> None:
    """Five times, each with another file: whether they meet is chance."""
    for number in range(5):
        table = scene.table([f"file {number}"] * 100)
        command = ("run", f"{HOSTILE}:unruly", table, "--no-work")
        for one in [scene.start(*command), scene.start(*command)]:
            finish(one)
    jobs = json.loads(finish(scene.start("jobs", "--json")))
    assert [job["counters"]["accepted"] for job in jobs] == [100] * 5
    assert len({job["name"] for job in jobs}) == 5
    assert scene.show(jobs[-1]["id"])["problems"] == []


@on_sqlite_and_fleet
def test_schedule_whose_pipeline_is_broken_does_not_hold_up_the_others(scene: Scene) -> None:
    for name, pipeline in (("a", "finding_nothing"), ("b", "finding"), ("c", "finding_nothing")):
        add = ("schedule", "add", name, f"{HOSTILE}:{pipeline}", "--cron", "0 6 * * *")
        finish(scene.start(*add))
    execute_at(scene.url, MAKE_DUE)
    worker = scene.start("work", HOSTILE)
    noted = "select count(*) from schedules where last_job_id is not null or error is not null"
    wait_until(lambda: scene.fetch(noted)[0][0] == 3, "each was fired or says why not", 20)
    wait_until(lambda: _state(scene, 1) == "DONE", "the job of the other is done", 20)
    worker.send_signal(signal.SIGTERM)
    finish(worker)
    scene.assert_exact(1, done=20)
    told = json.loads(finish(scene.start("schedule", "list", "--json")))
    listed = {one["name"]: one for one in told}
    assert (listed["b"]["last_job_id"], listed["b"]["error"]) == (1, None)
    for broken in ("a", "c"):
        assert listed[broken]["last_job_id"] is None
        assert "needs the option region" in listed[broken]["error"]
