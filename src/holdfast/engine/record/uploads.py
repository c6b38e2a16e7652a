"""Uploads: the rows of a file become items, through the same walk as every other source."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

import orjson

from holdfast.columns import BAD_ROW, mapped_row
from holdfast.engine.pace.controllers import IngestBounds, IngestPace
from holdfast.engine.patience import patiently
from holdfast.engine.record.discover import (
    LeasedStream,
    WalkEnd,
    WalkParts,
    WalkTime,
    walk_stream,
)
from holdfast.engine.record.pages import Yielded
from holdfast.errors import DatabaseGone, TwinColumns
from holdfast.model import JobState, StreamState
from holdfast.pipeline import Pipeline
from holdfast.store import IngestPage, NewItem, StreamLease
from holdfast.store.enqueue import content_hash
from holdfast.store.storable import storable_key
from holdfast.tables.files import TableFile
from holdfast.tables.threads import take_in

_AGAIN_SECONDS = 0.5
_HEARTBEAT_SECONDS = 2.0
_PAGE_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class UploadParts:
    """What all uploads of one process share."""

    walk: WalkParts
    bounds: IngestBounds


class Upload:
    """One file of one job, ingested under its own worker name. `failed` says why its rows cannot
    be read further."""

    def __init__(
        self,
        parts: UploadParts,
        worker: str,
        job_id: int,
        pipeline: Pipeline,
        file: TableFile,
        stopped: asyncio.Event,
    ) -> None:
        self._parts = parts
        self._store = parts.walk.store
        self._worker = worker
        self._job_id = job_id
        self._pipeline = pipeline
        self._file = file
        self._stopped = stopped
        self.failed: str | None = None
        self.rows = 0
        self._seen_at = -_HEARTBEAT_SECONDS
        self._token: str | None = None
        self._strays: set[str] = set()

    async def take_in(self) -> None:
        """Until all rows are in, the job accepts no more, or it is stopped."""
        with suppress(DatabaseGone):  # only once it is stopped
            while not self._stopped.is_set():
                walk = self._parts.walk
                is_over = await patiently(
                    self._walk_once,
                    walk.log,
                    walk.rng,
                    give_up=self._stopped.is_set,
                    pause=self._pause,
                )
                if is_over:
                    return
                # Another process ingests the same rows, or something is not available yet.
                await self._pause(_AGAIN_SECONDS)

    async def _walk_once(self) -> bool:
        """Walks the stream if it is free; True when there is nothing left to do."""
        await self._give_sign_of_life()
        lease = await self._store.ingest.lease_stream(self._job_id, self._worker)
        if lease is not None:
            self._token = lease.token
            await self._walk(lease)
        return self.failed is not None or not await self._has_more()

    async def _walk(self, lease: StreamLease) -> None:
        pace = IngestPace(self._parts.bounds)
        job = await self._store.reads.job(self._job_id)
        stream = LeasedStream(lease, self._pipeline, job, self._worker, pace)
        held_back = asyncio.Event()
        watching = asyncio.create_task(self._watch_controls(held_back))
        try:
            end = await walk_stream(
                self._parts.walk,
                stream,
                uploaded_pages(self._file, self._pipeline, lease, pace, job.column_names),
                WalkTime(lambda: not self._stopped.is_set() and not held_back.is_set()),
            )
        finally:
            watching.cancel()
            self.rows = lease.items_count
        if end is WalkEnd.FAILED:
            streams = await self._store.streams.of_job(self._job_id)
            self.failed = streams[0].error or "the input could not be read"

    async def _watch_controls(self, held_back: asyncio.Event) -> None:
        """A pause or a kill switch also stops ingestion; it continues when that is lifted."""
        while not held_back.is_set():
            await self._pause(_AGAIN_SECONDS)
            with suppress(DatabaseGone):
                await self._give_sign_of_life()
                controls = await self._store.reads.job_controls([self._job_id])
                state, switch = controls.get(self._job_id, (JobState.CANCELLED, None))
                if state is not JobState.RUNNING or switch:
                    held_back.set()

    async def _give_sign_of_life(self) -> None:
        """Others would free the lease of a worker that seems lost."""
        now = self._parts.walk.clock.monotonic()
        if now >= self._seen_at + _HEARTBEAT_SECONDS:
            await self._beat()
            self._seen_at = now

    async def _beat(self) -> None:
        """A lease whose answer was lost is in our name, but nobody walks: it is free."""
        tokens = await self._store.workers.beat(self._worker, strays=self._strays)
        self._strays = (tokens or set()) - {self._token}

    async def _has_more(self) -> bool:
        job = await self._store.reads.job(self._job_id)
        if job.state is not JobState.RUNNING:
            return False
        streams = await self._store.streams.of_job(self._job_id)
        return any(stream.state == StreamState.RUNNING for stream in streams)

    async def _pause(self, seconds: float) -> None:
        # Not wait_for, which may swallow a cancellation that comes with the event.
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopped.wait()


async def uploaded_pages(
    file: TableFile,
    pipeline: Pipeline,
    lease: StreamLease,
    pace: IngestPace,
    column_names: Mapping[str, str],
) -> AsyncIterator[Yielded]:
    """The rows of an uploaded file, starting at the stream's cursor, read in a thread."""
    cursor = lease.cursor or {"page": None, "skip": 0}
    page = cursor["page"] or {"row": 0}
    row = page["row"] + cursor["skip"]
    batches = file.pages(row, lambda: pace.rows, _PAGE_BYTES, page.get("bad", 0))
    while True:
        batch = await take_in(next, batches)
        cursor = {"row": batch.next_row, "bad": batch.bad_rows}
        if pipeline.dedupe is None:
            yield IngestPage((), cursor, batch.end, inputs=batch.inputs)
        else:
            items = [_keyed(pipeline, text, column_names) for text in batch.inputs]
            yield IngestPage(items, cursor, batch.end)
        if batch.end:
            return


def _keyed(pipeline: Pipeline, text: str, column_names: Mapping[str, str]) -> NewItem:
    row = orjson.loads(text)
    if BAD_ROW in row:
        return NewItem(text)
    try:
        named = mapped_row(row, column_names)
    except TwinColumns:  # its item says so
        return NewItem(text)
    key = storable_key(pipeline.key(named))
    return NewItem(text, key, content_hash(text.encode()) if key else "")
