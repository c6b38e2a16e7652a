"""Scans places for files: each complete file becomes one job of the adapter's owner, once."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from holdfast.errors import (
    DatabaseGone,
    FilesGone,
    HoldfastError,
    InputError,
    NotThere,
    TooLarge,
    UserError,
)
from holdfast.features.ingestion.adapters import Adapter, FileState, KnownFile, NewAdapter
from holdfast.features.ingestion.places.contract import Arrived, FileTrouble, Place, PlaceTrouble
from holdfast.features.jobs.new_jobs import NewJobs, job_file
from holdfast.features.library.file_imports import Received
from holdfast.features.switches.flags import Flag
from holdfast.kernel.jobs.control import Control, JobRequest
from holdfast.kernel.worker.presence import present
from holdfast.options import checked_options

if TYPE_CHECKING:
    from holdfast.features.console import Console

_LONGEST_ERROR = 500
_LONGEST_FILE_SECONDS = 3600.0
_MOST_FAILURES_IN_A_ROW = 3
_IMPORT = "import"


@dataclass(slots=True)
class ScanReport:
    """The result of one scan of an adapter. `busy`: another process is scanning it now."""

    adapter: str
    taken: list[int] = field(default_factory=list)  # the jobs that were created
    waiting: int = 0
    duplicates: int = 0
    refused: int = 0
    busy: bool = False
    error: str | None = None


class ScannerReplaced(HoldfastError):
    """Raised if another process scans the adapter now: this one was away for too long."""


@dataclass(frozen=True, slots=True)
class AdapterScans:
    console: Console
    new_jobs: NewJobs
    open_place: Callable[[Adapter], Place]
    log: Any

    async def look(self) -> None:
        """Scans what is due: background work of every process that serves the API."""
        due = self.console.adapters.due(list(self.new_jobs.pipelines))
        for adapter in await due:
            await self.scan(adapter)

    async def scan(self, adapter: Adapter) -> ScanReport:
        """Scans the adapter; the scanner counts as alive while its process gives signs of life
        under the token."""
        token = f"scan {secrets.token_hex(8)}"
        async with present(self.console.store, token):
            return await self._scan(adapter, token)

    async def _scan(self, adapter: Adapter, token: str) -> ScanReport:
        report, adapters = ScanReport(adapter.name), self.console.adapters
        if not await adapters.lease_adapter(adapter, token):
            report.busy = True
            return report
        try:
            await _Scan(self, adapter, token, report).run()
        except (PlaceTrouble, UserError, FilesGone) as trouble:
            message = getattr(trouble, "message", None) or str(trouble)
            report.error = message[:_LONGEST_ERROR]
            self.log.warning("adapter.failed", adapter=adapter.name, error=report.error)
        except ScannerReplaced:
            report.busy = True
        except DatabaseGone:
            raise
        except Exception as failure:
            report.error = f"{type(failure).__name__}: {failure}"[:_LONGEST_ERROR]
            self.log.error("adapter.failed", adapter=adapter.name, exc_info=failure)
        await adapters.release_adapter(adapter, token, report.error)
        return report


async def watch(console: Console, new_jobs: NewJobs, new: NewAdapter, actor: str) -> None:
    """Sets an adapter, if this server has its pipeline and the pipeline takes its options."""
    pipeline = new_jobs.startable_pipeline(new.pipeline)
    options = checked_options(pipeline.name, pipeline.options, new.options)
    await console.adapters.set_adapter(replace(new, options=options), actor)


@dataclass(frozen=True, slots=True)
class _Scan:
    """One scan of one adapter, by the holder of its token."""

    scans: AdapterScans
    adapter: Adapter
    token: str
    report: ScanReport
    failures: list[str] = field(default_factory=list)  # consecutive files at which the place failed

    async def run(self) -> None:
        place = self.scans.open_place(self.adapter)
        files = await place.arrivals()
        marker = self.adapter.marker
        names = {file.name for file in files}
        for file in files:
            if marker and file.name.endswith(marker):
                continue
            await self._require_hold()
            is_marked = bool(marker) and f"{file.name}{marker}" in names
            await self._try(place, file, is_marked)

    async def _try(self, place: Place, file: Arrived, is_marked: bool) -> None:
        """Takes a file; a faulty file does not keep others waiting.

        A place that fails again and again is given up until the next scan."""
        try:
            async with asyncio.timeout(_LONGEST_FILE_SECONDS):
                await self._handle(place, file, is_marked)
            self.failures.clear()
        except (PlaceTrouble, TimeoutError) as trouble:
            self._said(str(trouble) or f"{file.shown} takes longer than an hour")
            if not isinstance(trouble, FileTrouble):
                self.failures.append(file.name)
            if len(self.failures) >= _MOST_FAILURES_IN_A_ROW:
                raise
        except HoldfastError:
            raise
        except Exception as failure:
            self._said(f"{file.shown}: {type(failure).__name__}: {failure}")
            self.scans.log.error("adapter.failed", adapter=self.adapter.name, exc_info=failure)

    def _said(self, trouble: str) -> None:
        """Reports a problem; only the first is shown."""
        self.report.error = self.report.error or trouble[:_LONGEST_ERROR]
        self.scans.log.warning("adapter.failed", adapter=self.adapter.name, error=trouble)

    async def _require_hold(self) -> None:
        if not await self.scans.console.adapters.is_scanner(self.adapter, self.token):
            raise ScannerReplaced

    async def _handle(self, place: Place, file: Arrived, is_marked: bool) -> None:
        adapters = self.scans.console.adapters
        known = await adapters.see_file(self.adapter, file.identity, file.shown, file.size)
        if known.state in (FileState.WAITING, FileState.STORED):
            if not self._is_whole(known, is_marked):
                self.report.waiting += 1
                return
            await self._take(place, file, known)
        # Also for a file whose scanner was killed before it moved the file. The marker goes first:
        # if it stayed, it would mark the next file of that name, complete or not.
        if is_marked:
            await place.clear(f"{file.name}{self.adapter.marker}")
        if known.state is FileState.REFUSED:
            await place.refuse(file, known.error or "")
        else:
            await place.accept(file)
        await adapters.forget_file(known, self.token)

    def _is_whole(self, known: KnownFile, is_marked: bool) -> bool:
        if self.adapter.marker:
            return is_marked
        return known.state is FileState.STORED or known.seconds >= self.adapter.settle_seconds

    async def _take(self, place: Place, file: Arrived, known: KnownFile) -> None:
        """Takes a file step by step, noting each before the next: the next scanner begins where
        this one ended."""
        try:
            if known.file_id is None:
                await self._store(place, file, known)
            earlier = await self.scans.console.adapters.with_content(self.adapter, known)
            if earlier is not None:
                known.state, known.job_id = FileState.DUPLICATE, earlier["job_id"]
                known.error = f"the same content as {earlier['name']}"
                self.report.duplicates += 1
                await self._note(known)
                return
            await self._start(known)
        except (InputError, TooLarge) as error:
            known.state = FileState.REFUSED
            known.error = _sentences(error)[:_LONGEST_ERROR]
            self.report.refused += 1
            await self._note(known)

    async def _store(self, place: Place, file: Arrived, known: KnownFile) -> None:
        library = self.scans.new_jobs.library
        await self.scans.new_jobs.flags.require(Flag.INGEST)
        async with library.access.local.passing() as folder:
            path = folder / "file"
            written = await place.fetch(file, path, library.access.max_bytes)
            known.sha256 = written.sha256
            received = Received(file.shown, path, written.size, written.sha256)
            stored, _ = await library.store(received, {}, self.adapter.owner, kind=_IMPORT)
        known.file_id, known.state = stored.id, FileState.STORED
        await self._note(known)

    async def _start(self, known: KnownFile) -> None:
        scans, adapter = self.scans, self.adapter
        new_jobs, library = scans.new_jobs, scans.new_jobs.library
        await new_jobs.require_capacity(None)
        pipeline = new_jobs.startable_pipeline(adapter.pipeline)
        try:
            file = await library.job_input([known.file_id or 0], {}, adapter.owner, None)
        except NotThere:
            known.file_id, known.state = None, FileState.WAITING
            await self._note(known)
            raise FileTrouble("a file that was taken is gone from the file store") from None
        if file.id != known.file_id:  # a list of images: stored once, however often it is refused
            known.file_id = file.id
            await self._note(known)
        request = JobRequest(
            pipeline,
            adapter.options,
            file=job_file(file, await library.plan(file, pipeline.inputs, {}, {})),
            quota=scans.console.quotas.of_jobs,
        )
        control = Control(scans.console.store, adapter.owner, scans.log)
        new = await control.new_job(request)
        job_id = await scans.console.adapters.start_job(known, new, self.token)
        if job_id is None:
            raise ScannerReplaced
        known.state, known.job_id = FileState.TAKEN, job_id
        self.report.taken.append(job_id)
        scans.log.info("adapter.took", adapter=adapter.name, name=file.name, job_id=job_id)

    async def _note(self, known: KnownFile) -> None:
        if not await self.scans.console.adapters.note_file(known, self.token):
            raise ScannerReplaced


def _sentences(error: UserError) -> str:
    message = error.message if error.message.endswith(".") else f"{error.message}."
    return f"{message} {error.hint or ''}".strip()


async def scan_named(
    scans: AdapterScans, names: Sequence[str], scope: str | None
) -> list[ScanReport]:
    """Scans the adapters of these names, or all that the person may see."""
    adapters = scans.console.adapters
    chosen = [await adapters.named(name, scope) for name in names] or await adapters.all(scope)
    return [await scans.scan(adapter) for adapter in chosen]
