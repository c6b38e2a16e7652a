"""Workers and schedules: who is alive, and what fires when, once."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from holdfast.features.console import open_console
from holdfast.features.exports.exports import NewExport
from holdfast.features.schedules.table import DueSchedule, Schedules
from holdfast.kernel import Store
from holdfast.pipeline import Gate
from tests.store.checks import claim_one, execute, fetch, filled_job, lease_stream, make_job
from tests.store.scenarios import SCHEDULED

PAST = datetime(2026, 1, 1, 3, 0, 0, 123000, tzinfo=UTC)
FUTURE = datetime(2100, 1, 1, tzinfo=UTC)


async def test_worker_is_alive_until_it_stops_or_is_not_seen(store: Store) -> None:
    await store.workers.add_worker("one", "host", 42, ["prices", "posts"])
    await store.workers.add_worker("two", "host", 43, [])
    alive = await store.workers.live()
    assert [(worker["name"], worker["pipelines"]) for worker in alive] == [
        ("one", ["prices", "posts"]), ("two", []),
    ]  # fmt: skip
    await store.workers.stop_worker("two")
    await execute(store, "update workers set seen_at = @after(-60.0)")
    assert await store.workers.live() == []
    await store.workers.beat("one")
    assert [worker["name"] for worker in await store.workers.live()] == ["one"]


async def test_workers_of_yesterday_are_forgotten(store: Store) -> None:
    for name in ("alive", "stopped", "vanished"):
        await store.workers.add_worker(name, "host", 1, [])
    await store.workers.stop_worker("stopped")
    await execute(store, "update workers set stopped_at = @after(-90000.0) where name = 'stopped'")
    await execute(store, "update workers set seen_at = @after(-90000.0) where name = 'vanished'")
    await store.workers.forget_workers()
    assert [row[0] for row in await fetch(store, "select name from workers")] == ["alive"]


async def _schedule(store: Store, name: str, next_at: datetime) -> None:
    await Schedules(store.database).set_schedule(
        name, "prices.py:prices", "0 3 * * *", "Asia/Ho_Chi_Minh", {"market": "VN"}, next_at
    )


async def test_due_schedule_carries_what_it_was_set_with(store: Store) -> None:
    await _schedule(store, "nightly", PAST)
    await _schedule(store, "later", FUTURE)
    due = await Schedules(store.database).due_schedules()
    assert [(one.name, one.cron, one.zone, one.options) for one in due] == [
        ("nightly", "0 3 * * *", "Asia/Ho_Chi_Minh", {"market": "VN"})
    ]
    assert due[0].now > PAST
    listed = await Schedules(store.database).all()
    assert [(one["name"], one["next_at"]) for one in listed] == [
        ("later", FUTURE), ("nightly", PAST),
    ]  # fmt: skip


async def test_schedule_fires_once_under_two_sweepers(store: Store, other_store: Store) -> None:
    await _schedule(store, "nightly", PAST)
    one, two = (
        await Schedules(store.database).due_schedules(),
        await Schedules(other_store.database).due_schedules(),
    )

    async def fire(opened: Store, due: DueSchedule) -> int | None:
        return await Schedules(opened.database).fire_schedule(due, FUTURE, SCHEDULED)

    fired = await asyncio.gather(fire(store, one[0]), fire(other_store, two[0]))
    jobs = [job_id for job_id in fired if job_id is not None]
    assert len(jobs) == 1
    assert [row.job.id for row in await open_console(store).jobs.page(None, 10)] == jobs
    assert await Schedules(store.database).due_schedules() == []
    schedule = (await Schedules(store.database).all())[0]
    assert (schedule["next_at"], schedule["last_job_id"]) == (FUTURE, jobs[0])


async def test_failed_firing_is_kept_until_the_schedule_is_set_again(store: Store) -> None:
    await _schedule(store, "nightly", PAST)
    due = (await Schedules(store.database).due_schedules())[0]
    assert await Schedules(store.database).skip_schedule(
        due, PAST + timedelta(days=1), "no such file"
    )
    assert not await Schedules(store.database).skip_schedule(
        due, PAST + timedelta(days=2), "no such file"
    )
    assert (await Schedules(store.database).all())[0]["error"] == "no such file"
    await _schedule(store, "nightly", FUTURE)
    assert (await Schedules(store.database).all())[0]["error"] is None


async def test_removed_schedule_is_gone(store: Store) -> None:
    await _schedule(store, "nightly", PAST)
    assert await Schedules(store.database).remove_schedule("nightly") is True
    assert await Schedules(store.database).remove_schedule("nightly") is False
    assert await Schedules(store.database).due_schedules() == []


async def test_worker_last_seen_before_the_clock_was_set_back_is_lost(store: Store) -> None:
    """What it holds would be its own as long as the jump."""
    job_id = await filled_job(store, 3)
    for name in ("one", "two"):
        await store.workers.add_worker(name, "host", 1, [])
    await claim_one(store, job_id, worker="one")
    await execute(store, "update workers set seen_at = @after(3600) where name = 'one'")
    assert await store.workers.silent("two") == ["one"]
    assert await store.workers.lose("one") == [job_id]
    assert await claim_one(store, job_id, worker="two")
    assert await store.workers.silent("two") == []


async def test_worker_counts_as_lost_after_the_time_that_it_said(store: Store) -> None:
    for name, seconds in (("quick", 5.0), ("slow", 90.0)):
        await store.workers.add_worker(name, "host", 1, [], lost_after_seconds=seconds)
    await execute(store, "update workers set seen_at = @after(-30)")
    assert await store.workers.silent("observer") == ["quick"]
    assert await store.workers.lose("slow") is None
    assert [worker["name"] for worker in await store.workers.live()] == ["slow"]
    await store.workers.beat("quick", 45.0)
    await execute(store, "update workers set seen_at = @after(-30)")
    assert await store.workers.silent("observer") == []


async def test_claim_whose_answer_was_lost_is_freed_as_a_stray(store: Store) -> None:
    job_id = await filled_job(store, 3, 3)
    await store.workers.add_worker("one", "host", 1, [])
    kept = await claim_one(store, job_id, 3, "one")
    stray = await claim_one(store, job_id, 3, "one")
    tokens = {kept.lease.token, stray.lease.token}
    assert await store.workers.tokens_of("one") == tokens
    await store.workers.free_strays("one", {stray.lease.token})
    assert await store.workers.tokens_of("one") == {kept.lease.token}
    again = await claim_one(store, job_id, 3, "two")
    assert (again.lease.lo, again.lease.expiries) == (stray.lease.lo, 0)


async def test_everything_that_a_lost_worker_held_is_free(store: Store) -> None:
    console, job_id = open_console(store), await filled_job(store, 3)
    await store.workers.add_worker("one", "host", 1, [])
    await claim_one(store, job_id, worker="one")
    export_id = await console.exports.add_export(NewExport("tester", job_id, "csv", (), True, {}))
    assert await console.exports.lease_export(export_id, "one")
    assert await store.workers.hold_duty("sweep", "one")
    await store.gates.declare(Gate("api", concurrency=4))
    await store.gates.keep_slots("api", "one", 3)
    stream = await lease_stream(store, await make_job(store), "one")
    assert await store.workers.lose("one", gone=True) == [job_id]
    assert await claim_one(store, job_id, worker="two")
    assert await console.exports.lease_export(export_id, "two")
    assert await store.workers.hold_duty("sweep", "two")
    assert await fetch(store, "select 1 from gate_holds") == []
    assert await store.ingest.lease_stream(stream.job_id, "two") is not None
