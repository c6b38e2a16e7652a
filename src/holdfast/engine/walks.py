"""The streams that a worker walks, in addition to the items it processes: one walk for each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from holdfast.engine.pace.fair_order import FairOrder
from holdfast.engine.record.discover import Discovery, LeasedStream, WalkEnd, WalkParts
from holdfast.errors import DatabaseGone, NotThere
from holdfast.pipeline import Pipeline
from holdfast.store import DueJob

#: Whether this worker may run a job, by its id and lane.
MayRun = Callable[[int, str], bool]


@dataclass(frozen=True, slots=True)
class WalkLimits:
    """At most `concurrency` walks at once, each for `slice_seconds` while others wait."""

    slice_seconds: float
    concurrency: int

    @property
    def slow(self) -> int:
        """Slow sources get half of the places: the others never wait for them alone."""
        return max(1, self.concurrency // 2)


class Walks:
    def __init__(
        self,
        parts: WalkParts,
        discovery: Discovery,
        pipelines: Mapping[str, Pipeline],
        may_run: MayRun,
        limits: WalkLimits,
        news: Callable[[], None],
    ) -> None:
        """`news` is called when a walk has ended."""
        self._store = parts.store
        self._clock = parts.clock
        self._log = parts.log
        self._discovery = discovery
        self._pipelines = pipelines
        self._discovering = [name for name, pipeline in pipelines.items() if pipeline.discovers]
        self._may_run = may_run
        self._limits = limits
        self._news = news
        self._order = FairOrder()
        self._stopping = False
        self._tasks: dict[asyncio.Task[None], bool] = {}  # whether the stream is a slow one
        self._tokens: dict[int, str] = {}  # by stream

    @property
    def any(self) -> bool:
        return bool(self._tasks)

    def tokens(self) -> set[str]:
        """Those of the streams that are walked."""
        return set(self._tokens.values())

    async def look(self) -> bool:
        """Begins to walk streams that nobody walks, in fair order, while there are places; False
        if there are none."""
        waiting = await self._waiting() if self._free else []
        began = False
        while waiting and self._free:
            job = self._order.choose(waiting)
            waiting.remove(job)
            began |= await self._start(job.job_id)
        return began

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

    @property
    def _free(self) -> int:
        return 0 if self._stopping else self._limits.concurrency - len(self._tasks)

    @property
    def _free_for_slow(self) -> int:
        return max(0, min(self._free, self._limits.slow - sum(self._tasks.values())))

    async def _waiting(self) -> list[DueJob]:
        if not self._discovering:
            return []
        slow = self._free_for_slow > 0
        jobs = await self._store.reads.discovering_jobs(self._discovering, slow)
        return [job for job in jobs if self._may_run(job.job_id, job.lane)]

    async def _start(self, job_id: int) -> bool:
        leased = await self._lease(job_id, self._free_for_slow > 0)
        if leased is None:
            return False
        task = asyncio.create_task(self._walk(leased))
        self._tasks[task] = leased.is_slow
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

    async def _lease(self, job_id: int, slow: bool) -> LeasedStream | None:
        try:
            job = await self._store.reads.job(job_id)
        except NotThere:  # deleted since
            return None
        leased = await self._discovery.lease(self._pipelines[job.pipeline], job, slow)
        if leased is not None:
            self._tokens[leased.lease.id] = leased.lease.token
        return leased

    async def _walk(self, first: LeasedStream) -> None:
        """Slice after slice until the time is up and another stream waits."""
        deadline = self._clock.monotonic() + self._limits.slice_seconds
        leased: LeasedStream | None = first
        while leased is not None:
            end = await self._discovery.walk(leased, lambda: self._stopping, self._place_is_wanted)
            if end is not WalkEnd.TIME or self._stopping:
                return
            if self._clock.monotonic() >= deadline and await self._place_is_wanted():
                return
            leased = await self._lease(first.job.id, first.is_slow)

    async def _place_is_wanted(self) -> bool:
        return not self._free and bool(await self._waiting())
