"""Schedules: jobs that start by the clock."""

from __future__ import annotations

from fastapi import APIRouter, Response
from pydantic import ValidationError

from holdfast.api import schedules as api
from holdfast.errors import UserError
from holdfast.web.new_job import options_of
from holdfast.web.visit import Governing, Visitor, fields

router = APIRouter(prefix="/schedules")


@router.get("")
async def index(visit: Visitor) -> Response:
    found = await api.index(visit.person, visit.parts)
    pipelines = [each for each in visit.parts.pipelines.values() if each.discovers]
    told = {"schedules": found.schedules, "pipelines": pipelines}
    return await visit.page("schedules.html", here="schedules", **told)


@router.post("")
async def put(visit: Governing) -> Response:
    form = await fields(visit.request)
    name = form.get("name", "").strip()
    if not name or len(name) > 200 or not name.isprintable():
        raise UserError("the schedule needs a name", "E.g. nightly.")
    try:
        body = api.NewSchedule(
            pipeline=form.get("pipeline", ""),
            cron=form.get("cron", ""),
            zone=form.get("zone") or "UTC",
            options=options_of(form.get("options", "")),
        )
    except ValidationError as error:
        raise UserError(f"{error.errors()[0]['loc'][0]} is missing or too long") from error
    await api.put(name, body, visit.person, visit.parts)
    return visit.go("/schedules", f"{name} is set.")


@router.post("/remove")
async def remove(visit: Governing) -> Response:
    name = (await fields(visit.request)).get("name", "")
    await api.remove(name, visit.person, visit.parts)
    return visit.go("/schedules", f"{name} is removed; the jobs it started stay.")
