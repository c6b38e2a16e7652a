"""Workers and schedules: who is alive, and what fires when, once."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from holdfast.console import open_console
from holdfast.store import Store
from holdfast.store.schedules import DueSchedule
from tests.store.checks import claim_one, execute, fetch, filled_job
from tests.store.scenarios import SCHEDULED

PAST = datetime(2026, 1, 1, 3, 0, 0, 123000, tzinfo=UTC)
FUTURE = datetime(2100, 1, 1, tzinfo=UTC)


async def test_worker_is_alive_until_it_stops_or_is_not_seen(store: Store) -> None:
    await store.workers.add_worker("one", "host", 42, ["prices", "posts"])
    await store.workers.add_worker("two", "host", 43, [])
    alive = await store.workers.live(30)
    assert [(worker["name"], worker["pipelines"]) for worker in alive] == [
        ("one", ["prices", "posts"]), ("two", []),
    ]  # fmt: skip
    await store.workers.stop_worker("two")
    await execute(store, "update workers set seen_at = @after(-60.0)")
    assert await store.workers.live(30) == []
    await store.workers.see_worker("one")
    assert [worker["name"] for worker in await store.workers.live(30)] == ["one"]


async def test_workers_of_yesterday_are_forgotten(store: Store) -> None:
    for name in ("alive", "stopped", "vanished"):
        await store.workers.add_worker(name, "host", 1, [])
    await store.workers.stop_worker("stopped")
    await execute(store, "update workers set stopped_at = @after(-90000.0) where name = 'stopped'")
    await execute(store, "update workers set seen_at = @after(-90000.0) where name = 'vanished'")
    await store.workers.forget_workers()
    assert [row[0] for row in await fetch(store, "select name from workers")] == ["alive"]


async def _schedule(store: Store, name: str, next_at: datetime) -> None:
    await store.schedules.set_schedule(
        name, "prices.py:prices", "0 3 * * *", "Asia/Ho_Chi_Minh", {"market": "VN"}, next_at
    )


async def test_due_schedule_carries_what_it_was_set_with(store: Store) -> None:
    await _schedule(store, "nightly", PAST)
    await _schedule(store, "later", FUTURE)
    due = await store.schedules.due_schedules()
    assert [(one.name, one.cron, one.zone, one.options) for one in due] == [
        ("nightly", "0 3 * * *", "Asia/Ho_Chi_Minh", {"market": "VN"})
    ]
    assert due[0].now > PAST
    listed = await store.schedules.all()
    assert [(one["name"], one["next_at"]) for one in listed] == [
        ("later", FUTURE), ("nightly", PAST),
    ]  # fmt: skip


async def test_schedule_fires_once_under_two_sweepers(store: Store, other_store: Store) -> None:
    await _schedule(store, "nightly", PAST)
    one, two = await store.schedules.due_schedules(), await other_store.schedules.due_schedules()

    async def fire(opened: Store, due: DueSchedule) -> int | None:
        return await opened.schedules.fire_schedule(due, FUTURE, SCHEDULED)

    fired = await asyncio.gather(fire(store, one[0]), fire(other_store, two[0]))
    jobs = [job_id for job_id in fired if job_id is not None]
    assert len(jobs) == 1
    assert [row.job.id for row in await open_console(store).jobs.page(None, 10)] == jobs
    assert await store.schedules.due_schedules() == []
    schedule = (await store.schedules.all())[0]
    assert (schedule["next_at"], schedule["last_job_id"]) == (FUTURE, jobs[0])


async def test_failed_firing_is_kept_until_the_schedule_is_set_again(store: Store) -> None:
    await _schedule(store, "nightly", PAST)
    due = (await store.schedules.due_schedules())[0]
    assert await store.schedules.skip_schedule(due, PAST + timedelta(days=1), "no such file")
    assert not await store.schedules.skip_schedule(due, PAST + timedelta(days=2), "no such file")
    assert (await store.schedules.all())[0]["error"] == "no such file"
    await _schedule(store, "nightly", FUTURE)
    assert (await store.schedules.all())[0]["error"] is None


async def test_removed_schedule_is_gone(store: Store) -> None:
    await _schedule(store, "nightly", PAST)
    assert await store.schedules.remove_schedule("nightly") is True
    assert await store.schedules.remove_schedule("nightly") is False
    assert await store.schedules.due_schedules() == []


async def test_worker_last_seen_before_the_clock_was_set_back_is_lost(store: Store) -> None:
    """Its leases would last as long as the jump."""
    job_id = await filled_job(store, 3)
    for name in ("one", "two"):
        await store.workers.add_worker(name, "host", 1, [])
    claimed = await claim_one(store, job_id, worker="one")
    await execute(store, "update workers set seen_at = @after(3600) where name = 'one'")
    ahead = "update ranges set expires_at = @after(3600) where id = :id"
    await execute(store, ahead, id=claimed.lease.range_id)
    assert await store.workers.lost("two", 30.0) == ["one"]
    assert await store.workers.free_lost("one", 30.0) == [job_id]
    assert await claim_one(store, job_id, worker="two")
    assert await store.workers.lost("two", 30.0) == []


async def test_duty_held_before_the_clock_was_set_back_passes_to_the_next(store: Store) -> None:
    assert await store.workers.hold_duty("sweep", "one", 60.0)
    assert not await store.workers.hold_duty("sweep", "two", 60.0)
    ahead = "update duties set acted_at = @after(3600), expires_at = @after(3660)"
    await execute(store, ahead)
    assert await store.workers.hold_duty("sweep", "two", 60.0)
    assert not await store.workers.hold_duty("sweep", "one", 60.0)
