"""Processes are stopped, killed, frozen: the same command continues; no other item is charged."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from collections import Counter
from contextlib import closing

import pytest

from holdfast.urls import sqlite_file
from tests.chaos.children import Child
from tests.chaos.scene import DEEDS, Scene, finish, wait_until

SIGNALS = pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])


def _end(process: Child, number: signal.Signals) -> None:
    process.send_signal(number)
    process.wait(30)


@pytest.mark.exhaustive(keep=1)
@SIGNALS
def test_run_that_is_stopped_again_and_again_is_continued_by_the_same_command(
    scene: Scene, number: signal.Signals
) -> None:
    command = ("run", f"{DEEDS}:saving", scene.table(["sleep:0.01"] * 1000))
    settings = {"HOLDFAST_CONCURRENCY_MAX": "8", "HOLDFAST_INGEST_MAX_ROWS": "256"}
    for _ in range(3):
        run = scene.start(*command, **settings)
        scene.wait_for_starts(50)
        _end(run, number)
    finish(scene.start(*command, **settings))
    scene.assert_exact(1, done=1000)
    scene.assert_saved_once(1000)
    assert scene.dead_items() == []


@pytest.mark.exhaustive(keep=1)
@SIGNALS
@pytest.mark.parametrize("items", [1, 20])
def test_three_deploys_make_no_dead_letter_of_an_innocent_item(
    scene: Scene, number: signal.Signals, items: int
) -> None:
    """Items are in work whenever a worker goes, and they take longer than it stays."""
    job_id = scene.take_in(["sleep:0.3"] * items)
    for _ in range(3):
        worker = scene.start_worker(job_id, HOLDFAST_DRAIN_SECONDS="0")
        scene.wait_for_starts(1)
        _end(worker, number)
    finish(scene.start_worker(job_id))
    scene.assert_exact(job_id, done=items)
    assert scene.dead_items() == []


def test_item_that_kills_its_worker_ends_as_a_dead_letter_and_its_neighbours_are_done(
    scene: Scene,
) -> None:
    deeds = ["", "kill", *["sleep:0.02"] * 50, "hiccup:1", ""]
    done = scene.run("run", f"{DEEDS}:saving", scene.table(deeds))
    assert done.returncode == 3, done.said()
    scene.assert_exact(1, done=len(deeds) - 1, error=1)
    (letter,) = scene.dead_items()
    assert (letter["seq"], letter["code"]) == (2, "CRASHED")


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_dead_letter_that_is_replayed_after_the_mend_is_done(scene: Scene) -> None:
    table = scene.table(["", "", "kill", ""])
    assert scene.run("run", f"{DEEDS}:deeds", table).returncode == 3
    (letter,) = scene.dead_letters()
    replayed = scene.run("dead", "replay", str(letter["id"]))
    assert replayed.returncode == 0, replayed.said()
    assert scene.show(1)["counters"]["open"] == 1
    finish(scene.start("run", f"{DEEDS}:deeds", table, CHAOS_MENDED="yes"))
    scene.assert_exact(1, done=4)
    assert scene.dead_letters() == []


def test_two_workers_share_a_job(scene: Scene) -> None:
    job_id = scene.take_in(["sleep:0.02"] * 800)
    workers = [scene.start_worker(job_id, HOLDFAST_CONCURRENCY_MAX="4") for _ in range(2)]
    for worker in workers:
        finish(worker)
    scene.assert_exact(job_id, done=800)
    shares = Counter(result["pid"] for result in scene.results(job_id).values())
    assert set(shares) == {worker.pid for worker in workers}
    assert min(shares.values()) > 100, shares


def test_worker_that_was_frozen_past_its_lease_writes_nothing(scene: Scene) -> None:
    """It held all items, each of them in work; another took them over meanwhile."""
    job_id = scene.take_in(["sleep:0.5"] * 8, "saving")
    frozen = scene.start_worker(job_id)
    wait_until(lambda: len(scene.witnessed()) == 8, "all items are in work")
    _freeze_between_writes(scene, frozen.pid)
    try:
        other = scene.start_worker(job_id)
        finish(other)
    finally:
        os.kill(frozen.pid, signal.SIGCONT)
    assert "lease.lost" in finish(frozen)
    scene.assert_exact(job_id, done=8)
    scene.assert_saved_once(8)
    assert {result["pid"] for result in scene.results(job_id).values()} == {other.pid}


def _freeze_between_writes(scene: Scene, pid: int) -> None:
    """A process frozen in a transaction keeps SQLite's only lock: no other could continue."""
    file = sqlite_file(scene.url)
    while True:
        os.kill(pid, signal.SIGSTOP)
        if file is None:
            return
        try:
            with closing(sqlite3.connect(file, timeout=0.1, isolation_level=None)) as database:
                database.execute("begin immediate")
                database.execute("rollback")
            return
        except sqlite3.OperationalError:
            os.kill(pid, signal.SIGCONT)
            time.sleep(0.02)
