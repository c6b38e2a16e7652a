"""A worker that holds items of several jobs at once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import orjson
import pytest
import structlog

from holdfast.clock import SystemClock
from holdfast.errors import DatabaseGone
from holdfast.kernel import Store, open_store
from holdfast.kernel.arrivals.enqueue import Addition
from holdfast.kernel.jobs.control import Control, JobRequest
from holdfast.kernel.record.running import Look
from holdfast.kernel.record.settle import FlushLimits
from holdfast.model import Page, Record
from holdfast.pipeline import Pipeline, pipeline
from holdfast_client.records import new_item
from tests.engine.one_worker import make_worker, work, working
from tests.store.checks import assert_sound, execute, fetch, filled_job, make_job


class HandClock(SystemClock):
    def monotonic(self) -> float:
        return 0.0


class Slow(Pipeline):
    """Its items wait until they are let go."""

    name = "demo"

    def __init__(self) -> None:
        super().__init__()
        self.began = 0
        self.most = 0
        self.running = 0
        self.go = asyncio.Event()

    async def process(self, row: Any, ctx: Any) -> Any:
        self.began += 1
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await self.go.wait()
        finally:
            self.running -= 1
        return {}


class Events(Pipeline):
    name = "events"
    standing = True

    async def process(self, row: Any, ctx: Any) -> Any:
        return row


async def _done(store: Store, job_id: int) -> int:
    return (await store.reads.counters(job_id)).done


async def _finished(store: Store, job_id: int, items: int) -> None:
    while await _done(store, job_id) < items:
        await asyncio.sleep(0.01)


async def _while(condition: Callable[[], bool]) -> None:
    while condition():
        await asyncio.sleep(0.01)


async def test_record_is_done_while_all_items_of_a_bulk_job_still_run(store: Store) -> None:
    bulk = await filled_job(store, 500)
    job_id, _ = await Control(store, "tester", structlog.get_logger()).open(JobRequest(Events()))
    slow = Slow()
    async with working(store, slow, Events()):
        await _while(lambda: slow.began < 8)
        for number in range(20):
            await store.additions.enqueue(Addition("events", "", [new_item({"n": number})]))
            await _finished(store, job_id, number + 1)
        assert await _done(store, bulk) == 0
        slow.go.set()
        await _finished(store, bulk, 500)
    await assert_sound(store, bulk)
    await assert_sound(store, job_id)


async def test_job_starts_beside_a_busy_one_of_the_same_pipeline(store: Store) -> None:
    """One place more than the pace allows is for a job of which nothing runs."""
    first = await filled_job(store, 100)
    slow = Slow()
    async with working(store, slow, HOLDFAST_CONCURRENCY_MAX="4"):
        await _while(lambda: slow.running < 4)
        second = await filled_job(store, 100)
        await _while(lambda: slow.running < 5)
        slow.go.set()
        await _finished(store, first, 100)
        await _finished(store, second, 100)
    assert slow.most == 5


async def test_limit_of_a_pipeline_holds_for_all_its_jobs_together(store: Store) -> None:
    class One(Slow):
        max_concurrency = 1

    jobs = [await filled_job(store, 10) for _ in range(3)]
    one = One()
    async with working(store, one):
        await _while(lambda: one.running < 1)
        one.go.set()
        for job_id in jobs:
            await _finished(store, job_id, 10)
    assert one.most == 1


async def test_worker_that_is_stopped_during_a_claim_begins_nothing(database_url: str) -> None:
    begun: list[Any] = []
    stops: list[Callable[[], None]] = []

    @pipeline(name="demo")
    async def demo(row: Any, ctx: Any) -> dict[str, Any]:
        begun.append(row)
        await asyncio.sleep(0.5)
        return {}

    def stop_at_claim(verb: str, point: str) -> None:
        if (verb, point) == ("claim", "commit"):
            stops[0]()

    store = await open_store(database_url, fault=stop_at_claim)
    job_id = await filled_job(store, 1000)
    worker = make_worker(store, demo, "one")
    stops.append(worker.stop)
    async with asyncio.timeout(180):
        await worker.run()
    assert begun == []
    assert await fetch(store, "select 1 from ranges where worker is not null") == []
    await assert_sound(store, job_id)
    await store.close()


async def test_item_that_may_kill_its_worker_runs_while_nothing_else_does(store: Store) -> None:
    jobs = [await filled_job(store, 40, 1), await filled_job(store, 40)]
    running: set[tuple[int, int]] = set()
    beside: list[set[tuple[int, int]]] = []

    @pipeline(name="demo")
    async def demo(row: Any, ctx: Any) -> dict[str, Any]:
        me = (ctx.job.id, row["n"])
        running.add(me)
        if me == (jobs[0], 1000):
            beside.append(set(running))
        await asyncio.sleep(0.01)
        if me == (jobs[0], 1000):
            beside.append(set(running))
        running.discard(me)
        return {}

    lone = "update ranges set expiries = 2 where job_id = :j and lo = hi"
    await execute(store, lone, j=jobs[0])
    await work(store, demo)
    assert beside == [{(jobs[0], 1000)}] * 2
    assert [await _done(store, job_id) for job_id in jobs] == [41, 40]


def test_looks_become_rarer_while_they_find_nothing() -> None:
    clock = HandClock()
    look = Look(clock)
    waits = []
    for found in [True] + [False] * 8 + [True]:
        look.done(found)
        waits.append(round(look.due_at - clock.monotonic(), 3))
    assert waits == [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.5, 0.5, 0.5, 0.01]
    look.now()
    assert look.is_due


async def test_worker_whose_registration_was_not_confirmed_works(database_url: str) -> None:
    """The commit was made and its answer lost: the worker registers again."""
    lost: list[str] = []

    def lose_answer(verb: str, point: str) -> None:
        if (verb, point) == ("add_worker", "committed") and not lost:
            lost.append(verb)
            raise DatabaseGone("the answer was lost")

    store = await open_store(database_url, fault=lose_answer)
    job_id = await filled_job(store, 10)
    slow = Slow()
    slow.go.set()
    await work(store, slow)
    assert lost
    assert await _done(store, job_id) == 10
    await store.close()


async def test_jobs_are_begun_again_after_the_database_was_gone(database_url: str) -> None:
    """It may be another database that is back, in which the number belongs to another job."""
    began, go_on = threading.Event(), threading.Event()
    beats: list[str] = []

    def lose_one_beat(verb: str, point: str) -> None:
        if point == "see_worker" and began.is_set():
            beats.append(verb)
            if len(beats) == 1:
                raise DatabaseGone("for a moment")
            go_on.set()

    @pipeline(name="demo", max_concurrency=1)
    async def demo(row: Any, ctx: Any) -> dict[str, Any]:
        began.set()
        await asyncio.to_thread(go_on.wait)
        return {"by": "demo"}

    @pipeline(name="other")
    async def other(row: Any, ctx: Any) -> dict[str, Any]:
        return {"by": "other"}

    store = await open_store(database_url, fault=lose_one_beat)
    job_id = await filled_job(store, 3)
    async with working(store, demo, other):
        await asyncio.to_thread(began.wait)
        await execute(store, "update jobs set pipeline = 'other' where id = :id", id=job_id)
        await _finished(store, job_id, 3)
    results = await fetch(store, "select result from outcomes order by seq")
    assert [orjson.loads(row[0])["by"] for row in results] == ["demo", "other", "other"]
    await store.close()


async def test_items_that_wait_to_run_alone_are_not_held_beside_one_that_runs(
    store: Store,
) -> None:
    """If it kills its worker, they would be charged for it, too."""
    jobs = [await filled_job(store, 1) for _ in range(3)]
    held: list[int] = []

    @pipeline(name="demo")
    async def demo(row: Any, ctx: Any) -> dict[str, Any]:
        ranges = await fetch(store, "select job_id from ranges where worker is not null")
        held.append(len(ranges))
        return {}

    await execute(store, "update ranges set expiries = 2")
    await work(store, demo)
    assert held == [1, 1, 1]
    assert [await _done(store, job_id) for job_id in jobs] == [1, 1, 1]


async def test_inputs_of_many_jobs_are_not_in_memory_together(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.kernel.worker.worker._HELD_BYTES", 16)
    monkeypatch.setattr("holdfast.kernel.worker.worker._MOST_BYTES", 64)
    jobs = [await filled_job(store, 2) for _ in range(40)]
    held: list[int] = []

    @pipeline(name="demo", max_concurrency=1)
    async def demo(row: Any, ctx: Any) -> dict[str, Any]:
        ranges = await fetch(store, "select 1 from ranges where worker is not null")
        held.append(len(ranges))
        return {}

    await work(store, demo, flush=FlushLimits(items=1))
    assert max(held) < 20
    assert [await _done(store, job_id) for job_id in jobs] == [2] * 40


async def test_sources_and_items_have_the_same_time_to_end(store: Store) -> None:
    """The item goes back uncharged though it ends only after the walk."""
    reads, runs, walk_ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    class Both(Pipeline):
        name = "demo"

        def fingerprint(self, source: str, options: Any) -> str:
            return source

        async def discover(self, source: str, cursor: Any, ctx: Any) -> AsyncIterator[Page]:
            yield Page([Record({"n": 1})], next_cursor=1)
            reads.set()
            try:
                await asyncio.Event().wait()
            finally:
                walk_ended.set()

        async def process(self, row: Any, ctx: Any) -> Any:
            runs.set()
            try:
                await asyncio.Event().wait()
            finally:
                await walk_ended.wait()

    both = Both()
    await make_job(store, "one")
    async with working(store, both, HOLDFAST_DRAIN_SECONDS="0.1"):
        await reads.wait()
        await runs.wait()
    assert [tuple(row) for row in await fetch(store, "select expiries, worker from ranges")] == [
        (0, None)
    ]
