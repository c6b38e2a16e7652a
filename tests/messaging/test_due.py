"""Items of a standing job that become due later start on time in a fleet, whoever announces them.

The sweeper looks once in an hour here, so that it helps only where a test says so.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

import holdfast
from tests.chaos.scene import wait_until
from tests.messaging.fleet_scene import Fleet, message, stop

RARELY = {"HOLDFAST_SWEEP_SECONDS": "3600"}
PATIENCE_SECONDS = 60

TIMED = """
import time
from holdfast import Retry, pipeline

@pipeline(standing=True)
async def timed(row, ctx):
    if row.get("again") and ctx.attempt == 1:
        raise Retry("not yet", after=1.0)
    return {"at": time.time()}
"""


@pytest.fixture
def timed(fleet: Fleet) -> Path:
    path = fleet.folder / "timed.py"
    path.write_text(TIMED)
    return path


def add(fleet: Fleet, rows: list[dict[str, Any]], run_at: datetime | None = None) -> None:
    """As an application does, in its own transaction."""
    with psycopg.connect(fleet.url) as connection:
        holdfast.enqueue(connection, "timed", rows, run_at=run_at)


def wait_for_results(fleet: Fleet, count: int) -> list[float]:
    done = "select result from outcomes where status = 'DONE' order by seq"
    wait_until(lambda: len(fleet.fetch(done)) == count, f"{count} are done", PATIENCE_SECONDS)
    return [float(row[0].partition(":")[2].rstrip("}")) for row in fleet.fetch(done)]


def wait_for_job(fleet: Fleet) -> None:
    wait_until(lambda: fleet.fetch("select 1 from jobs where standing = 1"), "the job is open")


def test_record_for_a_later_time_starts_then_without_the_sweeper(fleet: Fleet, timed: Path) -> None:
    relay, worker = fleet.start_relay(), fleet.start_listener(timed, **RARELY)
    wait_for_job(fleet)
    add(fleet, [{"n": 0}])
    wait_for_results(fleet, 1)
    run_at = datetime.now(UTC) + timedelta(seconds=2)
    add(fleet, [{"n": 1}], run_at)
    add(fleet, [{"n": 2}], run_at + timedelta(seconds=1))
    _, first, second = wait_for_results(fleet, 3)
    assert first >= run_at.timestamp() and second >= run_at.timestamp() + 1
    stop(relay, worker)


def test_records_of_a_message_start_at_their_time(fleet: Fleet, timed: Path) -> None:
    relay, worker = fleet.start_relay(), fleet.start_listener(timed, **RARELY)
    wait_for_job(fleet)
    run_at = datetime.now(UTC) + timedelta(seconds=3)
    body = {"pipeline": "timed", "rows": [{"n": 1}], "run_at": run_at.isoformat()}
    fleet.send("interactive", message("items.add", body))
    (at,) = wait_for_results(fleet, 1)
    assert at >= run_at.timestamp()
    stop(relay, worker)


def test_retry_in_a_standing_job_starts_when_it_is_due_without_the_sweeper(
    fleet: Fleet, timed: Path
) -> None:
    relay, worker = fleet.start_relay(), fleet.start_listener(timed, **RARELY)
    wait_for_job(fleet)
    add(fleet, [{"again": True}])
    assert len(wait_for_results(fleet, 1)) == 1
    stop(relay, worker)


def test_sweeper_announces_what_becomes_due_before_its_next_turn(fleet: Fleet, timed: Path) -> None:
    """No worker was there when the record came."""
    fleet.order("open", timed)
    run_at = datetime.now(UTC) + timedelta(seconds=6)
    add(fleet, [{"n": 1}], run_at)
    relay, worker = fleet.start_relay(), fleet.start_listener(timed, **RARELY)
    (at,) = wait_for_results(fleet, 1)
    assert at >= run_at.timestamp()
    stop(relay, worker)
