"""Reads the streams of a worker, in addition to the items it processes: one walk for each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial

from holdfast.errors import DatabaseGone, NotThere
from holdfast.kernel import DueJob
from holdfast.kernel.pace.fair_order import FairOrder
from holdfast.kernel.record.discover import Discovery, LeasedStream, WalkEnd, WalkParts
from holdfast.pipeline import Pipeline
from holdfast.tables.threads import INTAKES_AT_ONCE

#: Whether this worker may run a job, by its id and lane.
MayRun = Callable[[int, str], bool]


#: How many streams a worker reads at once, and how many of them may be files, each with a
#: workbook's memory.
MOST_WALKS, MOST_FILES = 16, INTAKES_AT_ONCE


class Walks:
    def __init__(
        self,
        parts: WalkParts,
        discovery: Discovery,
        pipelines: Mapping[str, Pipeline],
        may_run: MayRun,
        news: Callable[[], None],
    ) -> None:
        """Takes as `news` what to call when a walk has ended."""
        self._store = parts.store
        self._log = parts.log
        self._discovery = discovery
        self._pipelines = pipelines
        self._discovering = [name for name, pipeline in pipelines.items() if pipeline.discovers]
        self._may_run = may_run
        self._news = news
        self._order = FairOrder()
        self._stopping = False
        self._tasks: dict[asyncio.Task[None], bool] = {}  # for each walk, whether it reads a file
        self._tokens: set[str] = set()

    @property
    def any(self) -> bool:
        return bool(self._tasks)

    def tokens(self) -> set[str]:
        """Returns the tokens of the streams that are read."""
        return set(self._tokens)

    async def look(self) -> bool:
        """Begins to read free streams, in fair order, while there are places; returns False if
        there are none."""
        began = False
        while self._free and (waiting := await self._waiting(self._free_for_files > 0)):
            if not await self._start(self._order.choose(waiting).job_id):
                break  # another worker was first; the next look finds the others
            began = True
        return began

    def stop(self) -> None:
        """Ends each walk after the page that it is writing."""
        self._stopping = True

    async def drain(self, seconds: float) -> None:
        """Waits for the walks to end, and cancels those that take longer."""
        self.stop()
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=seconds)
            for task in self._tasks:
                task.cancel()

    @property
    def _free(self) -> int:
        return 0 if self._stopping else MOST_WALKS - len(self._tasks)

    @property
    def _free_for_files(self) -> int:
        return min(self._free, MOST_FILES - sum(self._tasks.values()))

    async def _waiting(self, files: bool) -> list[DueJob]:
        reading = list(self._pipelines) if files else []
        jobs = await self._store.reads.discovering_jobs(self._discovering, reading)
        return [job for job in jobs if self._may_run(job.job_id, job.lane)]

    async def _start(self, job_id: int) -> bool:
        leased = await self._lease(job_id)
        if leased is None:
            return False
        task = asyncio.create_task(self._walk(leased))
        self._tasks[task] = leased.reads_file
        task.add_done_callback(partial(self._ended, job_id))
        return True

    def _ended(self, job_id: int, done: asyncio.Task[None]) -> None:
        self._tasks.pop(done, None)
        self._news()
        error = None if done.cancelled() else done.exception()
        if isinstance(error, DatabaseGone):
            self._log.warning("database.gone", error=str(error))
        elif error is not None:
            self._log.error("discovery.failed", source=str(job_id), exc_info=error)

    async def _lease(self, job_id: int) -> LeasedStream | None:
        try:
            job = await self._store.reads.job(job_id)
        except NotThere:  # deleted since
            return None
        leased = await self._discovery.lease(self._pipelines[job.pipeline], job)
        if leased is not None:
            self._tokens.add(leased.lease.token)
        return leased

    async def _walk(self, first: LeasedStream) -> None:
        """Reads one stream of the job after the other, until its place is wanted."""
        wanted = partial(self._place_is_wanted, first.reads_file)
        leased: LeasedStream | None = first
        while leased is not None:
            try:
                end = await self._discovery.walk(leased, lambda: self._stopping, wanted)
            finally:
                self._tokens.discard(leased.lease.token)
            if end is not WalkEnd.TIME or self._stopping or await wanted():
                return
            leased = await self._lease(first.job.id)

    async def _place_is_wanted(self, by_file: bool) -> bool:
        free = self._free_for_files if by_file else self._free
        return free <= 0 and bool(await self._waiting(by_file or self._free_for_files > 0))
