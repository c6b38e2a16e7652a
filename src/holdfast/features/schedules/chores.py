"""Starts the jobs that are due."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from holdfast.errors import DatabaseGone
from holdfast.features.schedules.cron import next_fire
from holdfast.features.schedules.table import DueSchedule, Schedules
from holdfast.kernel.jobs.control import JobRequest, options_of
from holdfast.kernel.worker.chores import Chore
from holdfast.kernel.worker.upkeep.parts import UpkeepParts
from holdfast.model import Schedule
from holdfast.observe.tracing import span
from holdfast.pipeline import Pipeline

if TYPE_CHECKING:
    from holdfast.configuration import Settings


class DueSchedules:
    def __init__(self, parts: UpkeepParts) -> None:
        self._store = parts.store
        self._schedules = Schedules(parts.store.database)
        self._control = parts.control
        self._pipelines = parts.pipelines
        self._log = parts.log
        self._set: set[str] = set()  # schedules of pipelines that are set

    async def fire(self) -> None:
        """Sets the schedules that pipelines bring, and starts the jobs of those that are due."""
        for pipeline in self._pipelines.values():
            for schedule in pipeline.schedules:
                await self._set_once(pipeline, schedule)
        for due in await self._schedules.due_schedules():
            if due.reference in self._pipelines:
                await self._fire(due)

    async def _set_once(self, pipeline: Pipeline, schedule: Schedule) -> None:
        """A pipeline that is off gets its schedules when it is switched on."""
        if schedule.name in self._set:
            return
        if pipeline.enabled_by is not None:
            flag = (await self._store.flags.all()).get(pipeline.enabled_by)
            if flag is None or flag["value"] is not True:
                return
        next_at = next_fire(schedule.cron, schedule.zone, await self._store.jobs.now())
        await self._schedules.set_once(schedule, pipeline.name, next_at)
        self._set.add(schedule.name)

    async def _fire(self, due: DueSchedule) -> None:
        """Starts what is due. The process that moves the schedule on also starts its job."""
        next_at = next_fire(due.cron, due.zone, due.now)
        try:
            job_id = await self._start(due, next_at)
        except DatabaseGone:
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            if await self._schedules.skip_schedule(due, next_at, reason):
                self._log.error("schedule.failed", schedule=due.name, error=reason)
            return
        if job_id is not None:
            self._log.info("schedule.fired", schedule=due.name, job_id=job_id)

    async def _start(self, due: DueSchedule, next_at: datetime) -> int | None:
        """Returns the job that was started; the last, if there are several."""
        pipeline = self._pipelines[due.reference]
        if pipeline.plans:
            return await self._fire_plan(pipeline, due, next_at)
        with span("job.create", pipeline=pipeline.name) as trace:
            new = await self._control.new_job(JobRequest(pipeline, due.options))
            return await self._schedules.fire_schedule(due, next_at, replace(new, trace=trace))

    async def _fire_plan(
        self, pipeline: Pipeline, due: DueSchedule, next_at: datetime
    ) -> int | None:
        planner = await self._control.planner(pipeline, f"schedule:{due.name}")
        due = replace(due, options=options_of(pipeline, due.options))
        job_ids = await self._schedules.fire_plan(due, next_at, planner)
        self._control.log_ordered(planner, job_ids)
        return job_ids[-1] if job_ids else None


def chores(parts: UpkeepParts, settings: Settings) -> list[Chore]:
    return [Chore("schedules", parts.limits.sweep_seconds, DueSchedules(parts).fire)]
