"""`holdfast run`: ingest, work, export; stopped at any moment, continued by the same command."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import structlog
import typer

from holdfast.cli.composition import (
    discover_limits,
    ensure_schema,
    ingest_bounds,
    opened_store,
    run_async,
    settings_from_environment,
)
from holdfast.cli.loading import load_pipeline
from holdfast.cli.output import errors, reason_text, seconds_left
from holdfast.cli.planning import SOME_ITEMS_FAILED, PlannedRun, run_planned
from holdfast.cli.progress import Progress
from holdfast.cli.request import Request, open_table, parse_options, refuse_unfitting, table_of
from holdfast.cli.supervising import Supervisor, reap_dead_workers
from holdfast.cli.working import worker_name
from holdfast.clock import SystemClock, system_random
from holdfast.console import open_console
from holdfast.console.grid import write_export
from holdfast.console.why import why_not_running
from holdfast.engine.control import Asked, Caps, Control, discovery_key, options_of
from holdfast.engine.record.discover import WalkParts
from holdfast.engine.record.uploads import Upload, UploadParts
from holdfast.errors import DatabaseGone, InputError, UserError
from holdfast.model import Job, JobState
from holdfast.observe.metrics import Metrics
from holdfast.options import checked_options
from holdfast.settings import Settings
from holdfast.store import Store
from holdfast.tables.files import TableFile, content_key
from holdfast.tables.writers import format_of

T = TypeVar("T")
_AGAIN_SECONDS = 0.5


def register(app: typer.Typer) -> None:
    app.command("run")(run)


def run(
    pipeline: str = typer.Argument(
        ...,
        metavar="PIPELINE",
        help="The file with the pipeline (FILE.py:name for one of many), or a built-in one.",
    ),
    input: Path | None = typer.Argument(
        None,
        metavar="[INPUT]",
        help="CSV, TSV, XLSX or JSON lines; none if the pipeline discovers.",
    ),
    out: Path | None = typer.Option(
        None, "--out", help="Write the results there: .csv, .xlsx or .jsonl."
    ),
    new: bool = typer.Option(False, "--new", help="A fresh job, even if one is there to continue."),
    encoding: str | None = typer.Option(None, "--encoding", help="The input's encoding."),
    delimiter: str | None = typer.Option(None, "--delimiter", help="The input's delimiter."),
    sheet: str | None = typer.Option(None, "--sheet", help="The workbook's sheet."),
    option: list[str] = typer.Option(
        [], "--option", metavar="NAME=VALUE", help="For the pipeline: ctx.options. May be repeated."
    ),
    max_items: int | None = typer.Option(None, "--max-items", min=1, help="Stop after so many."),
    max_per_source: int | None = typer.Option(
        None, "--max-per-source", min=1, help="Stop each source after so many."
    ),
    take_over: bool = typer.Option(
        False, "--take-over", help="Though another owner's job could go on from its checkpoint."
    ),
    workers: int | None = typer.Option(None, "--workers", min=1, help="Worker processes."),
    work: bool = typer.Option(
        True, "--work/--no-work", help="--no-work: take the records in only."
    ),
) -> None:
    """Take records in, work through them and write the results.

    Stop it with Ctrl-C, a power cut or kill -9: the same command continues where it stopped. The
    job is found by its pipeline and the content of its input; --new makes a fresh one.

    Exit code 0: done; 3: done, but some items ended as ERROR; 1: it could not be done; 130 or
    143: stopped by Ctrl-C or SIGTERM.
    """
    settings = settings_from_environment()
    recipe = load_pipeline(pipeline, settings)
    request = Request(
        reference=pipeline,
        pipeline=recipe,
        input=input,
        out=out,
        new=new,
        work=work,
        take_over=take_over,
        workers=workers or settings.workers,
        table={"encoding": encoding, "delimiter": delimiter, "sheet": sheet},
        options=checked_options(recipe.name, recipe.options, parse_options(option)),
        caps=Caps(
            max_items or settings.max_urls_per_run,
            max_per_source or settings.max_urls_per_source,
        ),
    )
    refuse_unfitting(request, settings)
    if request.pipeline.plans:
        planned = PlannedRun(pipeline, recipe, request.options, request.workers, request.work)
        raise typer.Exit(run_planned(settings, planned))
    file = None if input is None else open_table(input, request.table, settings)
    ensure_schema(settings)
    code = run_async(_Run(settings, request, file).run())
    sys.stdout.flush()
    raise typer.Exit(code)


class _Run:
    def __init__(self, settings: Settings, request: Request, file: TableFile | None) -> None:
        self._settings = settings
        self._request = request
        self._file = file
        self._clock = SystemClock()
        self._log = structlog.get_logger()
        self._name = worker_name()
        self._stopped = asyncio.Event()
        self._signal: signal.Signals | None = None
        self._supervisor: Supervisor | None = None

    async def run(self) -> int:
        started = self._clock.monotonic()
        # Its own workers poll; only work that is left to others is announced.
        announces = False if self._request.work else None
        async with opened_store(self._settings, announces=announces) as store:
            await reap_dead_workers(store, self._settings.worker_lost_seconds * 10)
            job_id = await self._find_or_start(store)
            self._catch_signals()
            await store.workers.add_worker(self._name, socket.gethostname(), os.getpid(), [])
            try:
                if (await store.reads.job(job_id)).state is not JobState.DONE:
                    await self._ingest_and_work(store, job_id)
            finally:
                await self._patiently(lambda: self._leave(store))
            seconds = self._clock.monotonic() - started
            return await self._unless_stopped(
                self._patiently(lambda: self._conclude(store, job_id, seconds))
            )

    async def _leave(self, store: Store) -> None:
        await store.leases.return_leases(self._name)
        await store.workers.stop_worker(self._name)

    async def _patiently(self, action: Callable[[], Awaitable[T]]) -> T:
        """Waits for a database that is gone, unless the user does not want to."""
        while True:
            try:
                return await action()
            except DatabaseGone as error:
                if self._stopped.is_set():
                    raise
                self._log.warning("database.gone", error=str(error))
                await self._pause(_AGAIN_SECONDS)

    async def _unless_stopped(self, conclusion: Coroutine[Any, Any, int]) -> int:
        """A long export may be stopped too; it leaves no half file."""
        if self._stopped.is_set():
            return await conclusion
        concluding = asyncio.create_task(conclusion)
        stopped = asyncio.create_task(self._stopped.wait())
        await asyncio.wait([concluding, stopped], return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if concluding.done() or self._signal is None:
            return await concluding
        concluding.cancel()
        await asyncio.gather(concluding, return_exceptions=True)
        errors.print("Stopped. The same command writes the results.")
        return 128 + self._signal

    # Finding the job.

    async def _find_or_start(self, store: Store) -> int:
        request = self._request
        key = self._key()
        found = None
        if not request.new:
            found = await store.reads.job_by_input(request.pipeline.name, key, self._settings.owner)
        only_first = not request.new
        if found is not None and await self._is_anothers(store, found):
            found, only_first = None, False
        if found is not None:
            await self._continue(store, found)
            return found
        control = Control(store, self._settings.owner, self._log)
        if request.input is None:
            job_id = await control.start_discovery(
                request.pipeline,
                request.options,
                caps=request.caps,
                only_first=only_first,
                asked=Asked(by_admin=True, take_over=request.take_over),
            )
        else:
            self._tell_detected()
            job_id = await control.start_upload(
                request.pipeline,
                request.input,
                key,
                request.table,
                request.options,
                request.caps,
                only_first,
            )
        errors.print(f"Job {job_id}.")
        return job_id

    async def _is_anothers(self, store: Store, job_id: int) -> bool:
        """A pipeline of the same name in another file is another; a file that moved is not."""
        job = await store.reads.job(job_id)
        made_by = job.options.get("_file")
        if made_by in (None, self._request.pipeline.file) or not Path(made_by).exists():
            return False
        errors.print(f"Job {job_id} on the same input belongs to {made_by}.", markup=False)
        return True

    def _key(self) -> str:
        if self._request.input is None:
            return discovery_key(self._request.pipeline, self._request.options)
        return content_key(self._request.input)

    async def _continue(self, store: Store, job_id: int) -> None:
        job = await store.reads.job(job_id)
        self._refuse_other_options(job)
        self._read_as_before(job)
        control = Control(store, self._settings.owner, self._log)
        cap = self._request.caps.max_items
        if job.state is JobState.PAUSED:
            raise UserError(
                f"job {job_id} on this input is paused",
                f"Continue it with `holdfast resume {job_id}`, or start afresh with --new.",
            )
        raised = cap is not None and (job.max_items or cap) < cap
        if job.state is JobState.FAILED or raised:
            await control.resume(job_id, self._request.caps)
        if job.state is JobState.DONE and not raised:
            errors.print(f"Job {job_id} is done already; --new makes a fresh one.")
        else:
            errors.print(f"Continuing job {job_id}.")
        await control.prepare(self._request.pipeline)

    def _refuse_other_options(self, job: Job) -> None:
        """A job keeps the options it was made with; others must not be dropped in silence."""
        made_with = {name: value for name, value in job.options.items() if not name.startswith("_")}
        given = self._request.options and options_of(self._request.pipeline, self._request.options)
        table = {name: value for name, value in self._request.table.items() if value}
        if (given and given != made_with) or (table and table != table_of(job)):
            raise UserError(
                f"job {job.id} on this input was made with other options",
                f"Leave them out to continue job {job.id}, or start afresh with --new.",
            )

    def _read_as_before(self, job: Job) -> None:
        """The rest of a file is read as its beginning was."""
        if self._request.input is not None and table_of(job):
            self._file = open_table(self._request.input, table_of(job), self._settings)

    def _tell_detected(self) -> None:
        if self._file is None:
            return
        found = self._file.detected
        parts = [found.format.upper(), found.encoding, found.sheet and f"sheet {found.sheet!r}"]
        if found.delimiter:
            parts.append(f"delimiter {found.delimiter!r}")
        told = ", ".join(part for part in parts if part)
        errors.print(f"{self._file.path.name}: {told}, {len(found.columns)} columns", markup=False)
        for note in found.notes:
            errors.print(f"  {note}", markup=False)

    # Doing the work.

    def _catch_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop, number)

    def _stop(self, number: signal.Signals) -> None:
        """The first asks for a clean stop, a second ends it at once."""
        if self._stopped.is_set() and self._supervisor is not None:
            self._supervisor.kill()
        self._signal = number
        self._stopped.set()

    async def _ingest_and_work(self, store: Store, job_id: int) -> None:
        progress = Progress(store, job_id, self._settings.worker_lost_seconds, self._clock, errors)
        showing = asyncio.create_task(progress.show())
        stopped = asyncio.create_task(self._stopped.wait())
        working = asyncio.create_task(self._work(store, job_id))
        try:
            await asyncio.wait([stopped, working], return_when=asyncio.FIRST_COMPLETED)
            showing.cancel()
            if self._supervisor is not None and self._stopped.is_set():
                await self._supervisor.stop()
            await working
        finally:
            for task in (showing, stopped):
                task.cancel()
            await asyncio.gather(showing, stopped, return_exceptions=True)

    async def _work(self, store: Store, job_id: int) -> None:
        parts = [self._ingest(store, job_id)]
        if self._request.work:
            self._supervisor = Supervisor(
                store,
                [self._path(), "--job", str(job_id), "--until-idle"],
                self._request.workers,
                self._settings.drain_seconds,
                self._settings.data_dir / "logs",
                self._log,
            )
            parts.append(self._supervisor.run())
        tasks = [asyncio.create_task(part) for part in parts]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        if self._supervisor is not None and not all(task.done() for task in tasks):
            # Without the one the other would wait for ever.
            self._stopped.set()
            await self._supervisor.stop()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result

    def _path(self) -> str:
        path, separator, name = self._request.reference.rpartition(":")
        return path if separator and path.endswith(".py") and name else self._request.reference

    async def _ingest(self, store: Store, job_id: int) -> None:
        """Takes the file's rows in. Discovery of other sources is the workers' business."""
        if self._file is None:
            return
        limits, rng = discover_limits(self._settings), system_random()
        walk = WalkParts(store, limits, self._clock, rng, Metrics(), self._log)
        parts = UploadParts(walk, ingest_bounds(self._settings))
        pipeline = self._request.pipeline
        upload = Upload(parts, self._name, job_id, pipeline, self._file, self._stopped)
        await upload.take_in()
        for problem, count in sorted(self._file.problems.items()):
            errors.print(f"  {problem}: {count:,}", markup=False)
        if upload.failed is not None:
            raise InputError(
                upload.failed,
                f"The {upload.rows:,} rows before it are kept, as job {job_id}. "
                "Mend the file and run again.",
            )

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopped.wait(), seconds)

    # The end.

    async def _conclude(self, store: Store, job_id: int, seconds: float) -> int:
        job = await store.reads.job(job_id)
        counters = await store.reads.counters(job_id)
        out = self._request.out if self._request.work and not self._signal else None
        if out is not None:
            for note in await write_export(open_console(store), job, out, format_of(out, None)):
                errors.print(note, markup=False)
        self._summarize(job.state, job_id, counters, seconds)
        if out is not None:
            errors.print(f"Results: {out}", markup=False)
        reason = await why_not_running(
            open_console(store),
            job,
            self._settings.worker_lost_seconds,
            self._settings.backfill_enabled,
        )
        if self._signal is not None:
            errors.print("Stopped. The same command continues where it stopped.")
            return 128 + self._signal
        if job.state is JobState.CANCELLED:
            errors.print(f"Job {job_id} was cancelled; the same command starts a new one.")
            return 1
        if reason is not None and job.state is not JobState.DONE and self._request.work:
            why = reason_text(reason.kind, reason.text, reason.until)
            errors.print(f"Not finished: {why}", markup=False)
            return 1
        if reason is not None and reason.kind == "cap reached":
            errors.print(reason.text, markup=False)
        return SOME_ITEMS_FAILED if counters.error else 0

    def _next_step(self, job_id: int) -> str:
        if self._settings.broker_url is None:
            return f"Work them off with: holdfast work {self._path()} --job {job_id}"
        return f"The workers of the fleet go on with it; see: holdfast show {job_id}"

    def _summarize(self, state: JobState, job_id: int, counters: Any, seconds: float) -> None:
        errors.print(
            f"Job {job_id} {'stopped' if self._signal else state}: "
            f"{counters.accepted:,} accepted, {counters.done:,} done, "
            f"{counters.not_found:,} not found, {counters.skipped:,} skipped, "
            f"{counters.error:,} error, {counters.open:,} open, {counters.retried:,} retries, "
            f"{counters.known:,} known already, in {seconds_left(seconds)}."
        )
        if counters.error:
            errors.print(f"See the errors with: holdfast items {job_id} --status ERROR")
        if not self._request.work and counters.open:
            errors.print(self._next_step(job_id))
        if self._supervisor is not None and self._supervisor.deaths:
            errors.print(
                f"Workers died {self._supervisor.deaths} times; their output is in "
                f"{self._settings.data_dir / 'logs'}.",
                markup=False,
            )
