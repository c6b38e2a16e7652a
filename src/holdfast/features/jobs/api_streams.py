"""Streams: how far each source has been read, and what stopped it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import Field

from holdfast.features.accounts.person import Person
from holdfast.features.jobs.scoped_job import ScopedJob
from holdfast.features.jobs.shapes import describe_job
from holdfast.features.jobs.stream_shapes import (
    StreamDetail,
    StreamList,
    stream_detail,
    stream_orders,
    streams_of_job,
    streams_page,
)
from holdfast.model import StreamState
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


class ForcedShape(Shape):
    job: JobShape | None
    follows_job_id: int | None = Field(
        description="If it has not started: the job after which it starts."
    )


@router.get("/api/streams", summary="List the streams")
async def index(
    person: Someone,
    parts: PartsOf,
    state: StreamState | None = None,
    pipeline: Annotated[str, Query(max_length=200)] = "",
    page_size: Annotated[int, Query(alias="pageSize", ge=1, le=200)] = 100,
    after: str | None = None,
) -> StreamList:
    return await streams_page(person, parts, page_size, after, state, pipeline)


@router.get("/api/streams/{stream_id}", summary="Show a stream with its latest slices")
async def show(stream_id: Id, person: Someone, parts: PartsOf) -> StreamDetail:
    return await stream_detail(stream_id, person, parts)


@router.get("/api/jobs/{jobId}/streams", summary="List a job's streams")
async def of_job(job: ScopedJob, parts: PartsOf) -> StreamList:
    return StreamList(streams=await streams_of_job(job, parts), next=None)


@router.post("/api/streams/{stream_id}/retry", summary="Resume a stream that stopped")
async def retry(stream_id: Id, person: Operator, parts: PartsOf) -> JobShape:
    """Its job continues from the stream's cursor, after a failure or at a cap."""
    job_id = await stream_orders(person, parts).resume(stream_id)
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
    orders = stream_orders(person, parts)
    job_id, started = await orders.force_full(stream_id, ip_of(request), request_key(request))
    if not started:
        return ForcedShape(job=None, follows_job_id=job_id)
    new_job = await parts.store.reads.job(job_id)
    return ForcedShape(job=await describe_job(new_job, person, parts), follows_job_id=None)
