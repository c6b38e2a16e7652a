"""A fleet: processes on PostgreSQL and RabbitMQ, each of which may come and go."""

from __future__ import annotations

import pytest

from tests.chaos.scene import wait_until
from tests.messaging.fleet_scene import HOSTILE, METRICS_TOKEN, Fleet, message, metric, nudge, stop
from tests.ports import free_port

#: Finds its records page by page, and takes its time over each.
FLOWING = """
import asyncio
from holdfast import Page, Pipeline, Record

class Flowing(Pipeline):
    async def discover(self, source, cursor, ctx):
        for page in range(cursor or 0, 20):
            await asyncio.sleep(0.05)
            yield Page([Record({"n": page * 10 + n}) for n in range(10)],
                       next_cursor=page + 1, end=page == 19)

    async def process(self, row, ctx):
        await asyncio.sleep(0.01)
        return {"n": row["n"]}
"""
SHORT_SLICES = {"HOLDFAST_WORKER_TARGET_SLICE_MS": "100"}
FEW_AT_ONCE = {"HOLDFAST_CONCURRENCY_MAX": "4"}
METRICS = {"HOLDFAST_METRICS_TOKEN": METRICS_TOKEN}


def test_uploads_are_worked_by_the_processes_of_a_worker_host(fleet: Fleet) -> None:
    relay, host = fleet.start_relay(), fleet.start_worker_host(2)
    jobs = [fleet.take_in(["sleep:0.02", "hiccup:1", "miss"] * 100, "saving") for _ in range(2)]
    fleet.wait_done(*jobs)
    for job_id in jobs:
        fleet.assert_exact(job_id, done=200, not_found=100)
    fleet.assert_saved_once_each(2, 300)
    processes = {result["pid"] for job_id in jobs for result in fleet.results(job_id).values()}
    assert len(processes) == 2
    stop(relay, host)
    assert fleet.dead_letters() == []


def test_discovery_continues_where_each_slice_ended(fleet: Fleet) -> None:
    path = fleet.folder / "flowing.py"
    path.write_text(FLOWING)
    fleet.order("run", path, "--no-work", "--max-items", "40")
    fleet.order("resume", "1", "--max-items", "1000")
    relay, worker = fleet.start_relay(), fleet.start_listener(path, **SHORT_SLICES)
    fleet.wait_done(1)
    fleet.assert_exact(1, done=200)
    numbers = [result["n"] for _, result in sorted(fleet.results(1).items())]
    assert numbers == list(range(200))
    stop(relay, worker)


def test_work_needs_neither_relay_nor_broker(fleet: Fleet) -> None:
    nowhere = {"HOLDFAST_BROKER_URL": f"amqp://guest:guest@127.0.0.1:{free_port()}/"}
    job_id = fleet.take_in(["again:1"] * 20, "saving")
    worker = fleet.start_listener(**nowhere)
    fleet.wait_done(job_id)
    assert "broker.gone" in stop(worker)[0]
    fleet.assert_exact(job_id, done=20)
    fleet.assert_saved_once(20)


def test_stopped_worker_hands_over_and_its_nudge_is_not_a_dead_letter(fleet: Fleet) -> None:
    """Five deploys are more than an order may be delivered."""
    fleet.start_relay()
    job_id = fleet.take_in(["sleep:0.2"] * 60, "saving")
    for _ in range(5):
        worker = fleet.start_listener(HOLDFAST_DRAIN_SECONDS="0.1", **FEW_AT_ONCE)
        fleet.wait_for_starts(2)
        stop(worker)
        leased = "select count(*) from ranges where worker is not null or expiries > 0"
        assert fleet.fetch(leased)[0][0] == 0
    fleet.start_listener()
    fleet.wait_done(job_id)
    fleet.assert_exact(job_id, done=60)
    fleet.assert_saved_once(60)
    assert fleet.dead_letters() == []


def test_small_job_is_not_stuck_behind_a_large_one(fleet: Fleet) -> None:
    fleet.start_relay()
    large = fleet.take_in(["sleep:0.05"] * 5000)
    fleet.start_listener(HOLDFAST_WORKER_TARGET_SLICE_MS="500", **FEW_AT_ONCE)
    fleet.wait_for_starts(20)
    small = fleet.take_in([""] * 5)
    fleet.wait_done(small)
    assert fleet.state(large) == "RUNNING"
    assert fleet.outcomes(large) < 5000


def test_order_by_message_starts_one_job_even_when_it_comes_twice(fleet: Fleet) -> None:
    key = {"HOLDFAST_MESSAGE_KEY": "a key that is shared"}
    relay, worker = fleet.start_relay(), fleet.start_listener(HOSTILE, **key)
    body = {"pipeline": "finding", "owner": "ana", "options": {}}
    order = message("job.start", body, key="a key that is shared")
    fleet.send("orders", order, order)
    fleet.wait_done(1)
    fleet.send("orders", order)
    wait_until(lambda: fleet.depth("orders") == 0, "the third is taken")
    stop(relay, worker)
    assert [(row[0], row[1]) for row in fleet.fetch("select id, owner_id from jobs")] == [
        (1, "ana")
    ]
    fleet.assert_exact(1, done=20)


@pytest.mark.parametrize("order", ["pause", "cancel"])
def test_nothing_is_written_after_a_job_was_stopped(fleet: Fleet, order: str) -> None:
    relay, job_id = fleet.start_relay(), fleet.take_in(["sleep:0.05"] * 300, "saving")
    worker = fleet.start_listener(**FEW_AT_ONCE)
    fleet.wait_for_starts(20)
    fleet.order(order, str(job_id))
    unleased = "select count(*) from ranges where worker is not null"
    wait_until(lambda: fleet.fetch(unleased)[0][0] == 0, "all is handed in")
    before = (fleet.outcomes(job_id), fleet.fetch("select count(*) from saved")[0][0])
    fleet.send("work.saving", *[nudge(job_id)] * 6)
    wait_until(lambda: fleet.nudges("work.saving") == (0, 0), "the worker lets go of all nudges")
    stop(relay, worker)
    assert (fleet.outcomes(job_id), fleet.fetch("select count(*) from saved")[0][0]) == before
    assert fleet.show(job_id)["problems"] == []
    assert fleet.dead_letters() == []


def test_sources_wait_while_too_much_is_open(fleet: Fleet) -> None:
    path = fleet.folder / "flowing.py"
    path.write_text(
        FLOWING.replace("sleep(0.05)", "sleep(0.1)").replace("sleep(0.01)", "sleep(0.2)")
    )
    fleet.order("run", path, "--no-work", "--max-items", "10")
    # More than comes in between two looks at the backlog, of which there is one a second.
    fleet.order("resume", "1", "--max-items", "1000")
    fleet.start_relay()
    port, bound = free_port(), {"HOLDFAST_BACKLOG_MAX_ITEMS": "30"}
    fleet.start_listener(
        path,
        "--health-port",
        str(port),
        **METRICS,
        **bound,
        **SHORT_SLICES,
        HOLDFAST_CONCURRENCY_MAX="4",
    )
    wait_until(lambda: metric(port, "holdfast_backpressure") == 1, "the source is held back")
    fleet.wait_done(1)
    fleet.assert_exact(1, done=200)
