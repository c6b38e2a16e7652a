"""Writes exports in the background of the processes that serve the API."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.clock import Clock
from holdfast.errors import DatabaseGone, FilesGone, LeaseLost
from holdfast.features.exports.exports import Export, Written
from holdfast.features.items.grid import Chosen, write_export
from holdfast.features.items.value_search import filter_of, sifted_by, values_in
from holdfast.files import FileAccess
from holdfast.files.contract import new_key
from holdfast.kernel.worker.presence import present
from holdfast.model import Job, JobState, is_idle
from holdfast.stored_files import EXPORTS

if TYPE_CHECKING:
    from holdfast.features.console import Console

_TELL_SECONDS = 2.0
_MOST_BYTES = 2**62
_Tell = Callable[[int], Awaitable[None]]
_RUNNING = (JobState.QUEUED, JobState.RUNNING, JobState.PAUSED)


class ExportWriter:
    def __init__(
        self,
        console: Console,
        access: FileAccess,
        new_name: Callable[[], str],
        clock: Clock,
        log: Any,
    ) -> None:
        self._console = console
        self._access = access
        self._new_name = new_name
        self._clock = clock
        self._log = log
        self._told_at = 0.0

    async def look(self) -> None:
        exports = self._console.exports
        for export_id in await exports.to_do():
            name = self._new_name()
            async with present(self._console.store, name):
                export = await exports.lease_export(export_id, name)
                if export is not None:
                    await self._write(export, name)

    async def _write(self, export: Export, name: str) -> None:
        try:
            written = await self._written(export, name)
        except (DatabaseGone, FilesGone, asyncio.CancelledError):
            raise  # it is tried again
        except LeaseLost:
            return
        except Exception as error:
            self._log.error("export.failed", export=export.id, exc_info=error)
            written = Written("FAILED", 0, error=f"{type(error).__name__}: {error}")
        finished = await self._console.exports.finish_export(export.id, name, written)
        if not finished and written.key is not None:  # another writer has taken it over
            await self._access.store.delete(written.key)
        self._log.info("export.written", export=export.id, rows=written.rows)

    async def _written(self, export: Export, name: str) -> Written:
        job = await self._console.store.reads.job(export.job_id)
        async with self._access.local.passing() as folder:
            path = folder / f"{export.id}.{export.format}"
            tell = partial(self._tell, export, name)
            written = await self._write_rows(export, job, path, tell)
            return await self._stored(path, written, tell)

    async def _write_rows(self, export: Export, job: Job, path: Path, say: _Tell) -> Written:
        rows = 0

        async def tell(written: int) -> None:
            nonlocal rows
            rows = written
            await say(written)

        chosen = self._chosen(export, job)
        counters = await self._console.store.reads.counters(job.id)
        notes = await write_export(
            self._console, job, path, export.format, chosen, export.with_input, tell
        )
        partial = job.state in _RUNNING and not is_idle(job, counters)
        if partial:
            notes = [f"Partial: job {job.id} was {job.state} when this was written.", *notes]
        return Written("DONE", rows, partial, notes=notes)

    async def _stored(self, path: Path, written: Written, tell: _Tell) -> Written:
        """Stores the file under its own key: if another writer has taken the export over, each has
        its file and the row decides. The size is not limited here, because quotas are checked
        before."""
        store = self._access.store
        putting = asyncio.create_task(store.put(new_key(EXPORTS), path, max_bytes=_MOST_BYTES))
        try:
            while not putting.done():
                await asyncio.wait([putting], timeout=_TELL_SECONDS)
                await tell(written.rows)
        except BaseException:
            putting.cancel()
            raise
        file = putting.result()
        assert file is not None
        return replace(written, size=file.size, key=file.key, sha256=file.sha256)

    def _chosen(self, export: Export, job: Job) -> Chosen:
        filter = filter_of({**export.narrowed, "statuses": export.statuses})
        values = values_in(export.narrowed)
        return Chosen(filter, sifted_by(self._console, job, values) if values else None)

    async def _tell(self, export: Export, name: str, rows: int) -> None:
        now = self._clock.monotonic()
        if now < self._told_at + _TELL_SECONDS:
            return
        self._told_at = now
        held = await self._console.exports.note_rows(export.id, name, rows)
        if not held:
            raise LeaseLost(f"export {export.id} is another's")
