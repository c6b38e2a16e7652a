"""Standing jobs in a worker."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest
import structlog

from holdfast.errors import Retry, UnfitState
from holdfast.kernel import Store
from holdfast.kernel.arrivals.enqueue import Addition
from holdfast.kernel.jobs.control import Control, JobRequest
from holdfast.model import JobState
from holdfast.options import Option
from holdfast.pipeline import Pipeline
from holdfast_client.records import new_item
from tests.engine.one_worker import make_worker, work
from tests.store.checks import assert_sound, claim, fetch, seqs_of, state_of, work_off

PATIENCE_SECONDS = 60


class Events(Pipeline):
    standing = True

    async def process(self, row: Any, ctx: Any) -> Any:
        return row


async def test_a_worker_opens_declared_standing_jobs_once_and_ends_when_idle(
    store: Store,
) -> None:
    control = Control(store, "tester", structlog.get_logger())
    job_id, _ = await control.open(JobRequest(Events()))
    await work(store, Events())
    jobs = await fetch(store, "select id, owner_id, standing from jobs")
    assert jobs == [(job_id, "tester", 1)]
    assert await state_of(store, job_id) is JobState.RUNNING


async def test_pipeline_that_gains_an_option_keeps_its_open_job(store: Store) -> None:
    class Before(Events):
        name = "events"
        options = (Option("times", int, default=2),)

    class After(Before):
        options = (Option("times", int, default=5), Option("loud", bool, default=True))

        async def process(self, row: Any, ctx: Any) -> Any:
            return dict(ctx.options)

    control = Control(store, "tester", structlog.get_logger())
    job_id, _ = await control.open(JobRequest(Before(), {"times": 3}))
    wanted: Any
    for wanted in ({}, {"times": 3}, {"loud": True}, {"times": "3", "loud": "yes"}):
        assert await control.open(JobRequest(After(), wanted)) == (job_id, False)
    for wanted in ({"times": 5}, {"times": 3, "loud": False}):
        with pytest.raises(UnfitState, match="different options"):
            await control.open(JobRequest(After(), wanted))
    await _enqueue(store, 1)
    await work(store, After())
    rows = await fetch(store, "select result from outcomes where job_id = :j", j=job_id)
    assert [orjson.loads(row[0]) for row in rows] == [{"times": 3, "loud": True}]


async def _enqueue(store: Store, *numbers: int) -> None:
    items = [new_item({"n": number}) for number in numbers]
    await store.additions.enqueue(Addition("events", "", items))


async def test_two_workers_process_every_record_once(store: Store) -> None:
    begun: list[int] = []

    class Noted(Events):
        name = "events"

        async def process(self, row: Any, ctx: Any) -> Any:
            begun.append(row["n"])
            return row

    job_id, _ = await Control(store, "tester", structlog.get_logger()).open(JobRequest(Noted()))
    workers = [make_worker(store, Noted(), name) for name in ("one", "two")]
    running = [asyncio.create_task(worker.run()) for worker in workers]
    async with asyncio.timeout(PATIENCE_SECONDS):
        for number in range(0, 60, 3):
            await asyncio.gather(*(_enqueue(store, number + more) for more in range(3)))
        while (await store.reads.counters(job_id)).done < 60:
            await asyncio.sleep(0.01)
        for worker in workers:
            worker.stop()
        await asyncio.gather(*running)
    assert sorted(begun) == list(range(60))
    await assert_sound(store, job_id)


async def test_a_dead_worker_delays_only_what_it_held(store: Store) -> None:
    job_id, _ = await Control(store, "tester", structlog.get_logger()).open(JobRequest(Events()))
    await _enqueue(store, 1, 2)
    held = await claim(store, job_id, worker="dead")
    await _enqueue(store, 3)
    assert await work_off(store, job_id) == 1
    await store.workers.stop_worker("dead")
    assert await work_off(store, job_id) == len(seqs_of(*held)) == 2


async def test_retry_of_a_record_starts_when_it_is_due(store: Store) -> None:
    """Nothing gives notice of it."""
    begun: list[int] = []

    class Retried(Events):
        name = "events"

        async def process(self, row: Any, ctx: Any) -> Any:
            begun.append(row["n"])
            if len(begun) == 1:
                raise Retry(after=0.6)
            return row

    job_id, _ = await Control(store, "tester", structlog.get_logger()).open(JobRequest(Retried()))
    worker = make_worker(store, Retried(), "one")
    running = asyncio.create_task(worker.run())
    async with asyncio.timeout(PATIENCE_SECONDS):
        await _enqueue(store, 1)
        while not (await store.reads.counters(job_id)).done:
            await asyncio.sleep(0.01)
        worker.stop()
        await running
    assert begun == [1, 1]
    await assert_sound(store, job_id)
