"""Reads streams and their history for people, the engine and extensions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from holdfast.errors import NotThere
from holdfast.kernel.database.database import Database
from holdfast.kernel.database.driver import Row
from holdfast.kernel.database.rows import LAST_ID, fields_of, known
from holdfast.model import JobState, StreamState


class StreamView(NamedTuple):
    """A stream as its job sees it."""

    id: int
    source: str
    mode: str
    state: str
    generation: int
    cursor: str | None
    pages_count: int
    records_count: int
    items_count: int
    max_items: int | None
    expected_count: int | None
    failures: int
    error: str | None
    waiting_for: str | None  # why it is not read before `available_at`, if not for an error
    available_at: datetime | None
    worker: str | None
    updated_at: datetime | None
    due: bool
    leased: bool
    actual_count: int | None  # how many records are stored, if the pipeline counted them at the end
    verified_at: datetime | None


class StreamRow(NamedTuple):
    """A stream with its progress and the job that reads it, or read it last."""

    id: int
    source: str
    mode: str
    state: StreamState
    generation: int
    job_id: int
    job_state: JobState
    pages_count: int
    records_count: int
    expected_count: int | None
    actual_count: int | None
    full_completed_at: datetime | None
    verified_at: datetime | None
    force_full: bool
    rerun_requested: bool
    error: str | None
    cursor: str | None
    updated_at: datetime | None
    owner_id: str


class SliceRow(NamedTuple):
    """One turn of a worker on a stream."""

    id: int
    generation: int
    job_id: int
    worker: str
    started_at: datetime
    ended_at: datetime | None
    pages_count: int | None
    ended: str | None
    error: str | None


class StreamReads:
    """Reads streams. A scope is an owner's name; None means all owners."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of_job(self, job_id: int) -> list[StreamView]:
        rows = await self._database.fetch("streams_of_job", {"job_id": job_id})
        return [_view(row) for row in rows]

    async def page(
        self,
        scope: str | None,
        limit: int,
        before: int | None = None,
        state: str = "",
        pipeline: str = "",
    ) -> list[dict[str, Any]]:
        """Lists streams, the newest first."""
        params = {
            "scope": scope or "",
            "limit": limit,
            "before": before or LAST_ID,
            "state": state,
            "pipeline": pipeline,
        }
        rows = await self._database.fetch("streams_page", params)
        return [fields_of(row) | _view(row)._asdict() for row in rows]

    async def job_of(self, stream_id: int, scope: str | None) -> int:
        """Returns the job that reads the stream."""
        params = {"id": stream_id, "scope": scope or ""}
        rows = await self._database.fetch("stream_job", params)
        if not rows:
            raise NotThere(f"there is no stream {stream_id}", "GET /api/streams lists yours.")
        return int(rows[0]["job_id"])

    async def of_pipeline(
        self,
        pipeline: str,
        after: int = 0,
        limit: int = 100,
        *,
        owner: str | None = None,
        mode: str | None = None,
        source_ending: str = "",
        job_state: str | None = None,
    ) -> list[StreamRow]:
        """Lists a pipeline's streams in order of id, each with the job that reads it, or read it
        last."""
        params = {
            "pipeline": pipeline,
            "after": after,
            "limit": limit,
            "owner": owner,
            "mode": mode,
            "pattern": "%" + re.sub(r"([\\%_])", r"\\\1", source_ending),
            "job_state": job_state,
        }
        return [_stream(row) for row in await self._database.fetch("streams_of_pipeline", params)]

    async def of_sources(self, pipeline: str, sources: Sequence[str]) -> list[StreamRow]:
        params = {"pipeline": pipeline, "sources": list(sources)}
        return [_stream(row) for row in await self._database.fetch("streams_of_sources", params)]

    async def slices(self, stream_id: int, limit: int = 50) -> list[SliceRow]:
        """Lists the stream's slices, the latest first."""
        params = {"stream_id": stream_id, "limit": limit}
        rows = await self._database.fetch("slices_of_stream", params)
        return [SliceRow(**fields_of(row)) for row in rows]


def _view(row: Row) -> StreamView:
    fields = fields_of(row)
    flags = {name: bool(fields[name]) for name in ("due", "leased")}
    return StreamView(**{name: fields[name] for name in StreamView._fields} | flags)


def _stream(row: Row) -> StreamRow:
    fields = fields_of(row)
    return StreamRow(
        **fields
        | {
            "state": known(StreamState.FAILED, fields["state"]),
            "job_state": known(JobState.FAILED, fields["job_state"]),
            "force_full": bool(fields["force_full"]),
            "rerun_requested": bool(fields["rerun_requested"]),
        }
    )
