"""Exports: requested on the job's page, written in the background, downloaded here."""

from __future__ import annotations

from fastapi import APIRouter, Response

from holdfast.features.exports.export_requests import FORMATS, ExportRequest, request_export
from holdfast.features.exports.shapes import export_shape, exports_page
from holdfast.features.items.filtering import parse_filter
from holdfast.features.items.item_filters import statuses_of
from holdfast.features.items.items import ItemFilter
from holdfast.features.items.pages_grid import columns_of
from holdfast.features.jobs.pages_job import JobVisit, VisitedJob
from holdfast.server.context import Visitor
from holdfast.server.forms import UserPost, fields
from holdfast.server.shapes import Id

router = APIRouter()

_MATCHING = "matching"
_PAGE_SIZE = 50


@router.get("/jobs/{job_id}/export")
async def export_dialog(visited: VisitedJob, q: str = "") -> Response:
    filter = parse_filter(q, columns_of(visited))
    return await visited.dialog("dialogs/export.html", formats=FORMATS, filter=filter)


@router.post("/jobs/{job_id}/export")
async def make(visited: VisitedJob, visit: UserPost) -> Response:
    request = _export_request(visited, await fields(visit.request))
    export = await request_export(visit.parts.console, request, visit.person.name)
    if visit.is_partial:
        return visit.part("dialogs/export_progress.html", export=export_shape(export))
    return visit.go(f"/exports/{export.id}")


@router.get("/exports")
async def index(visit: Visitor, after: str | None = None) -> Response:
    page = await exports_page(visit.person, visit.parts, _PAGE_SIZE, after)
    return await visit.page("exports.html", here="jobs", exports=page.exports, next=page.next)


@router.get("/exports/{export_id}")
async def show(export_id: Id, visit: Visitor) -> Response:
    """Shows the export; the dialog polls this until it is written."""
    export = await visit.parts.console.exports.export(export_id, visit.person.own_scope)
    shape = export_shape(export)
    return await visit.dialog("dialogs/export_progress.html", here="jobs", export=shape)


def _export_request(visited: JobVisit, form: dict[str, str]) -> ExportRequest:
    format, statuses = form.get("format", "xlsx"), form.get("statuses", "")
    with_input = "with_input" in form
    if statuses == _MATCHING:
        filter = parse_filter(form.get("q", ""), columns_of(visited))
        return ExportRequest(visited.job.id, format, filter.items, filter.values, with_input)
    items = ItemFilter(statuses_of(statuses))
    return ExportRequest(visited.job.id, format, items, with_input=with_input)
