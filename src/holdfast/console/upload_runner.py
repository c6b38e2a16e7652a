"""Ingests stored files in the background; one that was interrupted continues by itself."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from holdfast.console import Console
from holdfast.console.file_library import FileLibrary
from holdfast.engine.fair_places import TRIES, FairPlaces
from holdfast.engine.lost_workers import this_machine
from holdfast.engine.record.uploads import Upload, UploadParts
from holdfast.errors import DatabaseGone, FilesGone, InputError, NotThere, TooLarge
from holdfast.model import Job
from holdfast.pipeline import Pipeline
from holdfast.store.admission import require_table
from holdfast.tables.files import TableFile, open_table
from holdfast.tables.threads import INTAKES_AT_ONCE, take_in

_MESSAGE_CHARACTERS = 500


@dataclass(frozen=True, slots=True)
class UploadRunnerParts:
    console: Console
    pipelines: Mapping[str, Pipeline]
    library: FileLibrary
    uploads: UploadParts
    new_name: Callable[[], str]
    log: Any


class UploadRunner:
    """Looks for jobs over stored files that no process is ingesting, and ingests a few at once."""

    def __init__(self, parts: UploadRunnerParts) -> None:
        self._parts = parts
        self._store = parts.console.store
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._stops: dict[int, asyncio.Event] = {}
        self._places = FairPlaces(INTAKES_AT_ONCE)

    async def look(self) -> None:
        found = await self._store.reads.upload_jobs(list(self._parts.pipelines))
        pipelines = {job_id: pipeline for job_id, pipeline, _ in found}
        waiting = [(job_id, owner) for job_id, _, owner in found]
        now = self._monotonic()
        for job_id in self._places.choose(waiting, now):
            self._stops[job_id] = asyncio.Event()
            task = asyncio.create_task(self._ingest(job_id, pipelines[job_id]))
            self._tasks[job_id] = task
            task.add_done_callback(partial(self._ended, job_id))
        yielding = self._places.to_yield(waiting, now)
        if yielding is not None:
            self._stops[yielding].set()

    def _monotonic(self) -> float:
        return self._parts.uploads.walk.clock.monotonic()

    async def stop(self) -> None:
        """Uploads under way end with their page; the next process continues from there."""
        for stop in self._stops.values():
            stop.set()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def _ended(self, job_id: int, done: asyncio.Task[None]) -> None:
        del self._tasks[job_id], self._stops[job_id]
        error = None if done.cancelled() else done.exception()
        self._places.end(job_id, self._monotonic(), failed=error is not None)
        if isinstance(error, FilesGone):
            self._parts.log.warning("files.gone", error=str(error))
        elif error is not None:
            self._parts.log.error("intake.failed", job_id=job_id, exc_info=error)

    async def _ingest(self, job_id: int, pipeline: str) -> None:
        parts, store = self._parts, self._store
        name = parts.new_name()
        # Registered as a worker, so that its lease is free at once when this process is gone.
        await store.workers.add_worker(
            name, socket.gethostname(), os.getpid(), [], machine=this_machine()
        )
        try:
            job = await store.reads.job(job_id)
            try:
                async with self._opened(job) as path:
                    with await take_in(self._open, path, job.options) as file:
                        stop, recipe = self._stops[job_id], parts.pipelines[pipeline]
                        await Upload(parts.uploads, name, job_id, recipe, file, stop).take_in()
            except (InputError, NotThere, TooLarge) as error:
                await self._fail(job_id, name, f"{error.message} {error.hint or ''}".strip())
            except (DatabaseGone, FilesGone):
                raise
            except Exception as error:
                if self._places.failures(job_id) + 1 < TRIES:
                    raise
                message = f"the file cannot be ingested: {type(error).__name__}: {error}"
                await self._fail(job_id, name, message[:_MESSAGE_CHARACTERS])
                parts.log.error("intake.failed", job_id=job_id, exc_info=error)
        finally:
            await store.workers.stop_worker(name)

    @asynccontextmanager
    async def _opened(self, job: Job) -> AsyncIterator[Path]:
        """A local copy of the job's file."""
        file = await self._parts.console.files.file(job.file_id or 0)
        async with AsyncExitStack() as stack:
            try:
                path = await stack.enter_async_context(self._parts.library.opened(file))
            except NotThere as gone:
                raise NotThere(f"{file.name} is no longer in the file store") from gone
            yield path

    def _open(self, path: Path, options: Mapping[str, Any]) -> TableFile:
        require_table(options)
        table = {**options.get("_table", {}), **self._parts.library.table_limits}
        return open_table(path, table | {"marks_bad_rows": bool(options.get("_images"))})

    async def _fail(self, job_id: int, name: str, message: str) -> None:
        """A stored file that can no longer be opened fails its job with the reason."""
        stream = await self._store.ingest.lease_stream(job_id, name)
        if stream is not None:
            await self._store.ingest.fail_stream(stream, message)
            await self._store.outcomes.complete(job_id)
