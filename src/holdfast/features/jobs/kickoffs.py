"""Kickoffs: somebody has a job processed for a moment, within a request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from holdfast.errors import Throttled, UnfitState, UserError
from holdfast.kernel import Store
from holdfast.kernel.worker.worker import Worker
from holdfast.model import Job, JobState
from holdfast.pipeline import Pipeline

_MOST_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Kickoffs:
    """`room` bounds the workers that run within requests; `new_worker` makes one for a job."""

    store: Store
    pipelines: Mapping[str, Pipeline]
    room: asyncio.Semaphore
    new_worker: Callable[[int], Worker]

    async def run(self, job: Job, actor: str, seconds: float) -> int:
        """Processes the job; returns how many items were finished meanwhile, by any worker."""
        if job.state is not JobState.RUNNING:
            raise UnfitState(f"job {job.id} is {job.state}", "Only a RUNNING job can be processed.")
        if job.pipeline not in self.pipelines:
            raise UserError(f"this server does not have the pipeline {job.pipeline}")
        detail = {"milliseconds": round(1000 * seconds)}
        await self.store.audit.add(actor, "kickoff", job.id, "", detail)
        before = await self.store.reads.counters(job.id)
        await self._work(job, seconds)
        after = await self.store.reads.counters(job.id)
        return max(0, after.finished - before.finished)

    async def _work(self, job: Job, seconds: float) -> None:
        if self.room.locked():
            raise Throttled(
                "other kickoffs are in progress", 5, "Try again in a moment, or start a worker."
            )
        async with self.room:
            worker = self.new_worker(job.id)
            running = asyncio.create_task(worker.run())
            await asyncio.wait([running], timeout=min(seconds, _MOST_SECONDS))
            worker.stop()
            await running
