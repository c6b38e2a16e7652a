"""Takes a file's rows in: leases its job's stream, walks it, goes on after what came between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from holdfast.clock import Clock
from holdfast.engine.pace.controllers import IngestBounds, IngestPace
from holdfast.engine.record.discover import DiscoverLimits, Walk, WalkEnd, uploaded_pages
from holdfast.errors import DatabaseGone
from holdfast.model import JobState, StreamState
from holdfast.observe.metrics import Metrics
from holdfast.pipeline import Pipeline
from holdfast.store import Store, StreamLease
from holdfast.tables.files import TableFile

_AGAIN_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class UploadParts:
    """What every upload of one process shares."""

    store: Store
    limits: DiscoverLimits
    bounds: IngestBounds
    clock: Clock
    metrics: Metrics
    log: Any


class Upload:
    """One file of one job, under a worker's name of its own. `failed` says why its rows cannot be
    read further."""

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
        self._store = parts.store
        self._worker = worker
        self._job_id = job_id
        self._pipeline = pipeline
        self._file = file
        self._stopped = stopped
        self.failed: str | None = None
        self.rows = 0

    async def take_in(self) -> None:
        """Until all rows are in, the job wants no more, or it is stopped."""
        while not self._stopped.is_set():
            try:
                # A lease whose commit was not answered is ours without our knowing its token.
                await self._store.leases.return_leases(self._worker)
                seconds = self._parts.limits.lease_seconds
                stream = await self._store.ingest.lease_stream(self._job_id, self._worker, seconds)
                if stream is not None:
                    await self._walk(stream)
                if self.failed is not None or not await self._more():
                    return
            except DatabaseGone as error:
                self._parts.log.warning("database.gone", error=str(error))
            # Another process takes the same rows in, or something is not to be had for now.
            await self._pause()

    async def _walk(self, stream: StreamLease) -> None:
        pace = IngestPace(self._parts.bounds)
        held_back = asyncio.Event()
        watching = asyncio.create_task(self._watch_controls(held_back))
        walk = Walk(
            self._store,
            stream,
            self._pipeline,
            self._worker,
            self._parts.limits,
            pace,
            self._parts.clock,
            self._parts.metrics,
            self._parts.log,
            self._keep_on(held_back),
        )
        try:
            end = await walk.run(uploaded_pages(self._file, self._pipeline, stream, pace))
        finally:
            watching.cancel()
        self.rows = stream.items_count
        await self._store.outcomes.complete(stream.job_id)
        if end is WalkEnd.FAILED:
            streams = await self._store.reads.streams(stream.job_id)
            self.failed = streams[0].error or "the input could not be read"

    def _keep_on(self, held_back: asyncio.Event) -> Callable[[], bool]:
        return lambda: not self._stopped.is_set() and not held_back.is_set()

    async def _watch_controls(self, held_back: asyncio.Event) -> None:
        """A pause or a kill switch stops the taking in too; it goes on when that is lifted."""
        while not held_back.is_set():
            await self._pause()
            with suppress(DatabaseGone):
                controls = await self._store.reads.job_controls([self._job_id])
                state, switch = controls.get(self._job_id, (JobState.CANCELLED, None))
                if state is not JobState.RUNNING or switch:
                    held_back.set()

    async def _more(self) -> bool:
        job = await self._store.reads.job(self._job_id)
        if job.state is not JobState.RUNNING:
            return False
        streams = await self._store.reads.streams(self._job_id)
        return any(stream.state == StreamState.RUNNING for stream in streams)

    async def _pause(self) -> None:
        # Not wait_for, which may swallow a cancellation that comes with the event.
        with suppress(TimeoutError):
            async with asyncio.timeout(_AGAIN_SECONDS):
                await self._stopped.wait()
