"""Ingests stored files in the background; one that was interrupted continues by itself."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from holdfast.console import Console
from holdfast.console.file_library import FileLibrary
from holdfast.engine.record.uploads import Upload, UploadParts
from holdfast.errors import InputError, NotAllowed, NotThere, UserError
from holdfast.model import Job
from holdfast.pipeline import Pipeline
from holdfast.tables.files import TableFile, open_table
from holdfast.tables.threads import INTAKES_AT_ONCE, take_in


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
        self._stopped = asyncio.Event()

    async def look(self) -> None:
        for job_id, pipeline in await self._store.reads.upload_jobs(list(self._parts.pipelines)):
            if job_id not in self._tasks and len(self._tasks) < INTAKES_AT_ONCE:
                task = asyncio.create_task(self._ingest(job_id, pipeline))
                self._tasks[job_id] = task
                task.add_done_callback(partial(self._ended, job_id))

    async def stop(self) -> None:
        """Uploads under way end with their page; the next process continues from there."""
        self._stopped.set()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def _ended(self, job_id: int, done: asyncio.Task[None]) -> None:
        del self._tasks[job_id]
        error = None if done.cancelled() else done.exception()
        if error is not None:
            self._parts.log.error("intake.failed", job_id=job_id, exc_info=error)

    async def _ingest(self, job_id: int, pipeline: str) -> None:
        parts, store = self._parts, self._store
        name = parts.new_name()
        # Registered as a worker, so that its lease is free at once when this process is gone.
        await store.workers.add_worker(name, socket.gethostname(), os.getpid(), [])
        try:
            job = await store.reads.job(job_id)
            try:
                await self._require_in_place(job)
                file = await take_in(self._open, job.reference, job.options)
            except (InputError, NotAllowed, NotThere) as error:
                await self._fail(job_id, name, error)
                return
            with file:
                upload = Upload(
                    parts.uploads, name, job_id, parts.pipelines[pipeline], file, self._stopped
                )
                await upload.take_in()
        finally:
            await store.leases.return_leases(name)
            await store.workers.stop_worker(name)

    async def _require_in_place(self, job: Job) -> None:
        if job.file_id is not None:
            file = await self._parts.console.files.file(job.file_id)
            await self._parts.library.require_in_place(file)

    def _open(self, reference: str | None, options: Mapping[str, Any]) -> TableFile:
        table = options.get("_table") or {}
        return open_table(Path(reference or ""), {**table, **self._parts.library.limits.table})

    async def _fail(self, job_id: int, name: str, error: UserError) -> None:
        """A stored file that can no longer be opened fails its job with the reason."""
        seconds = self._parts.uploads.walk.limits.lease_seconds
        stream = await self._store.ingest.lease_stream(job_id, name, seconds)
        if stream is not None:
            message = f"{error.message} {error.hint or ''}".strip()
            await self._store.ingest.fail_stream(stream, message)
            await self._store.outcomes.complete(job_id)
