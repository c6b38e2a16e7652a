"""The page of schedules: the list, and a form that adds or replaces one."""

from __future__ import annotations

from fastapi import APIRouter, Response

from holdfast.features.schedules.rules import ScheduleRequest, remove_schedule, set_schedule
from holdfast.features.schedules.shapes import schedule_shape
from holdfast.server.context import Visitor
from holdfast.server.forms import AdminPost, fields, parse_options

router = APIRouter(prefix="/schedules")


@router.get("")
async def index(visit: Visitor) -> Response:
    schedules = [schedule_shape(schedule) for schedule in await visit.parts.console.schedules.all()]
    pipelines = [pipeline for pipeline in visit.parts.pipelines.values() if pipeline.discovers]
    return await visit.page(
        "schedules.html", here="schedules", schedules=schedules, pipelines=pipelines
    )


@router.post("")
async def put(visit: AdminPost) -> Response:
    form = await fields(visit.request)
    parts, name = visit.parts, form.get("name", "").strip()
    options = parse_options(form.get("options", ""))
    request = ScheduleRequest(name, form.get("cron", ""), form.get("zone") or "UTC", options)
    pipeline = parts.new_jobs.pipeline(form.get("pipeline", ""))
    await set_schedule(parts.store, pipeline, request, visit.person.name, parts.clock)
    return visit.go("/schedules", f"Schedule {name} saved.")


@router.post("/remove")
async def remove(visit: AdminPost) -> Response:
    name = (await fields(visit.request)).get("name", "")
    await remove_schedule(visit.parts.store, name, visit.person.name)
    return visit.go("/schedules", f"Schedule {name} removed; the jobs it started remain.")
