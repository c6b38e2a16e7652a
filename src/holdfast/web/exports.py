"""Exports: asked for on the job's page, written in the background, fetched from here."""

from __future__ import annotations

from fastapi import APIRouter, Response

from holdfast.api import exports as api
from holdfast.api.shapes import Id
from holdfast.errors import UserError
from holdfast.web.filtering import NOTHING_SAID, wanted
from holdfast.web.job import ShownJob
from holdfast.web.visit import Posting, Visitor, fields

router = APIRouter()

_MATCHING = "matching"
_FORMATS = {"xlsx": "Excel (XLSX)", "csv": "CSV", "jsonl": "JSON lines"}


@router.get("/jobs/{job_id}/export")
async def ask(shown: ShownJob, q: str = "") -> Response:
    which = wanted(q, shown.columns)
    matches = bool(which.values or not which.items.is_empty)
    told = {"job": shown.shape, "formats": _FORMATS, "which": which, "matches": matches}
    if shown.visit.is_partial:
        return shown.visit.part("ask/export.html", **told)
    return await shown.visit.page("ask.html", here="jobs", question="ask/export.html", **told)


@router.post("/jobs/{job_id}/export")
async def make(shown: ShownJob, visit: Posting) -> Response:
    form = await fields(visit.request)
    format, statuses = form.get("format", "xlsx"), form.get("statuses", "")
    if format not in _FORMATS:
        raise UserError(f"there is no format {format!r}", f"Formats: {', '.join(_FORMATS)}.")
    which = wanted(form.get("q", ""), shown.columns) if statuses == _MATCHING else NOTHING_SAID
    made = await api.make(
        shown.job,
        visit.request,
        visit.person,
        visit.parts,
        format,  # type: ignore[arg-type]
        which.statuses if statuses == _MATCHING else statuses,
        "with_input" in form,
        which.items.code,
        which.items.since,
        which.items.until,
        which.value_words,
        ",".join(which.items.rulings),
    )
    if visit.is_partial:
        return visit.part("ask/exported.html", export=made)
    return visit.go(f"/exports/{made.id}")


@router.get("/exports")
async def index(visit: Visitor, after: str | None = None) -> Response:
    found = await api.index(visit.person, visit.parts, 50, after)
    return await visit.page("exports.html", here="jobs", exports=found.exports, next=found.next)


@router.get("/exports/{export_id}")
async def show(export_id: Id, visit: Visitor) -> Response:
    """Asked again and again by the dialog until it is written."""
    export = await api.show(export_id, visit.person, visit.parts)
    if visit.is_partial:
        return visit.part("ask/exported.html", export=export)
    return await visit.page("ask.html", here="jobs", question="ask/exported.html", export=export)
