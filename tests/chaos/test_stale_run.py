"""A run whose earlier run vanished without a trace on this host."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from tests.chaos.scene import DEEDS, Scene, finish

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


def test_run_waits_for_the_lease_of_a_run_that_died_on_another_host(
    scene: Scene, sqlite_url: str
) -> None:
    """It cannot be seen that the other is dead; its lease on the file has to run out."""
    command = ("run", f"{DEEDS}:deeds", scene.table([""] * 500))
    small = {"HOLDFAST_INGEST_MIN_ROWS": "100", "HOLDFAST_INGEST_MAX_ROWS": "100"}
    killed = scene.run(*command, "--no-work", HOLDFAST_FAULT="ingest/committed@2", **small)
    assert killed.returncode == -9
    with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as database:
        database.execute("update holdfast_workers set host = 'elsewhere'")
        database.commit()
    finish(scene.start(*command, **small))
    scene.assert_exact(1, done=500)


def test_worker_that_can_never_settle_says_why_and_ends(scene: Scene, sqlite_url: str) -> None:
    """A table of ours that is broken is nothing to wait for; nothing is lost by it."""
    job_id = scene.take_in([""] * 20)
    path = sqlite_url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(path)) as database:
        database.execute("alter table holdfast_outcomes rename to gone")
    worker = scene.start_worker(job_id)
    worker.wait(30)
    assert worker.returncode not in (0, None)
    assert "outcomes" in worker.said()
    with closing(sqlite3.connect(path)) as database:
        database.execute("alter table gone rename to holdfast_outcomes")
    finish(scene.start_worker(job_id))
    scene.assert_exact(job_id, done=20)
