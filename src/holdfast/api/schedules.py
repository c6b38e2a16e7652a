"""Schedules: jobs that start by the clock."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Path
from pydantic import Field

from holdfast.api.identity import Admin, PartsOf, Someone
from holdfast.api.pipelines import pipeline_named
from holdfast.api.shapes import Name, Shape
from holdfast.engine.upkeep import next_fire
from holdfast.errors import NotThere, UserError
from holdfast.options import checked_options

router = APIRouter(prefix="/api/schedules", tags=["schedules"])

ScheduleName = Annotated[Name, Path(examples=["nightly"])]


class ScheduleShape(Shape):
    name: str
    pipeline: str
    cron: str = Field(examples=["0 6 * * *"])
    zone: str
    options: dict[str, Any]
    enabled: bool
    next_at: datetime | None
    last_at: datetime | None
    last_job_id: int | None
    error: str | None


class ScheduleList(Shape):
    schedules: list[ScheduleShape]


class NewSchedule(Shape):
    pipeline: Name = Field(examples=["prices"])
    cron: Annotated[str, Field(max_length=200)] = Field(examples=["0 6 * * *"])
    zone: Annotated[str, Field(max_length=100)] = "UTC"
    options: dict[str, Any] = Field(default_factory=dict)


@router.get("", summary="List the schedules")
async def index(person: Someone, parts: PartsOf) -> ScheduleList:
    found = await parts.store.schedules.all()
    return ScheduleList(schedules=[_shape(each) for each in found])


@router.put("/{name}", status_code=204, summary="Set a schedule")
async def put(name: ScheduleName, body: NewSchedule, person: Admin, parts: PartsOf) -> None:
    """A worker that has the pipeline starts its jobs."""
    pipeline = pipeline_named(body.pipeline, parts)
    if not pipeline.discovers:
        raise UserError(
            f"the pipeline {pipeline.name} has no `discover`",
            "Only pipelines that find their records by themselves can be scheduled.",
        )
    options = checked_options(pipeline.name, pipeline.options, body.options)
    next_at = next_fire(body.cron, body.zone, parts.clock.now())
    await parts.control(person.name).set_schedule(
        name, pipeline.name, body.cron, body.zone, options, next_at
    )


@router.delete("/{name}", status_code=204, summary="Remove a schedule")
async def remove(name: ScheduleName, person: Admin, parts: PartsOf) -> None:
    """The jobs that it started stay."""
    if not await parts.control(person.name).remove_schedule(name):
        raise NotThere(f"there is no schedule {name!r}", "GET /api/schedules lists them.")


def _shape(told: dict[str, Any]) -> ScheduleShape:
    options = orjson.loads(told["options"])
    rest = {name: value for name, value in told.items() if name != "reference"}
    values = {**rest, "pipeline": told["reference"], "options": options}
    return ScheduleShape(**{**values, "enabled": bool(told["enabled"])})
