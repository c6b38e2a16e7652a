"""Exports: requested, written in the background, downloaded."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response, StreamingResponse

from holdfast.errors import NotThere, UnfitState
from holdfast.features.accounts.person import Person
from holdfast.features.exports.export_requests import ExportRequest, request_export
from holdfast.features.exports.shapes import (
    ExportList,
    ExportShape,
    Format,
    export_shape,
    exports_page,
)
from holdfast.features.items.item_filters import in_utc, rulings_of, statuses_of
from holdfast.features.items.items import ItemFilter
from holdfast.features.items.params import Code, From, RulingWord, Statuses, To, Values
from holdfast.features.items.value_search import values_of
from holdfast.features.jobs.scoped_job import ScopedJob
from holdfast.server.downloads import Download, download_response
from holdfast.server.idempotency import IdempotentRoute, request_key
from holdfast.server.identity import PartsOf, Someone, parts_of
from holdfast.server.shapes import Id


class _ExportRoute(IdempotentRoute):
    async def describe(self, request: Request, person: Person, made: int) -> str:
        export = await parts_of(request).console.exports.export(made)
        return export_shape(export).model_dump_json(by_alias=True)


router = APIRouter(tags=["exports"], route_class=_ExportRoute)

_MEDIA_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "jsonl": "application/x-ndjson",
    "json": "application/json",
}


@router.post("/api/jobs/{jobId}/export", status_code=202, summary="Export a job's items")
async def make(
    job: ScopedJob,
    request: Request,
    person: Someone,
    parts: PartsOf,
    format: Format,
    statuses: Statuses = "",
    with_input: Annotated[bool, Query(alias="withInput")] = False,
    code: Code = None,
    since: From = None,
    until: To = None,
    value: Values = [],  # noqa: B006
    ruling: RulingWord = "",
) -> ExportShape:
    """It has the same rows, values and order as the grid with the same filter.

    While the job is running, the export is partial."""
    filter = ItemFilter(
        statuses_of(statuses), code, in_utc(since), in_utc(until), rulings_of(ruling)
    )
    values = values_of(value, job, parts.pipelines.get(job.pipeline))
    export = ExportRequest(job.id, format, filter, values, with_input, request_key(request))
    return export_shape(await request_export(parts.console, export, person.name))


@router.get("/api/exports", summary="List your exports")
async def index(
    person: Someone,
    parts: PartsOf,
    page_size: Annotated[int, Query(alias="pageSize", ge=1, le=200)] = 50,
    after: str | None = None,
) -> ExportList:
    return await exports_page(person, parts, page_size, after)


@router.get("/api/exports/{export_id}", summary="Show an export")
async def show(export_id: Id, person: Someone, parts: PartsOf) -> ExportShape:
    return export_shape(await parts.console.exports.export(export_id, person.own_scope))


@router.get(
    "/api/exports/{export_id}/download",
    summary="Download an export",
    response_class=StreamingResponse,
    responses={200: {"content": {kind: {} for kind in _MEDIA_TYPES.values()}}},
)
async def download(export_id: Id, request: Request, person: Someone, parts: PartsOf) -> Response:
    export = await parts.console.exports.export(export_id, person.own_scope)
    if export.state != "DONE":
        raise UnfitState(f"export {export_id} is {export.state}", "Try again when it is DONE.")
    # A user who can no longer see the job must not read it from an old export either.
    job = await parts.console.jobs.job(export.job_id, person.scope)
    partial = "-partial" if export.partial else ""
    name = f"{job.name.rpartition('.')[0] or job.name}-{job.id}{partial}.{export.format}"
    media_type = _MEDIA_TYPES[export.format]
    file = Download(export.key or "", export.size or 0, export.sha256 or "", media_type, name)
    try:
        return await download_response(parts.library.access.store, file, request)
    except NotThere:
        raise NotThere(f"the file of export {export_id} is gone", "Request a new export.") from None
