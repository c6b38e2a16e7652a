"""The discovery slices that a worker has in progress, in addition to the items it processes."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from functools import partial

from holdfast.engine.record.discover import Discovery, WalkEnd, WalkParts
from holdfast.engine.turns import Turn, Turns
from holdfast.errors import DatabaseGone, NotThere
from holdfast.pipeline import Pipeline


class Walks:
    def __init__(
        self,
        parts: WalkParts,
        discovery: Discovery,
        pipelines: Mapping[str, Pipeline],
        turns: Turns,
        slice_seconds: float,
    ) -> None:
        self._store = parts.store
        self._clock = parts.clock
        self._log = parts.log
        self._discovery = discovery
        self._pipelines = pipelines
        self._turns = turns
        self._slice_seconds = slice_seconds
        self._stopping = False
        self._tasks: dict[int, asyncio.Task[None]] = {}

    @property
    def job_ids(self) -> Collection[int]:
        """The jobs whose discovery is in progress."""
        return self._tasks.keys()

    def start(self, turn: Turn) -> None:
        task = asyncio.create_task(self._walk(turn))
        self._tasks[turn.job_id] = task
        task.add_done_callback(partial(self._ended, turn.job_id))

    def stop(self) -> None:
        """Each walk ends after the page that it writes."""
        self._stopping = True

    async def drain(self, seconds: float) -> None:
        """Waits for the walks to end, and cancels those that take longer."""
        self.stop()
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()), timeout=seconds)
            for task in self._tasks.values():
                task.cancel()

    def _ended(self, job_id: int, done: asyncio.Task[None]) -> None:
        self._tasks.pop(job_id, None)
        error = None if done.cancelled() else done.exception()
        if isinstance(error, DatabaseGone):
            self._log.warning("database.gone", error=str(error))
        elif error is not None:
            self._log.error("discovery.failed", source=str(job_id), exc_info=error)

    async def _walk(self, turn: Turn) -> None:
        """Slice after slice until the turn's time is up and another job waits."""
        deadline = self._clock.monotonic() + self._slice_seconds
        walked = False
        try:
            while not self._stopping:
                try:
                    job = await self._store.reads.job(turn.job_id)
                except NotThere:  # deleted since the turn was given
                    break
                pipeline = self._pipelines[job.pipeline]
                end = await self._discovery.walk(pipeline, job, lambda: self._stopping)
                walked = walked or end is not None
                if end is not WalkEnd.TIME:
                    break
                if self._clock.monotonic() >= deadline and await self._turns.others_wait(turn):
                    break
        finally:
            await self._turns.ended(turn, walked)
