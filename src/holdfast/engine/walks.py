"""The streams that a worker walks, in addition to the items it processes: one walk for each."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial

from holdfast.engine.record.discover import Discovery, LeasedStream, WalkEnd, WalkParts
from holdfast.engine.turns import Turn, Turns
from holdfast.errors import DatabaseGone, NotThere
from holdfast.pipeline import Pipeline

#: Streams that a worker walks at once: a walk mostly waits for its source.
MOST_WALKS = 16


class Walks:
    """Each walk lasts `slice_seconds`, and longer while no other stream waits."""

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
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def any(self) -> bool:
        return bool(self._tasks)

    @property
    def places(self) -> int:
        """How many more streams can be walked."""
        return MOST_WALKS - len(self._tasks)

    async def start(self, turn: Turn) -> bool:
        """Leases a stream of the turn's job and walks it in the background; False if there is
        nothing to walk, and the turn is over."""
        leased = None
        if self.places > 0:  # a message may come where none is expected
            leased = await self._lease(turn.job_id)
        if leased is None:
            await self._turns.ended(turn, worked=False)
            return False
        task = asyncio.create_task(self._walk(turn, leased))
        self._tasks.add(task)
        task.add_done_callback(partial(self._ended, turn.job_id))
        return True

    def stop(self) -> None:
        """Each walk ends after the page that it writes."""
        self._stopping = True

    async def drain(self, seconds: float) -> None:
        """Waits for the walks to end, and cancels those that take longer."""
        self.stop()
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=seconds)
            for task in self._tasks:
                task.cancel()

    def _ended(self, job_id: int, done: asyncio.Task[None]) -> None:
        self._tasks.discard(done)
        error = None if done.cancelled() else done.exception()
        if isinstance(error, DatabaseGone):
            self._log.warning("database.gone", error=str(error))
        elif error is not None:
            self._log.error("discovery.failed", source=str(job_id), exc_info=error)

    async def _lease(self, job_id: int) -> LeasedStream | None:
        try:
            job = await self._store.reads.job(job_id)
        except NotThere:  # deleted since the turn was given
            return None
        return await self._discovery.lease(self._pipelines[job.pipeline], job)

    async def _walk(self, turn: Turn, first: LeasedStream) -> None:
        """Slice after slice until the turn's time is up and another stream waits."""
        deadline = self._clock.monotonic() + self._slice_seconds
        leased: LeasedStream | None = first
        try:
            while leased is not None:
                end = await self._discovery.walk(leased, lambda: self._stopping)
                if end is not WalkEnd.TIME or self._stopping:
                    break
                if self._clock.monotonic() >= deadline and await self._turns.others_wait(turn):
                    break
                leased = await self._lease(turn.job_id)
        finally:
            await self._turns.ended(turn, worked=True)
