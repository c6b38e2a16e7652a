"""Takes stored files in, in the background: whatever was begun and not ended goes on by itself."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from holdfast.api.dependencies import Parts
from holdfast.api.files import require_in_place, table_limits
from holdfast.engine.fair_places import TRIES, FairPlaces
from holdfast.engine.record.uploads import Upload
from holdfast.errors import DatabaseGone, InputError, NotAllowed, NotThere
from holdfast.model import Job
from holdfast.tables.files import TableFile, open_table
from holdfast.tables.threads import INTAKES_AT_ONCE, take_in

_REASON_CHARACTERS = 500


class Intake:
    """Looks for jobs over stored files that nobody takes in, and does so, some at a time."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._stops: dict[int, asyncio.Event] = {}
        self._places = FairPlaces(INTAKES_AT_ONCE)

    async def look(self) -> None:
        found = await self._parts.store.reads.upload_jobs(list(self._parts.pipelines))
        pipelines = {job_id: pipeline for job_id, pipeline, _ in found}
        waiting = [(job_id, owner) for job_id, _, owner in found]
        now = self._parts.clock.monotonic()
        for job_id in self._places.choose(waiting, now):
            self._stops[job_id] = asyncio.Event()
            task = asyncio.create_task(self._take_in(job_id, pipelines[job_id]))
            self._tasks[job_id] = task
            task.add_done_callback(partial(self._ended, job_id))
        yielding = self._places.to_yield(waiting, now)
        if yielding is not None:
            self._stops[yielding].set()

    async def stop(self) -> None:
        """What runs ends with its page; the next process goes on from there."""
        for stop in self._stops.values():
            stop.set()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def _ended(self, job_id: int, done: asyncio.Task[None]) -> None:
        del self._tasks[job_id], self._stops[job_id]
        error = None if done.cancelled() else done.exception()
        self._places.end(job_id, self._parts.clock.monotonic(), failed=error is not None)
        if error is not None:
            self._parts.log.error("intake.failed", job_id=job_id, exc_info=error)

    async def _take_in(self, job_id: int, pipeline: str) -> None:
        parts = self._parts
        name = parts.new_name()
        # Known as a worker, so that its lease is free at once when this process is gone.
        await parts.store.workers.add_worker(name, socket.gethostname(), os.getpid(), [])
        try:
            job = await parts.store.reads.job(job_id)
            try:
                await self._check_place(job)
                file = await take_in(self._open, job.reference, job.options)
                with file:
                    stop = self._stops[job_id]
                    recipe = parts.pipelines[pipeline]
                    await Upload(parts.uploads, name, job_id, recipe, file, stop).take_in()
            except (InputError, NotAllowed, NotThere) as error:
                await self._give_up(job_id, name, f"{error.message} {error.hint or ''}".strip())
            except DatabaseGone:
                raise
            except Exception as error:
                if self._places.failures(job_id) + 1 < TRIES:
                    raise
                reason = f"the file cannot be taken in: {type(error).__name__}: {error}"
                await self._give_up(job_id, name, reason[:_REASON_CHARACTERS])
                parts.log.error("intake.failed", job_id=job_id, exc_info=error)
        finally:
            await parts.store.leases.return_leases(name)
            await parts.store.workers.stop_worker(name)

    async def _check_place(self, job: Job) -> None:
        if job.file_id is not None:
            await require_in_place(await self._parts.console.files.file(job.file_id), self._parts)

    def _open(self, reference: str | None, options: Mapping[str, Any]) -> TableFile:
        table = options.get("_table") or {}
        return open_table(Path(reference or ""), {**table, **table_limits(self._parts)})

    async def _give_up(self, job_id: int, name: str, reason: str) -> None:
        """A stored file that cannot be opened any more fails its job, and says why."""
        store = self._parts.store
        seconds = self._parts.uploads.walk.limits.lease_seconds
        stream = await store.ingest.lease_stream(job_id, name, seconds)
        if stream is not None:
            await store.ingest.fail_stream(stream, reason)
            await store.outcomes.complete(job_id)
