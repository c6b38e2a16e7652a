"""Upkeep: what a worker does besides items, again and again. Everything is read anew from the
database each time, so any number of workers may do it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from holdfast.engine.control import Control
from holdfast.engine.ending import ending_of
from holdfast.errors import DatabaseGone, UserError
from holdfast.metrics import Metrics, QueueReading
from holdfast.pipeline import Pipeline
from holdfast.store import Store
from holdfast.store.upkeep_table import DueSchedule


async def every(seconds: float, action: Callable[[], Awaitable[None]], log: Any, name: str) -> None:
    """The one periodic loop. A database that is gone is waited for; other failures are logged,
    and the loop goes on."""
    while True:
        try:
            await action()
        except DatabaseGone as error:
            log.warning("database.gone", error=str(error))
        except Exception as error:
            log.error("upkeep.failed", task=name, error=str(error), exc_info=error)
        await asyncio.sleep(seconds)


class Upkeep:
    def __init__(
        self,
        store: Store,
        control: Control,
        pipelines: Mapping[str, Pipeline],
        metrics: Metrics,
        log: Any,
    ) -> None:
        self._store = store
        self._control = control
        self._pipelines = pipelines
        self._metrics = metrics
        self._log = log

    async def sweep(self, in_work: Callable[[], set[int]]) -> None:
        """Expired leases, finished jobs that nobody ended, ranges of cancelled jobs."""
        rescued = await self._store.leases.rescue(in_work)
        finished = await self._store.upkeep.finishable_jobs()
        for job_id in {*rescued, *finished}:
            job = await self._store.reads.job(job_id)
            pipeline = self._pipelines.get(job.pipeline)
            ending = None if pipeline is None else ending_of(pipeline, job)
            await self._store.settling.complete(job_id, ending)
        cancelled = await self._store.upkeep.cancelled_jobs_with_ranges()
        for job_id in cancelled:
            await self._store.jobs.drop_ranges(job_id)
        await self._store.upkeep.forget_workers()
        if rescued or cancelled:
            self._log.info("sweep.acted", rescued=rescued, cancelled=cancelled)

    async def fire_schedules(self) -> None:
        for due in await self._store.upkeep.due_schedules():
            if due.reference in self._pipelines:
                await self._fire(due)

    async def read_queue(self) -> None:
        readings = {
            pipeline: QueueReading(depth, age)
            for pipeline, depth, age in await self._store.reads.queue_depth()
        }
        self._metrics.set_queue(readings)
        self._metrics.set_dead_letters(await self._store.reads.count_dead_letters())

    async def _fire(self, due: DueSchedule) -> None:
        """Moves the schedule on first: of two workers, the one that did so starts the job."""
        next_at = next_fire(due.cron, due.zone, due.now)
        if not await self._store.upkeep.fire_schedule(due, next_at):
            return
        try:
            job_id = await self._start(due)
        except DatabaseGone:
            raise
        except Exception as error:
            told = f"{type(error).__name__}: {error}"
            await self._store.upkeep.note_schedule(due.name, None, told)
            self._log.error("schedule.failed", schedule=due.name, error=told)
            return
        await self._store.upkeep.note_schedule(due.name, job_id, None)
        self._log.info("schedule.fired", schedule=due.name, job_id=job_id)

    async def _start(self, due: DueSchedule) -> int | None:
        """The job that was started; of several, the last."""
        pipeline = self._pipelines[due.reference]
        actor = f"schedule:{due.name}"
        if not pipeline.plans:
            return await self._control.start_discovery(pipeline, dict(due.options), actor)
        carried = await self._control.request(pipeline, due.options, actor)
        return carried.job_ids[-1] if carried.job_ids else None

    async def tend(self) -> None:
        """A piece of each pipeline's work in the background."""
        for pipeline in self._pipelines.values():
            if pipeline.tends:
                await self._store.planning.tend(pipeline.tend)

    async def tend_all(self) -> None:
        """All of that work, before a worker leaves that nobody may follow."""
        for pipeline in self._pipelines.values():
            while pipeline.tends and await self._store.planning.tend(pipeline.tend):
                pass


def next_fire(cron: str, zone: str, now: datetime) -> datetime:
    """The next time after `now`, in UTC; right across changes of daylight saving time."""
    try:
        local = now.astimezone(ZoneInfo(zone))
    except (ZoneInfoNotFoundError, ValueError):
        raise UserError(
            f"there is no time zone {zone!r}", "Use a name such as Europe/Zagreb or UTC."
        ) from None
    try:
        found: datetime = next(CronSim(cron, local))
    except (CronSimError, StopIteration):
        raise UserError(
            f"{cron!r} is not a cron expression",
            'Five fields: minute hour day month weekday, e.g. "0 6 * * *" for six every morning.',
        ) from None
    return found.astimezone(ZoneInfo("UTC"))
