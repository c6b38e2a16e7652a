"""Streams: how far each source was walked, and what stopped it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Query, Request
from pydantic import Field

from holdfast.api.cursors import Cursors
from holdfast.api.dependencies import Parts
from holdfast.api.idempotency import AnsweredOnce, request_key
from holdfast.api.identity import Operator, PartsOf, Person, Someone, ip_of, parts_of
from holdfast.api.jobs import ScopedJob, tell
from holdfast.api.pipelines import pipeline_named
from holdfast.api.shapes import Id, JobShape, Shape
from holdfast.engine.control import Asked
from holdfast.errors import NotThere
from holdfast.model import Job, StreamState


class _ForcedOnce(AnsweredOnce):
    """Of these, only `force-full` makes something: a job."""

    async def retell(self, request: Request, person: Person, made: int) -> str:
        parts = parts_of(request)
        job = await tell(await parts.store.reads.job(made), person, parts, request)
        return ForcedShape(job=job, follows_job_id=None).model_dump_json(by_alias=True)


router = APIRouter(tags=["streams"], route_class=_ForcedOnce)


class StreamShape(Shape):
    id: int
    pipeline: str
    source: str
    mode: str
    job_id: int
    owner_id: str
    state: StreamState
    generation: int
    cursor: Any = Field(description="Where it stands, in the source's own words.")
    pages_count: int
    records_count: int = Field(description="Read from the source; where it overlaps, repeatedly.")
    items_count: int
    max_items: int | None
    expected_count: int | None = Field(description="How many the source says it has.")
    actual_count: int | None = Field(
        description="How many of them are kept, where the pipeline counts that at the end."
    )
    verified_at: datetime | None
    failures: int
    error: str | None
    available_at: datetime | None
    worker: str | None
    updated_at: datetime | None
    full_completed_at: datetime | None


class ForcedShape(Shape):
    job: JobShape | None
    follows_job_id: int | None = Field(
        description="It begins when this job ends, where it has not begun."
    )


class SliceShape(Shape):
    id: int
    generation: int
    job_id: int
    worker: str
    started_at: datetime
    ended_at: datetime | None
    pages_count: int | None
    ended: str | None = Field(description="How it ended; empty while it runs.")
    error: str | None


class StreamDetail(Shape):
    stream: StreamShape
    slices: list[SliceShape] = Field(description="The latest turns of workers, newest first.")


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
    found = await parts.console.streams.page(
        person.scope, page_size + 1, cursors.read(after), state or "", pipeline
    )
    more = cursors.write(found[page_size - 1]["id"]) if len(found) > page_size else None
    return StreamList(streams=[_shape(each) for each in found[:page_size]], next=more)


@router.get("/api/streams/{stream_id}", summary="Show a stream with its latest slices")
async def show(stream_id: Id, person: Someone, parts: PartsOf) -> StreamDetail:
    streams = await parts.console.streams.page(person.scope, 1, stream_id + 1)
    if not streams or streams[0]["id"] != stream_id:
        raise NotThere(f"there is no stream {stream_id}", "GET /api/streams lists yours.")
    slices = await parts.store.streams.slices(stream_id)
    return StreamDetail(
        stream=_shape(streams[0]), slices=[SliceShape(**each._asdict()) for each in slices]
    )


@router.get("/api/jobs/{jobId}/streams", summary="List a job's streams")
async def of_job(job: ScopedJob, parts: PartsOf) -> StreamList:
    extra = {"pipeline": job.pipeline, "job_id": job.id, "owner_id": job.owner_id}
    found = await parts.store.reads.streams(job.id)
    shapes = [_shape({**each._asdict(), **extra, "full_completed_at": None}) for each in found]
    return StreamList(streams=shapes, next=None)


@router.post("/api/streams/{stream_id}/retry", summary="Go on with a stream that stopped")
async def retry(stream_id: Id, request: Request, person: Operator, parts: PartsOf) -> JobShape:
    """After a failure or at a cap: its job resumes from the stream's cursor."""
    job_id = await parts.console.streams.job_of(stream_id, person.scope)
    await parts.control(person.name).resume(job_id)
    return await tell(await parts.store.reads.job(job_id), person, parts, request)


@router.post(
    "/api/streams/{stream_id}/force-full",
    status_code=202,
    summary="Walk a stream anew, from its beginning",
)
async def force_full(
    stream_id: Id, request: Request, person: Operator, parts: PartsOf
) -> ForcedShape:
    """A new generation of the stream, in a job of its own; what is known already is not made
    anew where the pipeline dedupes. While another job walks the stream it is refused, unless the
    pipeline plans: then it follows that job."""
    stream, job = await stream_with_job(stream_id, person, parts)
    pipeline = pipeline_named(job.pipeline, parts)
    control = parts.control(person.name)
    asked = Asked(
        ip_of(request),
        request=request_key(request),
        by_admin=person.is_admin,
        take_over=person.is_admin,
    )
    job_ids = await control.force_full(pipeline, job, stream.source, asked)
    if not job_ids:
        return ForcedShape(job=None, follows_job_id=job.id)
    made = await parts.store.reads.job(job_ids[-1])
    return ForcedShape(job=await tell(made, person, parts, request), follows_job_id=None)


async def stream_with_job(stream_id: int, person: Person, parts: Parts) -> tuple[StreamShape, Job]:
    """A stream that the person may see, and the job that walked it last."""
    job_id = await parts.console.streams.job_of(stream_id, person.scope)
    job = await parts.store.reads.job(job_id)
    found = (await of_job(job, parts)).streams
    return next(each for each in found if each.id == stream_id), job


def _shape(told: dict[str, Any]) -> StreamShape:
    cursor = None if told["cursor"] is None else orjson.loads(told["cursor"])
    known = {name: told[name] for name in StreamShape.model_fields}
    return StreamShape(**{**known, "cursor": cursor})
