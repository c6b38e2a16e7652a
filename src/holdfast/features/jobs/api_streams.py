"""Streams: how far each source has been read, and what stopped it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Query, Request
from pydantic import Field

from holdfast.errors import NotThere
from holdfast.features.accounts.person import Person
from holdfast.features.jobs.api import ScopedJob, describe_job
from holdfast.kernel.database.rows import known
from holdfast.kernel.jobs.control import JobRequest
from holdfast.model import Job, StreamState
from holdfast.server.cursors import Cursors
from holdfast.server.dependencies import Parts
from holdfast.server.idempotency import IdempotentRoute, request_key
from holdfast.server.identity import Operator, PartsOf, Someone, ip_of, parts_of
from holdfast.server.shapes import Id, JobShape, Shape


class _StreamRoute(IdempotentRoute):
    """A route of streams; only `force-full` creates something: a job."""

    async def describe(self, request: Request, person: Person, made: int) -> str:
        parts = parts_of(request)
        job = await describe_job(await parts.store.reads.job(made), person, parts)
        return ForcedShape(job=job, follows_job_id=None).model_dump_json(by_alias=True)


router = APIRouter(tags=["streams"], route_class=_StreamRoute)


class StreamShape(Shape):
    id: int
    pipeline: str
    source: str
    mode: str
    job_id: int
    owner_id: str
    state: StreamState
    generation: int
    cursor: Any = Field(description="The current position, in the source's own format.")
    pages_count: int
    records_count: int = Field(description="Records read; overlapping pages count twice.")
    items_count: int
    max_items: int | None
    expected_count: int | None = Field(description="The number of records that the source reports.")
    actual_count: int | None = Field(
        description="How many of them are stored, if the pipeline counts them at the end."
    )
    verified_at: datetime | None
    failures: int
    error: str | None
    waiting_for: str | None = Field(
        description="What it waits for, if nothing failed: new records, a gate."
    )
    available_at: datetime | None = Field(description="It is not read before this time.")
    worker: str | None
    updated_at: datetime | None
    full_completed_at: datetime | None


class ForcedShape(Shape):
    job: JobShape | None
    follows_job_id: int | None = Field(
        description="If it has not started: the job after which it starts."
    )


class SliceShape(Shape):
    id: int
    generation: int
    job_id: int
    worker: str
    started_at: datetime
    ended_at: datetime | None
    pages_count: int | None
    ended: str | None = Field(description="How it ended; null while it is running.")
    error: str | None


class StreamDetail(Shape):
    stream: StreamShape
    slices: list[SliceShape] = Field(description="The latest slices, newest first.")


class StreamList(Shape):
    streams: list[StreamShape]
    next: str | None


@router.get("/api/streams", summary="List the streams")
async def index(
    person: Someone,
    parts: PartsOf,
    state: StreamState | None = None,
    pipeline: Annotated[str, Query(max_length=200)] = "",
    page_size: Annotated[int, Query(alias="pageSize", ge=1, le=200)] = 100,
    after: str | None = None,
) -> StreamList:
    cursors = Cursors(parts.secret, "streams", person.name, {"state": state, "of": pipeline})
    streams = await parts.console.streams.page(
        person.scope, page_size + 1, cursors.read(after), state or "", pipeline
    )
    more = cursors.write(streams[page_size - 1]["id"]) if len(streams) > page_size else None
    return StreamList(streams=[_shape(stream) for stream in streams[:page_size]], next=more)


@router.get("/api/streams/{stream_id}", summary="Show a stream with its latest slices")
async def show(stream_id: Id, person: Someone, parts: PartsOf) -> StreamDetail:
    streams = await parts.console.streams.page(person.scope, 1, stream_id + 1)
    if not streams or streams[0]["id"] != stream_id:
        raise NotThere(f"there is no stream {stream_id}", "GET /api/streams lists yours.")
    slices = await parts.store.streams.slices(stream_id)
    return StreamDetail(
        stream=_shape(streams[0]), slices=[SliceShape(**slice._asdict()) for slice in slices]
    )


@router.get("/api/jobs/{jobId}/streams", summary="List a job's streams")
async def of_job(job: ScopedJob, parts: PartsOf) -> StreamList:
    extra = {"pipeline": job.pipeline, "job_id": job.id, "owner_id": job.owner_id}
    streams = await parts.store.streams.of_job(job.id)
    shapes = [_shape({**row._asdict(), **extra, "full_completed_at": None}) for row in streams]
    return StreamList(streams=shapes, next=None)


@router.post("/api/streams/{stream_id}/retry", summary="Resume a stream that stopped")
async def retry(stream_id: Id, person: Operator, parts: PartsOf) -> JobShape:
    """Its job continues from the stream's cursor, after a failure or at a cap."""
    job_id = await parts.console.streams.job_of(stream_id, person.scope)
    await parts.control(person.name).resume(job_id, quota=parts.console.quotas.of_jobs)
    return await describe_job(await parts.store.reads.job(job_id), person, parts)


@router.post(
    "/api/streams/{stream_id}/force-full",
    status_code=202,
    summary="Re-read a stream from the beginning",
)
async def force_full(
    stream_id: Id, request: Request, person: Operator, parts: PartsOf
) -> ForcedShape:
    """Starts a new generation of the stream in a job of its own; if the pipeline dedupes, records
    that are already known create no new items. Refused while another job reads the stream, unless
    the pipeline plans its jobs: then it starts after that job."""
    stream, job = await stream_with_job(stream_id, person, parts)
    pipeline = parts.new_jobs.pipeline(job.pipeline)
    control = parts.control(person.name)
    wanted = JobRequest(
        pipeline,
        take_over=person.is_admin,
        by_admin=person.is_admin,
        quota=parts.console.quotas.of_jobs,
        ip=ip_of(request),
        key=request_key(request),
    )
    job_ids = await control.force_full(wanted, job, stream.source)
    if not job_ids:
        return ForcedShape(job=None, follows_job_id=job.id)
    new_job = await parts.store.reads.job(job_ids[-1])
    return ForcedShape(job=await describe_job(new_job, person, parts), follows_job_id=None)


async def stream_with_job(stream_id: int, person: Person, parts: Parts) -> tuple[StreamShape, Job]:
    """Returns a stream that the person may see, and the job that read it last."""
    job_id = await parts.console.streams.job_of(stream_id, person.scope)
    job = await parts.store.reads.job(job_id)
    streams = (await of_job(job, parts)).streams
    return next(stream for stream in streams if stream.id == stream_id), job


def _shape(row: dict[str, Any]) -> StreamShape:
    fields = {name: row[name] for name in StreamShape.model_fields}
    fields["cursor"] = None if row["cursor"] is None else orjson.loads(row["cursor"])
    fields["state"] = known(StreamState.FAILED, row["state"])
    return StreamShape(**fields)
