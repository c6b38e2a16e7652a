"""Writes exports in the background of the processes that serve the API."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from holdfast.clock import Clock
from holdfast.console import Console
from holdfast.console.exports import Export, Written
from holdfast.console.grid import Chosen, write_export
from holdfast.console.operation_runner import filter_of, values_in
from holdfast.console.value_search import sifted_by
from holdfast.errors import DatabaseGone, LeaseLost
from holdfast.model import Job, JobState

_LEASE_SECONDS = 60.0
_TELL_SECONDS = 2.0
_RUNNING = (JobState.QUEUED, JobState.RUNNING, JobState.PAUSED)


class ExportWriter:
    def __init__(self, console: Console, folder: Path, name: str, clock: Clock, log: Any) -> None:
        self._console = console
        self._folder = folder
        self._name = name
        self._clock = clock
        self._log = log
        self._told_at = 0.0

    def path(self, export: Export) -> Path:
        return self._folder / f"{export.id}.{export.format}"

    async def look(self) -> None:
        for export_id in await self._console.exports.to_do():
            export = await self._console.exports.lease_export(export_id, self._name, _LEASE_SECONDS)
            if export is not None:
                await self._write(export)

    async def _write(self, export: Export) -> None:
        try:
            written = await self._written(export)
        except (DatabaseGone, asyncio.CancelledError):
            raise
        except LeaseLost:
            return
        except Exception as error:
            self._log.error("export.failed", export=export.id, exc_info=error)
            written = Written("FAILED", 0, error=f"{type(error).__name__}: {error}")
        await self._console.exports.finish_export(export.id, self._name, written)
        self._log.info("export.written", export=export.id, rows=written.rows)

    async def _written(self, export: Export) -> Written:
        job = await self._console.store.reads.job(export.job_id)
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self.path(export)
        rows = 0

        async def tell(written: int) -> None:
            nonlocal rows
            rows = written
            await self._tell(export, written)

        chosen = self._chosen(export, job)
        notes = await write_export(
            self._console, job, path, export.format, chosen, export.with_input, tell
        )
        if job.state in _RUNNING:
            notes = [f"Partial: job {job.id} was {job.state} when this was written.", *notes]
        size = path.stat().st_size
        return Written("DONE", rows, job.state in _RUNNING, size, notes)

    def _chosen(self, export: Export, job: Job) -> Chosen:
        filter = filter_of({**export.narrowed, "statuses": export.statuses})
        values = values_in(export.narrowed)
        return Chosen(filter, sifted_by(self._console, job, values) if values else None)

    async def _tell(self, export: Export, rows: int) -> None:
        now = self._clock.monotonic()
        if now < self._told_at + _TELL_SECONDS:
            return
        self._told_at = now
        held = await self._console.exports.renew_export(export.id, self._name, rows, _LEASE_SECONDS)
        if not held:
            raise LeaseLost(f"export {export.id} is another's")
