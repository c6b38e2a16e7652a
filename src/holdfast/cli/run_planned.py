"""Runs a pipeline's plan, and works on the jobs that it orders."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from holdfast.cli.foreground import Foreground
from holdfast.cli.opening import ensure_schema, opened_store, run_async
from holdfast.cli.output import errors, print_json, print_table
from holdfast.cli.supervisor import reap_dead_workers
from holdfast.configuration import Settings
from holdfast.extension import installed
from holdfast.features.console import open_console
from holdfast.kernel import Store
from holdfast.kernel.jobs.control import Control
from holdfast.model import Job, JobState, StreamStatus
from holdfast.orders import Planned
from holdfast.pipeline import Pipeline, Tx

_LINE_SECONDS = (2.0, 60.0)
_JOBS_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """What to ask the plan, and how to work on what it orders."""

    reference: str  # the pipeline as the user named it; workers are started with it
    pipeline: Pipeline
    request: Mapping[str, Any]
    workers: int
    work: bool = True  # False: leave it to workers that are already running
    show: Callable[[Any], None] | None = None  # shows the plan's answer; None: shown as a table


def ask_plan(settings: Settings, pipeline: Pipeline, request: Mapping[str, Any]) -> Any:
    """Returns the answer of the pipeline's plan.

    What it orders is committed in the same transaction."""
    ensure_schema(settings, [pipeline.extension])

    async def ask() -> Any:
        async with opened_store(settings) as store:
            control = Control(store, settings.owner, structlog.get_logger())
            return (await control.request(pipeline, request)).answer

    return run_async(ask())


def make_change(
    settings: Settings, pipeline: str, change: Callable[[Tx], Awaitable[Planned]]
) -> Any:
    """Changes the pipeline's own rows in one transaction; returns the answer."""
    ensure_schema(settings, [pipeline])

    async def make() -> Any:
        async with opened_store(settings) as store:
            return await Control(store, settings.owner, structlog.get_logger()).change(change)

    return run_async(make())


def run_planned(settings: Settings, run: PlannedRun) -> int:
    """Asks the plan, shows its answer and works on what it ordered; returns the exit code."""
    ensure_schema(settings, [run.pipeline.extension])
    return run_async(_Run(settings, run).run())


class _Run:
    def __init__(self, settings: Settings, run: PlannedRun) -> None:
        self._settings = settings
        self._run = run
        self._pipeline = run.pipeline
        self._log = structlog.get_logger()
        self._foreground = Foreground(settings, self._log)

    async def run(self) -> int:
        async with opened_store(self._settings) as store:
            before = await self._newest(store)
            control = Control(store, self._settings.owner, self._log)
            planned = await control.request(self._pipeline, self._run.request)
            self._show_answer(planned.answer)
            if not self._run.work:
                return 0
            await reap_dead_workers(store)
            self._foreground.catch_signals()
            if await store.reads.unfinished_jobs([self._pipeline.name]):
                work = self._foreground.work(store, [self._run.reference], self._run.workers)
                await self._foreground.show_while(self._show(store), work)
            return await self._foreground.patiently(
                lambda: self._conclude(store, planned.job_ids, before)
            )

    def _show_answer(self, answer: Any) -> None:
        if self._run.show is not None:
            self._run.show(answer)
        elif answer is None or answer == []:
            name = self._pipeline.name
            hint = f" See `holdfast {name} --help`." if name in installed() else ""
            errors.print(f"Nothing to do: the plan of {name} ordered nothing.{hint}", markup=False)
        else:
            show_answer(answer)

    async def _show(self, store: Store) -> None:
        """Prints changes of its streams and jobs, less and less often."""
        wait = _LINE_SECONDS[0]
        shown: list[str] = []
        while True:
            await asyncio.sleep(wait)
            lines = await self._progress(store)
            for line in lines:
                if line not in shown:
                    errors.print(line, markup=False)
            shown = lines
            wait = min(_LINE_SECONDS[1], wait * 1.5)

    async def _progress(self, store: Store) -> list[str]:
        streams = await store.plans.streams(self._pipeline.name)
        running = [stream for stream in streams if stream.job_state is JobState.RUNNING]
        lines = [_stream_line(stream) for stream in running]
        for job_id in sorted({stream.job_id for stream in running}):
            counters = await store.reads.counters(job_id)
            if counters.accepted:
                ended = f"{counters.finished:,} of {counters.accepted:,} rows finished"
                lines.append(f"Job {job_id}: {ended}")
        return lines

    async def _newest(self, store: Store) -> int:
        jobs = await open_console(store).jobs.page(None, 1)
        return jobs[0].job.id if jobs else 0

    async def _followers(self, store: Store, before: int) -> list[int]:
        """Returns the jobs of this pipeline and owner that were created since."""
        followers: list[int] = []
        oldest: int | None = None
        console = open_console(store)
        while newest := await console.jobs.page(None, _JOBS_AT_ONCE, oldest):
            jobs = [job for job, _, _ in newest]
            followers += [job.id for job in jobs if job.id > before and self._is_ours(job)]
            oldest = jobs[-1].id
            if oldest <= before:
                break
        return followers

    def _is_ours(self, job: Job) -> bool:
        return job.pipeline == self._pipeline.name and job.owner_id == self._settings.owner

    async def _conclude(self, store: Store, job_ids: Sequence[int], before: int) -> int:
        """Returns the exit code for the jobs that were ordered and those that followed them."""
        followers = await self._followers(store, before)
        failed = some_items = False
        for job_id in sorted({*job_ids, *followers}):
            job = await store.reads.job(job_id)
            counters = await store.reads.counters(job_id)
            missing = f"{counters.not_found:,} not found, " if counters.not_found else ""
            errors.print(
                f"Job {job_id} {job.name}: {job.state}, {counters.done:,} rows done, "
                f"{missing}{counters.error:,} rejected",
                markup=False,
            )
            if job.error:
                errors.print(f"  {job.error}", markup=False)
            if counters.error:
                errors.print(f"  See why with: holdfast items {job_id} --status ERROR")
            failed = failed or job.state is not JobState.DONE
            some_items = some_items or bool(counters.error)
        return self._foreground.exit_code(failed, some_items)


def _stream_line(stream: StreamStatus) -> str:
    """Describes how far it is, and the error that it waits to retry, if there is one."""
    progress = (
        f"{stream.source} {stream.mode}: {stream.records_count:,} rows in "
        f"{stream.pages_count:,} {'page' if stream.pages_count == 1 else 'pages'}"
    )
    return f"{progress}; will retry: {stream.error}" if stream.error else progress


def show_answer(answer: Any) -> None:
    """Prints a table if the answer is a list of mappings, otherwise JSON."""
    rows = answer if isinstance(answer, list | tuple) else None
    if rows is None or not all(isinstance(row, Mapping) for row in rows):
        print_json(answer)
    else:
        columns = list(dict.fromkeys(str(name) for row in rows for name in row))
        print_table(columns, [[row.get(name) for name in columns] for row in rows], "")
