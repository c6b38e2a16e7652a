"""The streams that a worker walks, in addition to the items it processes: one walk for each."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial

from holdfast.engine.record.discover import Discovery, LeasedStream, WalkEnd, WalkParts
from holdfast.engine.turns import Places, Turn, Turns
from holdfast.errors import DatabaseGone, NotThere
from holdfast.pipeline import Pipeline
from holdfast.tables.threads import INTAKES_AT_ONCE

#: Streams that a worker walks at once, and files among them, each with a workbook's memory.
MOST_WALKS, MOST_FILES = 16, INTAKES_AT_ONCE


class Walks:
    def __init__(
        self,
        parts: WalkParts,
        discovery: Discovery,
        pipelines: Mapping[str, Pipeline],
        turns: Turns,
    ) -> None:
        self._store = parts.store
        self._log = parts.log
        self._discovery = discovery
        self._pipelines = pipelines
        self._turns = turns
        self._stopping = False
        self._tasks: dict[asyncio.Task[None], bool] = {}  # whether it reads a file

    @property
    def any(self) -> bool:
        return bool(self._tasks)

    @property
    def places(self) -> Places:
        free = MOST_WALKS - len(self._tasks)
        return Places(free, min(free, MOST_FILES - sum(self._tasks.values())))

    async def start(self, turn: Turn) -> bool:
        """Leases a stream of the turn's job and walks it in the background; False if there is
        nothing to walk, and the turn is over."""
        leased = None
        if self.places.free:  # a message may come where none is expected
            leased = await self._lease(turn.job_id, self.places.files > 0)
        if leased is None:
            await self._turns.ended(turn, worked=False)
            return False
        task = asyncio.create_task(self._walk(turn, leased))
        self._tasks[task] = leased.reads_file
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
        self._tasks.pop(done, None)
        error = None if done.cancelled() else done.exception()
        if isinstance(error, DatabaseGone):
            self._log.warning("database.gone", error=str(error))
        elif error is not None:
            self._log.error("discovery.failed", source=str(job_id), exc_info=error)

    async def _lease(self, job_id: int, has_room_for_file: bool) -> LeasedStream | None:
        try:
            job = await self._store.reads.job(job_id)
        except NotThere:  # deleted since the turn was given
            return None
        if job.reference is not None and (job.file_id is None or not has_room_for_file):
            return None
        return await self._discovery.lease(self._pipelines[job.pipeline], job)

    async def _walk(self, turn: Turn, first: LeasedStream) -> None:
        """One stream of the job after the other, until its place is wanted."""
        wanted = partial(self._place_is_wanted, turn, first.reads_file)
        leased: LeasedStream | None = first
        try:
            while leased is not None:
                end = await self._discovery.walk(leased, lambda: self._stopping, wanted)
                if end is not WalkEnd.TIME or self._stopping or await wanted():
                    break
                leased = await self._lease(turn.job_id, has_room_for_file=True)
        finally:
            await self._turns.ended(turn, worked=True)

    async def _place_is_wanted(self, turn: Turn, by_file: bool) -> bool:
        free = self.places.files if by_file else self.places.free
        return not free and await self._turns.others_wait(turn)
