"""Schedules: jobs that start at certain times."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path
from pydantic import Field

from holdfast.features.schedules.rules import ScheduleRequest, remove_schedule, set_schedule
from holdfast.features.schedules.shapes import ScheduleShape, schedule_shape
from holdfast.server.identity import Admin, PartsOf, Someone
from holdfast.server.shapes import Name, Shape

router = APIRouter(prefix="/api/schedules", tags=["schedules"])

ScheduleName = Annotated[Name, Path(examples=["nightly"])]


class ScheduleList(Shape):
    schedules: list[ScheduleShape]


class NewSchedule(Shape):
    pipeline: Name = Field(examples=["prices"])
    cron: Annotated[str, Field(max_length=200)] = Field(examples=["0 6 * * *"])
    zone: Annotated[str, Field(max_length=100)] = "UTC"
    options: dict[str, Any] = Field(default_factory=dict)


@router.get("", summary="List the schedules")
async def index(person: Someone, parts: PartsOf) -> ScheduleList:
    schedules = await parts.console.schedules.all()
    return ScheduleList(schedules=[schedule_shape(schedule) for schedule in schedules])


@router.put("/{name:path}", status_code=204, summary="Set a schedule")
async def put(name: ScheduleName, body: NewSchedule, person: Admin, parts: PartsOf) -> None:
    """A worker that has the pipeline starts its jobs."""
    pipeline = parts.new_jobs.pipeline(body.pipeline)
    request = ScheduleRequest(name, body.cron, body.zone, body.options)
    await set_schedule(parts.store, pipeline, request, person.name, parts.clock)


@router.delete("/{name:path}", status_code=204, summary="Remove a schedule")
async def remove(name: ScheduleName, person: Admin, parts: PartsOf) -> None:
    """Its jobs remain."""
    await remove_schedule(parts.store, name, person.name)
