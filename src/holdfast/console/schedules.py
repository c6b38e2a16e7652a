"""Schedules as people set them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.clock import Clock
from holdfast.engine.control import Control
from holdfast.engine.upkeep import next_fire
from holdfast.errors import NotThere, UserError
from holdfast.options import checked_options
from holdfast.pipeline import Pipeline

LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class ScheduleRequest:
    name: str
    cron: str
    zone: str = "UTC"
    options: Mapping[str, Any] = field(default_factory=dict)


async def set_schedule(
    control: Control, pipeline: Pipeline, request: ScheduleRequest, clock: Clock
) -> None:
    """Sets a schedule; a worker that has the pipeline starts its jobs."""
    name = request.name
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise UserError("the schedule needs a name", "For example: nightly.")
    if not pipeline.discovers:
        raise UserError(
            f"the pipeline {pipeline.name} does not find its own records",
            "Only pipelines that find their own records can be scheduled.",
        )
    options = checked_options(pipeline.name, pipeline.options, request.options)
    next_at = next_fire(request.cron, request.zone, clock.now())
    await control.set_schedule(name, pipeline.name, request.cron, request.zone, options, next_at)


async def remove_schedule(control: Control, name: str) -> None:
    """Removes a schedule; the jobs that it started remain."""
    if not await control.remove_schedule(name):
        raise NotThere(f"there is no schedule {name!r}", "GET /api/schedules lists them.")
