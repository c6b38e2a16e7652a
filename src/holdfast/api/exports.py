"""Exports: asked for, written in the background, downloaded."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import FileResponse
from pydantic import Field

from holdfast.api.cursors import Cursors
from holdfast.api.idempotency import AnsweredOnce, request_key
from holdfast.api.identity import PartsOf, Person, Someone, parts_of
from holdfast.api.items import (
    Code,
    From,
    RulingWord,
    Statuses,
    To,
    Values,
    in_utc,
    rulings_of,
    statuses_of,
)
from holdfast.api.jobs import ScopedJob
from holdfast.api.operations import narrowing
from holdfast.api.shapes import Id, Shape
from holdfast.console.export_writer import ExportWriter
from holdfast.console.exports import Export, NewExport
from holdfast.console.items import ItemFilter
from holdfast.console.value_search import values_of
from holdfast.errors import NotThere, UnfitState


class _MadeOnce(AnsweredOnce):
    async def retell(self, request: Request, person: Person, made: int) -> str:
        found = await parts_of(request).console.exports.export(made)
        return _shape(found).model_dump_json(by_alias=True)


router = APIRouter(tags=["exports"], route_class=_MadeOnce)

Format = Literal["csv", "xlsx", "jsonl"]
_MEDIA_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "jsonl": "application/x-ndjson",
}


class ExportShape(Shape):
    id: int
    owner_id: str
    job_id: int
    format: Format
    statuses: list[str]
    narrowed: dict[str, Any] = Field(description="Code, times and values that were asked for.")
    with_input: bool
    state: Literal["QUEUED", "RUNNING", "DONE", "FAILED"]
    partial: bool = Field(description="The job still ran when it was written.")
    rows_count: int
    size: int | None
    notes: list[str] = Field(description="What the format could not hold, in sentences.")
    error: str | None
    created_at: datetime | None
    finished_at: datetime | None
    download: str | None = Field(examples=["/api/exports/7/download"])


class ExportList(Shape):
    exports: list[ExportShape]
    next: str | None


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
    """The same rows, values and order as the grid, by the same filter. Of a job that runs, what
    there is by then."""
    filter = ItemFilter(
        statuses_of(statuses), code, in_utc(since), in_utc(until), rulings_of(ruling)
    )
    values = values_of(value, job, parts.pipelines.get(job.pipeline))
    narrowed = {name: told for name, told in narrowing(filter, values).items() if told}
    wanted = [str(status) for status in filter.statuses]
    new = NewExport(person.name, job.id, format, wanted, with_input, narrowed, request_key(request))
    return _shape(await parts.console.exports.export(await parts.console.exports.add_export(new)))


@router.get("/api/exports", summary="List your exports")
async def index(
    person: Someone,
    parts: PartsOf,
    page_size: Annotated[int, Query(alias="pageSize", ge=1, le=200)] = 50,
    after: str | None = None,
) -> ExportList:
    cursors = Cursors(parts.secret, "exports", person.name, {})
    scope = None if person.is_admin else person.name
    found = await parts.console.exports.page(scope, page_size + 1, cursors.read(after))
    more = cursors.write(found[page_size - 1].id) if len(found) > page_size else None
    return ExportList(exports=[_shape(each) for each in found[:page_size]], next=more)


@router.get("/api/exports/{export_id}", summary="Show an export")
async def show(export_id: Id, person: Someone, parts: PartsOf) -> ExportShape:
    scope = None if person.is_admin else person.name
    return _shape(await parts.console.exports.export(export_id, scope))


@router.get(
    "/api/exports/{export_id}/download",
    summary="Download an export",
    response_class=FileResponse,
    responses={200: {"content": {kind: {} for kind in _MEDIA_TYPES.values()}}},
)
async def download(
    export_id: Id, request: Request, person: Someone, parts: PartsOf
) -> FileResponse:
    scope = None if person.is_admin else person.name
    export = await parts.console.exports.export(export_id, scope)
    if export.state != "DONE":
        raise UnfitState(f"export {export_id} is {export.state}", "Ask again when it is DONE.")
    exports: ExportWriter = request.app.state.exports
    path = exports.path(export)
    if not await asyncio.to_thread(path.is_file):
        raise NotThere(f"the file of export {export_id} is gone", "Ask for a new export.")
    # Whoever may not see the job any more, may not read it from an export of better days either.
    job = await parts.console.jobs.job(export.job_id, person.scope)
    partial = "-partial" if export.partial else ""
    name = f"{job.name.rpartition('.')[0] or job.name}-{job.id}{partial}.{export.format}"
    return FileResponse(path, media_type=_MEDIA_TYPES[export.format], filename=name)


def _shape(export: Export) -> ExportShape:
    told = {name: getattr(export, name) for name in ExportShape.model_fields if name != "download"}
    done = export.state == "DONE"
    told["download"] = f"/api/exports/{export.id}/download" if done else None
    return ExportShape(**told)
