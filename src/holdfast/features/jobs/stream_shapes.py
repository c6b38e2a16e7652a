"""Streams as programs and people see them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import orjson
from pydantic import Field

from holdfast.errors import NotThere
from holdfast.features.accounts.person import Person
from holdfast.features.jobs.stream_orders import StreamOrders
from holdfast.kernel.database.rows import known
from holdfast.model import Job, StreamState
from holdfast.server.cursors import Cursors
from holdfast.server.dependencies import Parts
from holdfast.server.shapes import Shape


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


def stream_shape(row: dict[str, Any]) -> StreamShape:
    fields = {name: row[name] for name in StreamShape.model_fields}
    fields["cursor"] = None if row["cursor"] is None else orjson.loads(row["cursor"])
    fields["state"] = known(StreamState.FAILED, row["state"])
    return StreamShape(**fields)


async def streams_page(
    person: Person,
    parts: Parts,
    size: int,
    after: str | None,
    state: StreamState | None = None,
    pipeline: str = "",
) -> StreamList:
    async def read(before: int | None, limit: int) -> list[dict[str, Any]]:
        return await parts.console.streams.page(person.scope, limit, before, state or "", pipeline)

    cursors = Cursors(parts.secret, "streams", person.name, {"state": state, "of": pipeline})
    streams, more = await cursors.page(after, size, read, lambda stream: stream["id"])
    return StreamList(streams=[stream_shape(stream) for stream in streams], next=more)


async def stream_detail(stream_id: int, person: Person, parts: Parts) -> StreamDetail:
    """Returns a stream that the person may see, with its latest slices."""
    streams = await parts.console.streams.page(person.scope, 1, stream_id + 1)
    if not streams or streams[0]["id"] != stream_id:
        raise NotThere(f"there is no stream {stream_id}", "GET /api/streams lists yours.")
    slices = await parts.store.streams.slices(stream_id)
    return StreamDetail(
        stream=stream_shape(streams[0]), slices=[SliceShape(**slice._asdict()) for slice in slices]
    )


async def streams_of_job(job: Job, parts: Parts) -> list[StreamShape]:
    extra = {"pipeline": job.pipeline, "job_id": job.id, "owner_id": job.owner_id}
    streams = await parts.store.streams.of_job(job.id)
    return [stream_shape({**row._asdict(), **extra, "full_completed_at": None}) for row in streams]


def stream_orders(person: Person, parts: Parts) -> StreamOrders:
    return StreamOrders(parts.console, parts.new_jobs, parts.control(person.name), person)
