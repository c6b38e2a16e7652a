"""Reads of streams that pages and extensions share: a pipeline's streams, a stream's history."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from holdfast.model import JobState, StreamState
from holdfast.store.database import Database
from holdfast.store.driver import Row
from holdfast.store.instants import parse_instant


class StreamRow(NamedTuple):
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
    def __init__(self, database: Database) -> None:
        self._database = database

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
        """In order of id, from one on; the job is the one that walks the stream or did last."""
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
        """The latest first."""
        params = {"stream_id": stream_id, "limit": limit}
        return [_slice(row) for row in await self._database.fetch("slices_of_stream", params)]


def _stream(row: Row) -> StreamRow:
    stream = StreamRow(*row)
    return stream._replace(
        state=StreamState(stream.state),
        job_state=JobState(stream.job_state),
        full_completed_at=parse_instant(stream.full_completed_at),
        verified_at=parse_instant(stream.verified_at),
        force_full=bool(stream.force_full),
        rerun_requested=bool(stream.rerun_requested),
        updated_at=parse_instant(stream.updated_at),
    )


def _slice(row: Row) -> SliceRow:
    history = SliceRow(*row)
    started_at = parse_instant(history.started_at)
    assert started_at is not None
    return history._replace(started_at=started_at, ended_at=parse_instant(history.ended_at))
