"""A slice's time: jobs that share a worker make progress, however slow the database is."""

from __future__ import annotations

import asyncio
import random
import time
from typing import Any

import structlog

from holdfast.cli.composition import worker_options
from holdfast.clock import SystemClock
from holdfast.configuration import load_settings
from holdfast.engine.worker import Worker, WorkerParts
from holdfast.model import JobState
from holdfast.observe.metrics import Metrics
from holdfast.pipeline import pipeline
from holdfast.store import open_store
from tests.store.checks import filled_job, state_of

SLOW_CLAIM_SECONDS = 0.03


@pipeline(name="demo")
async def demo(row: dict[str, Any], ctx: Any) -> dict[str, Any]:
    return {"done": True}


async def test_where_claims_take_longer_than_a_slice_what_is_claimed_is_worked_on(
    database_url: str,
) -> None:
    claims = []

    def slow_claims(verb: str, point: str) -> None:
        if (verb, point) == ("claim", "commit"):
            claims.append(point)
            time.sleep(SLOW_CLAIM_SECONDS)

    settings = load_settings({"HOLDFAST_WORKER_TARGET_SLICE_MS": "10"})
    store = await open_store(database_url, fault=slow_claims)
    jobs = [await filled_job(store, 20) for _ in range(2)]
    parts = WorkerParts(
        store,
        name="one",
        owner="tester",
        clock=SystemClock(),
        rng=random.Random(1),
        metrics=Metrics(),
        log=structlog.get_logger(),
    )
    worker = Worker(parts, {"demo": demo}, worker_options(settings, None, until_idle=True))
    async with asyncio.timeout(60):
        await worker.run()
    assert [await state_of(store, job_id) for job_id in jobs] == [JobState.DONE] * 2
    assert len(claims) < 20, "the jobs were claimed and given back again and again"
    await store.close()
