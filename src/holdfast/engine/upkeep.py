"""Upkeep: the periodic tasks of a worker.

Everything is read from the database each time, so any number of workers may run them."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from holdfast.clock import Clock
from holdfast.engine.control import Control, JobRequest
from holdfast.engine.deletion import Deleter
from holdfast.engine.lost_workers import LostWorkers
from holdfast.engine.planning import planner_at_end
from holdfast.engine.retention import Retention
from holdfast.errors import DatabaseGone, FilesGone, NotThere, UserError
from holdfast.model import Schedule
from holdfast.observe.metrics import Metrics, QueueReading
from holdfast.observe.tracing import span
from holdfast.pipeline import Pipeline
from holdfast.store import Store
from holdfast.store.schedules import DueSchedule


async def every(seconds: float, action: Callable[[], Awaitable[None]], log: Any, name: str) -> None:
    """Repeats an action: the one periodic loop.

    It survives the loss of the database and of the file store; other failures are logged, and the
    loop continues."""
    while True:
        try:
            await action()
        except DatabaseGone as error:
            log.warning("database.gone", error=str(error))
        except FilesGone as error:
            log.warning("files.gone", error=str(error))
        except Exception as error:
            log.error("upkeep.failed", task=name, error=str(error), exc_info=error)
        await asyncio.sleep(seconds)


class Rested:
    """An action that reads whole tables, which is slow while a transaction is held open for long.
    After each turn it rests: `rest` times as long as that took."""

    def __init__(
        self, action: Callable[[], Awaitable[object]], clock: Clock, rest: float = 9.0
    ) -> None:
        self._action = action
        self._clock = clock
        self._rest = rest
        self._rests_until = -math.inf

    async def __call__(self) -> None:
        started = self._clock.monotonic()
        if started < self._rests_until:
            return
        try:
            await self._action()
        finally:
            ended = self._clock.monotonic()
            self._rests_until = ended + self._rest * (ended - started)


class Postponed:
    """An action that can wait: while the processor is busy it runs once a minute."""

    def __init__(
        self, action: Callable[[], Awaitable[None]], is_busy: Callable[[], bool], clock: Clock
    ) -> None:
        self._action = action
        self._is_busy = is_busy
        self._clock = clock
        self._ran_at = clock.monotonic()

    async def __call__(self) -> None:
        now = self._clock.monotonic()
        if self._is_busy() and now < self._ran_at + _POSTPONED_SECONDS:
            return
        self._ran_at = now
        await self._action()


_POSTPONED_SECONDS = 60.0
#: Workers give a sign of life, and look for those that do not, this many times within the time
#: after which one counts as lost, and at least this often.
_HEARTBEATS = 5
_HEARTBEAT_SECONDS = 2.0
#: How many chunks of expired cache entries one sweep removes.
_PRUNES = 20
_RETAIN_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class UpkeepLimits:
    sweep_seconds: float
    lost_after_seconds: float  # the shortest time after which a silent worker counts as lost

    @property
    def heartbeat_seconds(self) -> float:
        return min(_HEARTBEAT_SECONDS, self.lost_after_seconds / _HEARTBEATS)


class Upkeep:
    def __init__(
        self,
        store: Store,
        control: Control,
        pipelines: Mapping[str, Pipeline],
        limits: UpkeepLimits,
        holder: str,
        metrics: Metrics,
        log: Any,
        deleter: Deleter,
        retention: Retention,
    ) -> None:
        """Takes as `holder` the name of the process: only one at a time sweeps.

        All look for lost workers."""
        self._store = store
        self._control = control
        self._pipelines = pipelines
        self._limits = limits
        self._holder = holder
        self._metrics = metrics
        self._log = log
        self._deleter = deleter
        self._retention = retention
        self._tending = asyncio.Lock()
        self._scheduled: set[str] = set()  # schedules of pipelines that are already set
        self._lost = LostWorkers(store, holder, log)

    def loops(
        self, clock: Clock, is_busy: Callable[[], bool] = lambda: False
    ) -> list[Coroutine[Any, Any, None]]:
        """Returns the periodic tasks. `is_busy`: the processor has more urgent work."""
        seconds = self._limits.sweep_seconds
        tend = Postponed(self.tend, is_busy, clock)
        return [
            every(seconds, self.sweep, self._log, "sweep"),
            every(seconds, self.fire_schedules, self._log, "schedules"),
            every(seconds, Rested(self.read_queue, clock), self._log, "queue"),
            every(seconds, self.conclude, self._log, "conclude"),
            every(seconds, tend, self._log, "tend"),
            every(self._limits.heartbeat_seconds, self._lost.free, self._log, "lost workers"),
            every(seconds, self._deleter.look, self._log, "delete"),
            every(_RETAIN_SECONDS, self.retain, self._log, "retention"),
        ]

    async def sweep(self) -> None:
        """Frees what no live worker holds, ends finished jobs and removes ranges of cancelled ones.

        Does nothing while another process has the duty."""
        if not await self._store.workers.hold_duty("sweep", self._holder):
            return
        rescued = await self._store.workers.free_left_behind()
        finished = await self._store.reads.finishable_jobs()
        for job_id in {*rescued, *finished}:
            await self._store.outcomes.complete(job_id)
        cancelled = await self._store.reads.cancelled_jobs_with_ranges()
        for job_id in cancelled:
            await self._store.jobs.drop_ranges(job_id)
        await self._store.workers.forget_workers()
        await self._store.samples.take_samples()
        await self._store.counter_rows.fold()
        await self._prune_cache()
        await self._store.gates.forget_passes()
        if rescued or cancelled:
            self._log.info("sweep.acted", rescued=rescued, cancelled=cancelled)

    async def _prune_cache(self) -> None:
        for _ in range(_PRUNES):
            if not await self._store.cache.prune_cache():
                return

    async def retain(self) -> None:
        """Applies retention; does nothing while another process has the duty."""
        if await self._store.workers.hold_duty("retention", self._holder):
            await self._retention.apply()

    async def conclude(self) -> None:
        """Finishes jobs whose `conclude` must run here because the worker that should have finished
        them is gone."""
        concluding = {name for name, pipeline in self._pipelines.items() if pipeline.concludes}
        if not concluding:
            return
        for job_id in await self._store.reads.finishable_jobs():
            try:
                job = await self._store.reads.job(job_id)
            except NotThere:  # deleted since
                continue
            if job.pipeline in concluding:
                planner = planner_at_end(self._pipelines[job.pipeline], job)
                await self._store.outcomes.complete(job_id, planner)

    async def fire_schedules(self) -> None:
        for pipeline in self._pipelines.values():
            for schedule in pipeline.schedules:
                await self._set_once(pipeline, schedule)
        for due in await self._store.schedules.due_schedules():
            if due.reference in self._pipelines:
                await self._fire(due)

    async def _set_once(self, pipeline: Pipeline, schedule: Schedule) -> None:
        """Sets a schedule once; a pipeline that is off gets its schedules when it is switched
        on."""
        if schedule.name in self._scheduled:
            return
        if pipeline.enabled_by is not None:
            flag = (await self._store.flags.all()).get(pipeline.enabled_by)
            if flag is None or flag["value"] is not True:
                return
        next_at = next_fire(schedule.cron, schedule.zone, await self._store.jobs.now())
        await self._store.schedules.set_once(schedule, pipeline.name, next_at)
        self._scheduled.add(schedule.name)

    async def read_queue(self) -> None:
        readings = {
            pipeline: QueueReading(depth, age)
            for pipeline, depth, age in await self._store.reads.queue_depth()
        }
        self._metrics.set_queue(readings)
        self._metrics.set_dead_letters(await self._store.reads.count_dead_letters())
        count, age, _ = await self._store.messages.reading()
        self._metrics.outbox_depth.set(count)
        self._metrics.outbox_oldest_seconds.set(age)
        duties = await self._store.workers.duties()
        if "sweep" in duties:
            self._metrics.sweeper_age_seconds.set(duties["sweep"][1])
        oldest = await self._store.reads.oldest_transaction_seconds()
        self._metrics.oldest_transaction_seconds.set(oldest or 0.0)

    async def _fire(self, due: DueSchedule) -> None:
        """Fires a schedule; if several sweepers try, the one that moves the schedule on also starts
        its job."""
        next_at = next_fire(due.cron, due.zone, due.now)
        try:
            job_id = await self._start(due, next_at)
        except DatabaseGone:
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            if await self._store.schedules.skip_schedule(due, next_at, reason):
                self._log.error("schedule.failed", schedule=due.name, error=reason)
            return
        if job_id is not None:
            self._log.info("schedule.fired", schedule=due.name, job_id=job_id)

    async def _start(self, due: DueSchedule, next_at: datetime) -> int | None:
        """Returns the job that was started; the last, if there are several."""
        pipeline = self._pipelines[due.reference]
        if pipeline.plans:
            return await self._control.fire_plan(pipeline, due, next_at)
        with span("job.create", pipeline=pipeline.name) as trace:
            new = await self._control.new_job(JobRequest(pipeline, due.options))
            return await self._store.schedules.fire_schedule(
                due, next_at, replace(new, trace=trace)
            )

    async def tend(self) -> None:
        """Runs one step of each pipeline's background work."""
        for pipeline in self._pipelines.values():
            await self._tend(pipeline)

    async def tend_all(self) -> None:
        """Runs all background work, before what may be the last worker ends."""
        for pipeline in self._pipelines.values():
            while await self._tend(pipeline):
                pass

    async def _tend(self, pipeline: Pipeline) -> bool:
        """Runs one step at a time: what another task is working on looks as if it were done."""
        if not pipeline.tends:
            return False
        async with self._tending:
            return await self._store.plans.tend(pipeline.tend)


def next_fire(cron: str, zone: str, now: datetime) -> datetime:
    """Returns the next time after `now`, in UTC; correct across changes of daylight saving time."""
    try:
        local = now.astimezone(ZoneInfo(zone))
    except (ZoneInfoNotFoundError, ValueError, OSError):  # a folder of zones is not a zone
        raise UserError(
            f"there is no time zone {zone!r}", "Use a name such as Europe/Zagreb or UTC."
        ) from None
    try:
        fires_at: datetime = next(CronSim(cron, local))
    except (CronSimError, StopIteration):
        raise UserError(
            f"{cron!r} is not a cron expression",
            'Five fields: minute hour day month weekday, e.g. "0 6 * * *" for 6 a.m. every day.',
        ) from None
    return fires_at.astimezone(ZoneInfo("UTC"))
