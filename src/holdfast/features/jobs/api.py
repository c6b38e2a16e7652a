"""Jobs: start, list and show them, with their errors and what the controllers changed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from pydantic import Field

from holdfast.errors import UserError
from holdfast.features.accounts.person import Person
from holdfast.features.jobs.file_inputs import (
    TABLE_FIELDS,
    FileInput,
    choice_of,
    form_fields,
    json_of,
    neither_json_nor_form,
    validated,
)
from holdfast.features.jobs.new_jobs import FileChoice as FileChoice
from holdfast.features.jobs.scoped_job import ScopedJob, require_capacity
from holdfast.features.jobs.shapes import (
    ErrorGroup,
    PaceChange,
    describe_job,
    error_groups,
    jobs_page,
    pace_changes,
)
from holdfast.features.switches.flags import Flag
from holdfast.kernel.jobs.control import JobRequest as JobRequest
from holdfast.server.dependencies import Parts
from holdfast.server.idempotency import IdempotentRoute, request_key
from holdfast.server.identity import Operator, PartsOf, Someone, ip_of, parts_of
from holdfast.server.multipart import received_form, require_file
from holdfast.server.shapes import Id, JobList, JobShape, Name, Shape


class _JobRoute(IdempotentRoute):
    async def describe(self, request: Request, person: Person, made: int) -> str:
        parts = parts_of(request)
        shape = await describe_job(await parts.console.jobs.job(made, None), person, parts)
        return shape.model_dump_json(by_alias=True)


router = APIRouter(prefix="/api/jobs", tags=["jobs"], route_class=_JobRoute)


class JobBody(FileInput):
    pipeline: Name = Field(examples=["prices"])
    file_ids: list[Id] = Field(
        default=[], max_length=1000, description="Stored images; each becomes an item."
    )
    options: dict[str, Any] = Field(
        default_factory=dict, description="Passed to the pipeline as ctx.options."
    )
    max_items: int | None = Field(default=None, ge=1, le=10**12)
    max_per_source: int | None = Field(default=None, ge=1, le=10**12)
    take_over: bool = Field(
        default=False,
        description="For admins: start even if the job of another owner could continue on the same"
        " source; its checkpoint is lost.",
    )
    standing: bool = Field(
        default=False,
        description="Opens a job that accepts records at any time and does not end, or returns the"
        " one that you have of this pipeline. It has no file and no maximum.",
    )


_JOB_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": JobBody.model_json_schema(by_alias=True)},
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file", "pipeline"],
                    "properties": {
                        "file": {"type": "string", "format": "binary"},
                        "pipeline": {"type": "string"},
                        "options": {"type": "string", "description": "JSON"},
                        **TABLE_FIELDS,
                        "maxItems": {"type": "integer"},
                    },
                }
            },
        },
    }
}


class ErrorGroups(Shape):
    errors: list[ErrorGroup]


class PaceChanges(Shape):
    decisions: list[PaceChange]


@router.post(
    "",
    status_code=202,
    summary="Start a job",
    openapi_extra=_JOB_BODY,
    dependencies=[Depends(require_capacity)],
)
async def make(request: Request, person: Operator, parts: PartsOf) -> JobShape:
    """The records come from an uploaded file, a stored file, a file on the server or in a bucket,
    or the pipeline finds them itself. Responds when the job is stored; a worker then reads its
    rows. Also opens a standing job, which is given its records later."""
    async with _job_request(request, parts) as (asked, choice):
        job_id = await parts.new_jobs.start(asked, person, choice)
    return await describe_job(await parts.console.jobs.job(job_id, None), person, parts)


@router.get("", summary="List the jobs")
async def index(
    person: Someone,
    parts: PartsOf,
    states: Annotated[
        str,
        Query(
            description="E.g. RUNNING,PAUSED. IDLE: standing jobs that run and have no open items.",
            max_length=200,
        ),
    ] = "",
    pipelines: Annotated[str, Query(max_length=1000)] = "",
    page_size: Annotated[int, Query(alias="pageSize", ge=1, le=200)] = 50,
    after: str | None = None,
) -> JobList:
    """The newest come first. You see your own jobs; admins and readers see all."""
    return await jobs_page(person, parts, page_size, after, states, pipelines)


@router.get("/{jobId}", summary="Show a job")
async def show(job: ScopedJob, person: Someone, parts: PartsOf) -> JobShape:
    """Includes counters, rate, time left, and the reason if it is not running."""
    return await describe_job(job, person, parts)


@router.get("/{jobId}/errors", summary="List a job's errors by code")
async def errors(job: ScopedJob, parts: PartsOf) -> ErrorGroups:
    """Counts are exact up to 10,000 errors, estimated beyond."""
    return ErrorGroups(errors=await error_groups(job, parts))


@router.get("/{jobId}/decisions", summary="List what the controllers of a job changed, and why")
async def decisions(
    job: ScopedJob,
    parts: PartsOf,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> PaceChanges:
    """The newest come first."""
    return PaceChanges(decisions=await pace_changes(job, parts, limit))


@asynccontextmanager
async def _job_request(
    request: Request, parts: Parts
) -> AsyncIterator[tuple[JobRequest, FileChoice]]:
    """Parses a request that is JSON, or a form with a file."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json":
        body = validated(JobBody, await json_of(request))
        yield _asked(body, request, parts), choice_of(body, body.file_ids)
    elif kind == "multipart/form-data":
        await parts.flags.require(Flag.INGEST)
        async with received_form(request, parts.library.access) as form:
            body = validated(JobBody, form_fields(form.fields))
            choice = choice_of(body, body.file_ids)
            if choice.is_given:
                raise UserError("give only one of a file in the form, fileId, path and bucketKey")
            choice = replace(choice, received=require_file(form))
            yield _asked(body, request, parts), choice
    else:
        raise neither_json_nor_form()


def _asked(body: JobBody, request: Request, parts: Parts) -> JobRequest:
    body.require_one("fileId, fileIds, path and bucketKey", body.file_ids or None)
    return JobRequest(
        parts.new_jobs.pipeline(body.pipeline),
        body.options,
        standing=body.standing,
        max_items=body.max_items,
        max_per_source=body.max_per_source,
        take_over=body.take_over,
        ip=ip_of(request),
        key=request_key(request),
    )
