"""Carries one job from start to results: found or created, read in, processed, exported."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog

from holdfast.cli.composition import discover_limits, table_limits
from holdfast.cli.foreground import Foreground
from holdfast.cli.opening import opened_store
from holdfast.cli.output import errors, reason_text
from holdfast.cli.pipelines import path_of
from holdfast.cli.progress import Progress
from holdfast.cli.run_images import ImageInput
from holdfast.cli.run_summary import print_detected, print_summary
from holdfast.cli.supervisor import reap_dead_workers, worker_name
from holdfast.clock import SystemClock, system_random
from holdfast.configuration import Settings
from holdfast.errors import InputError, UserError
from holdfast.features.console import open_console
from holdfast.features.items.grid import write_export
from holdfast.features.jobs.why import why_not_running
from holdfast.kernel import Store
from holdfast.kernel.jobs.control import (
    Control,
    JobFile,
    JobRequest,
    discovery_key,
    options_of,
)
from holdfast.kernel.record.discover import WalkParts
from holdfast.kernel.worker.lost_workers import this_machine
from holdfast.kernel.worker.own_walk import OwnWalk
from holdfast.model import Counters, Job, JobState, StreamState
from holdfast.observe.metrics import Metrics
from holdfast.pipeline import Pipeline
from holdfast.tables import files
from holdfast.tables.files import TableFile, content_key
from holdfast.tables.plan import reading_plan
from holdfast.tables.writers import format_of


@dataclass(frozen=True, slots=True)
class Request:
    """What the command line requests."""

    reference: str
    pipeline: Pipeline
    input: Path | None
    out: Path | None
    new: bool
    work: bool
    workers: int
    table: dict[str, Any]
    columns: dict[str, str]  # columns of the input -> fields of the pipeline
    options: dict[str, Any]
    max_items: int | None = None
    max_per_source: int | None = None
    take_over: bool = False
    images: Sequence[Path] = ()  # instead of an input


def open_table(path: Path, table: Mapping[str, Any], settings: Settings) -> TableFile:
    return files.open_table(path, {**table, **table_limits(settings)})


class JobRun:
    def __init__(self, settings: Settings, request: Request, file: TableFile | None) -> None:
        self._settings = settings
        self._request = request
        self._file = file
        self._images = ImageInput(settings, request.images) if request.images else None
        self._clock = SystemClock()
        self._log = structlog.get_logger()
        self._name = worker_name()
        self._foreground = Foreground(settings, self._log)

    async def run(self) -> int:
        started = self._clock.monotonic()
        async with opened_store(self._settings) as store:
            await reap_dead_workers(store)
            job_id = await self._find_or_start(store)
            self._foreground.catch_signals()
            await store.workers.add_worker(
                self._name, socket.gethostname(), os.getpid(), [], machine=this_machine()
            )
            try:
                if (await store.reads.job(job_id)).state is not JobState.DONE:
                    await self._ingest_and_work(store, job_id)
            finally:
                await self._foreground.patiently(lambda: self._leave(store))
            seconds = self._clock.monotonic() - started
            return await self._unless_stopped(
                self._foreground.patiently(lambda: self._conclude(store, job_id, seconds))
            )

    async def _leave(self, store: Store) -> None:
        await store.workers.stop_worker(self._name)

    async def _unless_stopped(self, conclusion: Coroutine[Any, Any, int]) -> int:
        """Stops a long export too; it leaves no incomplete file."""
        if self._foreground.stopped.is_set():
            return await conclusion
        concluding = asyncio.create_task(conclusion)
        stopped = asyncio.create_task(self._foreground.stopped.wait())
        await asyncio.wait([concluding, stopped], return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if concluding.done() or self._foreground.signal is None:
            return await concluding
        concluding.cancel()
        await asyncio.gather(concluding, return_exceptions=True)
        errors.print("Stopped. Run the same command to write the results.")
        return 128 + self._foreground.signal

    # Finding the job.

    async def _find_or_start(self, store: Store) -> int:
        job_id = None if self._request.new else await self._unfinished(store)
        if job_id is not None and not await self._is_from_another_file(store, job_id):
            await self._continue(store, job_id)
            return job_id
        only_first = job_id is None and not self._request.new
        control = Control(store, self._settings.owner, self._log)
        if self._images is not None:
            job_id = await self._start_images(store, control, self._images, only_first)
        else:
            job_id = await self._start(control, only_first)
        errors.print(f"Job {job_id}.")
        return job_id

    async def _unfinished(self, store: Store) -> int | None:
        name, owner = self._request.pipeline.name, self._settings.owner
        return await store.reads.job_by_input(name, self._key(), owner)

    async def _start(self, control: Control, only_first: bool) -> int:
        path, file = self._request.input, None
        if path is not None:
            reference = str(path.resolve())
            file = JobFile(path.name, reference, self._key(), self._plan_reading())
        return await control.start(self._asked(file), only_first)

    async def _start_images(
        self, store: Store, control: Control, images: ImageInput, only_first: bool
    ) -> int:
        async with images.stored(store) as file:
            errors.print(f"{images.name}: one item for each image", markup=False)
            return await control.start(self._asked(file), only_first)

    def _asked(self, file: JobFile | None) -> JobRequest:
        request = self._request
        return JobRequest(
            request.pipeline,
            request.options,
            file,
            max_items=request.max_items,
            max_per_source=request.max_per_source,
            take_over=request.take_over,
            by_admin=True,
        )

    def _plan_reading(self) -> dict[str, Any]:
        """Returns how the file will be read, and shows it before its job is created."""
        assert self._file is not None
        request = self._request
        plan = reading_plan(
            self._file.detected, request.pipeline.inputs, request.table, request.columns
        )
        print_detected(self._file.path.name, plan["read_as"])
        return plan

    async def _is_from_another_file(self, store: Store, job_id: int) -> bool:
        """Whether the job's pipeline is of the same name but from another file; a moved file is the
        same."""
        job = await store.reads.job(job_id)
        created_by = job.reading.pipeline_file
        if created_by in (None, self._request.pipeline.file) or not Path(created_by).exists():
            return False
        errors.print(f"Job {job_id} on the same input belongs to {created_by}.", markup=False)
        return True

    def _key(self) -> str:
        if self._images is not None:
            return self._images.key()
        if self._request.input is None:
            return discovery_key(self._request.pipeline, self._request.options)
        return content_key(self._request.input)

    async def _continue(self, store: Store, job_id: int) -> None:
        job = await store.reads.job(job_id)
        self._check_options(job)
        self._read_as_before(job)
        control = Control(store, self._settings.owner, self._log)
        rules = self._settings.rules
        cap = self._request.max_items or rules.max_items
        cap_of_source = self._request.max_per_source or rules.max_items_per_source
        if job.state is JobState.PAUSED:
            raise UserError(
                f"job {job_id} on this input is paused",
                f"Continue it with `holdfast resume {job_id}`, or start a new job with --new.",
            )
        cap_raised = cap is not None and (job.max_items or cap) < cap
        if job.state is JobState.FAILED or cap_raised:
            await control.resume(job_id, cap, cap_of_source)
        if job.state is JobState.DONE and not cap_raised:
            errors.print(f"Job {job_id} is already done; use --new to start another one.")
        else:
            errors.print(f"Continuing job {job_id}.")
        await control.prepare(self._request.pipeline)

    def _check_options(self, job: Job) -> None:
        """Refuses different options for an existing job, which would be ignored silently."""
        given = self._request.options and options_of(self._request.pipeline, self._request.options)
        if (given and given != job.options) or self._is_read_otherwise(job):
            raise UserError(
                f"job {job.id} on this input was started with different options",
                f"Omit them to continue job {job.id}, or start a new job with --new.",
            )

    def _is_read_otherwise(self, job: Job) -> bool:
        """Whether the command says anything about the file that the job was not started with."""
        table, columns = self._request.table, self._request.columns
        stored, names = job.reading.table_options, job.reading.column_names
        return any(
            value is not None and stored.get(name) != value for name, value in table.items()
        ) or any(names.get(column, column) != field for column, field in columns.items())

    def _read_as_before(self, job: Job) -> None:
        """Reads the rest of a file in the same way as its beginning."""
        if self._request.input is not None and job.reading.table_options:
            self._file = open_table(self._request.input, job.reading.table_options, self._settings)

    # Doing the work.

    async def _ingest_and_work(self, store: Store, job_id: int) -> None:
        progress = Progress(store, job_id, self._clock, errors)
        await self._foreground.show_while(progress.show(), self._work(store, job_id))

    async def _work(self, store: Store, job_id: int) -> None:
        parts = [self._ingest(store, job_id)]
        if self._request.work:
            arguments = [path_of(self._request.reference), "--job", str(job_id)]
            parts.append(self._foreground.work(store, arguments, self._request.workers))
        tasks = [asyncio.create_task(part) for part in parts]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        if not all(task.done() for task in tasks):
            # One of them failed; the other would wait for it forever.
            await self._foreground.stop_workers()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(result, BaseException):
                raise result

    async def _ingest(self, store: Store, job_id: int) -> None:
        """Reads in the rows of the file. Other sources are read by the workers."""
        if self._images is not None:
            file_id = (await store.reads.job(job_id)).file_id
            async with self._images.opened(store, file_id) as path:
                await self._take_in(
                    store, job_id, open_table(path, {"marks_bad_rows": True}, self._settings)
                )
        elif self._file is not None:
            await self._take_in(store, job_id, self._file)

    async def _take_in(self, store: Store, job_id: int, file: TableFile) -> None:
        limits, rng = discover_limits(self._settings), system_random()
        parts = WalkParts(store, limits, self._clock, rng, Metrics(), self._log)
        walk = OwnWalk(parts, self._name, file, self._foreground.stopped)
        await walk.run(self._request.pipeline, job_id)
        for problem, count in sorted(file.problems.items()):
            errors.print(f"  {problem}: {count:,}", markup=False)
        for stream in await store.streams.of_job(job_id):
            if stream.state == StreamState.FAILED:
                raise InputError(
                    stream.error or "the input could not be read",
                    f"The {stream.items_count:,} rows before it are kept in job {job_id}. "
                    "Fix the file and run the command again.",
                )

    # The end.

    async def _conclude(self, store: Store, job_id: int, seconds: float) -> int:
        job = await store.reads.job(job_id)
        counters = await store.reads.counters(job_id)
        stopped = self._foreground.signal is not None
        out = self._request.out if self._request.work and not stopped else None
        if out is not None:
            for note in await write_export(open_console(store), job, out, format_of(out, None)):
                errors.print(note, markup=False)
        print_summary(job, counters, seconds, stopped)
        await self._print_next_steps(store, job, counters)
        if out is not None:
            errors.print(f"Results: {out}", markup=False)
        failed = not stopped and await self._is_unfinished(store, job)
        return self._foreground.exit_code(failed, bool(counters.error))

    async def _is_unfinished(self, store: Store, job: Job) -> bool:
        """Whether the job is unfinished; if so, prints why."""
        if job.state is JobState.CANCELLED:
            errors.print(f"Job {job.id} was cancelled; run the same command to start a new one.")
            return True
        enabled = self._settings.rules.backfill_enabled
        reason = await why_not_running(open_console(store), job, enabled)
        if reason is None:
            return False
        if job.state is not JobState.DONE and self._request.work:
            why = reason_text(reason.kind, reason.text, reason.until)
            errors.print(f"Not finished: {why}", markup=False)
            return True
        if reason.kind == "cap reached":
            errors.print(reason.text, markup=False)
        return False

    async def _print_next_steps(self, store: Store, job: Job, counters: Counters) -> None:
        if counters.error:
            errors.print(f"See the errors with: holdfast items {job.id} --status ERROR")
        if not self._request.work and counters.open:
            live = await store.workers.live()
            if any(job.pipeline in worker["pipelines"] for worker in live):
                errors.print(f"Workers process them; see: holdfast show {job.id}")
            else:
                command = f"holdfast work {path_of(self._request.reference)} --job {job.id}"
                errors.print(f"Process them with: {command}", markup=False)
        if self._foreground.worker_deaths:
            errors.print(
                f"Workers died {self._foreground.worker_deaths} times; their output is in "
                f"{self._settings.data_dir / 'logs'}.",
                markup=False,
            )
