"""Schedules: starts the jobs that are due."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from holdfast.errors import DatabaseGone
from holdfast.kernel.jobs.control import JobRequest
from holdfast.kernel.jobs.cron import next_fire
from holdfast.kernel.jobs.schedules import DueSchedule
from holdfast.kernel.worker.upkeep.parts import UpkeepParts
from holdfast.model import Schedule
from holdfast.observe.tracing import span
from holdfast.pipeline import Pipeline


class DueSchedules:
    def __init__(self, parts: UpkeepParts) -> None:
        self._store = parts.store
        self._control = parts.control
        self._pipelines = parts.pipelines
        self._log = parts.log
        self._set: set[str] = set()  # schedules of pipelines that are set

    async def fire(self) -> None:
        """Sets the schedules that pipelines bring, and starts the jobs of those that are due."""
        for pipeline in self._pipelines.values():
            for schedule in pipeline.schedules:
                await self._set_once(pipeline, schedule)
        for due in await self._store.schedules.due_schedules():
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
        await self._store.schedules.set_once(schedule, pipeline.name, next_at)
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
