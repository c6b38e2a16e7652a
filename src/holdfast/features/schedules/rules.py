"""Schedules as people set them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from holdfast.clock import Clock
from holdfast.errors import NotThere, UserError
from holdfast.features.schedules.cron import next_fire
from holdfast.features.schedules.table import Schedules
from holdfast.kernel import Store
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
    store: Store, pipeline: Pipeline, request: ScheduleRequest, actor: str, clock: Clock
) -> datetime:
    """Sets a schedule; returns when it first starts a job, if a worker has the pipeline."""
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
    await Schedules(store.database).set_schedule(
        name, pipeline.name, request.cron, request.zone, options, next_at, actor
    )
    return next_at


async def remove_schedule(store: Store, name: str, actor: str) -> None:
    """Removes a schedule; the jobs that it started remain."""
    if not await Schedules(store.database).remove_schedule(name, actor):
        raise NotThere(
            f"there is no schedule {name!r}",
            "`holdfast schedule list` and GET /api/schedules list them.",
        )
