"""Jobs: make, list, look at, and order about."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path as FilePath
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from pydantic import Field, ValidationError

from holdfast.api.cursors import Cursors
from holdfast.api.dependencies import Parts
from holdfast.api.files import TABLE_OPTIONS, keep, refer, require_in_place, require_readable
from holdfast.api.flags import Flag, is_on
from holdfast.api.idempotency import AnsweredOnce, request_key
from holdfast.api.identity import Operator, PartsOf, Person, Someone, find_person, ip_of, parts_of
from holdfast.api.images import IMAGE_LIST, rows_of
from holdfast.api.multipart import received_form, the_file
from holdfast.api.pipelines import pipeline_named
from holdfast.api.problems import Malformed, SwitchedOff, WrongType
from holdfast.api.rates import Rates
from holdfast.api.shapes import Counts, Id, JobList, JobShape, Name, Shape, Text, Why
from holdfast.console.files import StoredFile
from holdfast.console.jobs import CountedJob
from holdfast.console.why import why_not_running
from holdfast.engine.control import Asked, Caps
from holdfast.errors import NotAllowed, Throttled, UserError
from holdfast.model import Job, JobState


class _MadeOnce(AnsweredOnce):
    async def retell(self, request: Request, person: Person, made: int) -> str:
        parts = parts_of(request)
        told = await tell(await parts.console.jobs.job(made, None), person, parts, request)
        return told.model_dump_json(by_alias=True)


router = APIRouter(prefix="/api/jobs", tags=["jobs"], route_class=_MadeOnce)

_COUNTS = tuple(Counts.model_fields)


class NewJob(Shape):
    pipeline: Name = Field(examples=["prices"])
    file_id: Id | None = Field(default=None, description="A stored file.", examples=[3])
    file_ids: list[Id] = Field(
        default=[], max_length=1000, description="Stored images; each becomes an item."
    )
    path: Text | None = Field(
        default=None, description="A file of the server's, under one of HOLDFAST_FILE_ROOTS."
    )
    options: dict[str, Any] = Field(
        default_factory=dict, description="For the pipeline: ctx.options."
    )
    encoding: Annotated[str, Field(max_length=40)] | None = None
    delimiter: Annotated[str, Field(max_length=10)] | None = None
    sheet: Annotated[str, Field(max_length=100)] | None = None
    max_items: int | None = Field(default=None, ge=1, le=10**12)
    max_per_source: int | None = Field(default=None, ge=1, le=10**12)
    take_over: bool = Field(
        default=False,
        description="For admins: throws the checkpoint of another owner's job on the same source"
        " away.",
    )

    @property
    def table(self) -> dict[str, str]:
        return {name: value for name in TABLE_OPTIONS if (value := getattr(self, name))}


_JOB_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": NewJob.model_json_schema(by_alias=True)},
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file", "pipeline"],
                    "properties": {
                        "file": {"type": "string", "format": "binary"},
                        "pipeline": {"type": "string"},
                        "options": {"type": "string", "description": "JSON"},
                        "encoding": {"type": "string"},
                        "delimiter": {"type": "string"},
                        "sheet": {"type": "string"},
                        "maxItems": {"type": "integer"},
                    },
                }
            },
        },
    }
}


async def refuse_under_pressure(request: Request, parts: PartsOf) -> None:
    """The one place where new work is put off while there is too much of it, or refused where its
    owner has enough."""
    person = await find_person(request)
    if person is not None:
        await parts.console.quotas.require(person.name, jobs=1)
    seconds = await parts.backpressure.wait_seconds()
    if seconds is not None:
        raise Throttled("too much is waiting already", seconds, "Send it again later.")


async def scoped_job(
    job_id: Annotated[Id, Path(alias="jobId")], person: Someone, parts: PartsOf
) -> Job:
    """The job, if the person may see it; a job's owner never changes, so it stays theirs."""
    return await parts.console.jobs.job(job_id, person.scope)


ScopedJob = Annotated[Job, Depends(scoped_job)]


@router.post(
    "",
    status_code=202,
    summary="Make a job",
    openapi_extra=_JOB_BODY,
    dependencies=[Depends(refuse_under_pressure)],
)
async def make(request: Request, person: Operator, parts: PartsOf) -> JobShape:
    """Over a file that is sent with it, a stored file, a file of the server's, or over what the
    pipeline finds by itself. The answer comes when the job is kept; its rows are then taken in,
    whatever happens to the server meanwhile."""
    async with _asked_for(request, person, parts) as (body, file):
        pipeline = pipeline_named(body.pipeline, parts)
        control = parts.control(person.name)
        caps = Caps(body.max_items, body.max_per_source)
        if body.take_over and not person.is_admin:
            raise NotAllowed("only an admin may take another's stream over", "Ask an admin.")
        asked = Asked(
            ip_of(request),
            None if file is None else file.id,
            request_key(request),
            by_admin=person.is_admin,
            take_over=body.take_over,
        )
        if file is None:
            job_id = await control.start_discovery(pipeline, body.options, caps=caps, asked=asked)
        else:
            job_id = await control.start_upload(
                pipeline,
                FilePath(file.path),
                file.sha256,
                body.table,
                body.options,
                caps,
                asked=asked,
                images=file.kind == IMAGE_LIST,
            )
    return await tell(await parts.console.jobs.job(job_id, None), person, parts, request)


@router.get("", summary="List the jobs")
async def index(
    request: Request,
    person: Someone,
    parts: PartsOf,
    states: Annotated[str, Query(description="E.g. RUNNING,PAUSED.", max_length=200)] = "",
    pipelines: Annotated[str, Query(max_length=1000)] = "",
    page_size: Annotated[int, Query(alias="pageSize", ge=1, le=200)] = 50,
    after: str | None = None,
) -> JobList:
    """The newest first: your own; for admins and readers, everybody's."""
    wanted = states_of(states)
    named = [name for name in pipelines.split(",") if name]
    filter = {"states": wanted, "pipelines": named}
    cursors = Cursors(parts.secret, "jobs", person.name, filter)
    found = await parts.console.jobs.page(
        person.scope, page_size + 1, cursors.read(after), wanted, named
    )
    rates: Rates = request.app.state.rates
    shapes = [job_shape(counted, person, rates) for counted in found[:page_size]]
    more = cursors.write(found[page_size - 1].job.id) if len(found) > page_size else None
    return JobList(jobs=shapes, next=more)


@router.get("/{jobId}", summary="Show a job")
async def show(job: ScopedJob, request: Request, person: Someone, parts: PartsOf) -> JobShape:
    """With counters, rate, time left, and the one reason why it is not running."""
    return await tell(job, person, parts, request)


async def tell(job: Job, person: Person, parts: Parts, request: Request) -> JobShape:
    (counted,) = await parts.console.jobs.counted([job])
    rates: Rates = request.app.state.rates
    rates.see(counted)
    options = parts.options
    reason = await why_not_running(
        parts.console, job, options.worker_lost_seconds, options.backfill_enabled
    )
    shape = job_shape(counted, person, rates)
    if reason is not None:
        shape.why = Why(kind=reason.kind, text=reason.text, until=reason.until)
    return shape


def job_shape(counted: CountedJob, person: Person, rates: Rates) -> JobShape:
    job, counters = counted.job, counted.counters
    told = {name: getattr(job, name) for name in JobShape.model_fields if hasattr(job, name)}
    told |= {
        "columns": list(job.columns),
        "options": job.given_options,
        "ip": job.ip if person.may_change else None,
        "heartbeat_at": counted.heartbeat_at,
        "counters": Counts(**{name: getattr(counters, name) for name in _COUNTS}),
        "rate_per_second": rates.per_second(counted),
        "eta_seconds": rates.seconds_left(counted),
    }
    return JobShape(**told)


def states_of(text: str) -> list[str]:
    wanted = [word for word in text.upper().split(",") if word]
    unknown = [word for word in wanted if word not in set(JobState)]
    if unknown:
        raise UserError(f"there is no state {unknown[0]!r}", f"States: {', '.join(JobState)}.")
    return wanted


@asynccontextmanager
async def _asked_for(
    request: Request, person: Person, parts: Parts
) -> AsyncIterator[tuple[NewJob, StoredFile | None]]:
    """What the body asks for; a file that came with it is stored already."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json":
        body = _valid(await _json(request))
        yield body, await _named_file(body, person, parts)
    elif kind == "multipart/form-data":
        await _require_ingest(parts)
        async with received_form(request, parts.files, parts.options.max_upload_bytes) as form:
            body = _valid(_from_form(form.fields))
            pipeline_named(body.pipeline, parts)
            kept = await keep(the_file(form), body.table, person, parts)
            yield body, await rows_of([kept], person, parts)
    else:
        raise WrongType(
            "the body is neither JSON nor a form",
            "Send application/json, or multipart/form-data with the file as `file`.",
        )


async def _json(request: Request) -> Any:
    try:
        return orjson.loads(await request.body())
    except orjson.JSONDecodeError as error:
        raise Malformed(f"the body is not JSON: {error}") from error


def _from_form(fields: dict[str, str]) -> dict[str, Any]:
    """Options come as JSON text."""
    body: dict[str, Any] = {name: value for name, value in fields.items() if value != ""}
    if "options" in body:
        try:
            body["options"] = orjson.loads(body["options"])
        except orjson.JSONDecodeError as error:
            raise Malformed(f"the field options is not JSON: {error}") from error
    return body


def _valid(body: Any) -> NewJob:
    try:
        return NewJob.model_validate(body)
    except ValidationError as error:
        found = [{**each, "loc": ("body", *each["loc"])} for each in error.errors()]
        raise RequestValidationError(found) from error


async def _named_file(body: NewJob, person: Person, parts: Parts) -> StoredFile | None:
    given = [body.file_id is not None, body.path is not None, bool(body.file_ids)]
    if sum(given) > 1:
        raise UserError("give one of fileId, fileIds and path, not several")
    if not any(given):
        return None
    await _require_ingest(parts)
    if body.path is not None:
        return await refer(body.path, body.table, person, parts)
    ids = body.file_ids or [body.file_id or 0]
    files = [await parts.console.files.file(each, person.scope) for each in dict.fromkeys(ids)]
    for file in files:
        await require_in_place(file, parts)
        await require_readable(file, body.table, parts)
    return await rows_of(files, person, parts)


async def _require_ingest(parts: Parts) -> None:
    if not await is_on(parts, Flag.INGEST):
        raise SwitchedOff(
            "uploads are switched off",
            "An admin switches them on: PUT /api/flags/ingest, or DB_INGEST_ENABLED=true.",
        )
