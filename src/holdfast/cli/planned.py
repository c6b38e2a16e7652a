"""Runs of a pipeline that plans: whatever its plan orders, until nothing of it is left to do."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Mapping, Sequence
from typing import Any

import structlog

from holdfast.cli.composition import ensure_schema, opened_store, run_async
from holdfast.cli.output import errors, print_json, print_table
from holdfast.cli.supervising import Supervisor, reap_dead_workers
from holdfast.engine.control import Control
from holdfast.model import JobState, Standing
from holdfast.pipeline import Pipeline
from holdfast.settings import Settings
from holdfast.store import Store

SOME_ITEMS_FAILED = 3
_LOOK_SECONDS = 0.5
_LINE_SECONDS = (2.0, 60.0)


def run_planned(
    settings: Settings,
    pipeline: Pipeline,
    request: Mapping[str, Any],
    workers: int,
    *,
    work: bool = True,
    as_json: bool = False,
) -> int:
    """Asks the pipeline, tells what it decided, and works it off; gives the exit code."""
    ensure_schema(settings)
    return run_async(_PlannedRun(settings, pipeline, workers).run(request, work, as_json))


class _PlannedRun:
    def __init__(self, settings: Settings, pipeline: Pipeline, workers: int) -> None:
        self._settings = settings
        self._pipeline = pipeline
        self._workers = workers
        self._log = structlog.get_logger()
        self._signal: signal.Signals | None = None
        self._supervisor: Supervisor | None = None

    async def run(self, request: Mapping[str, Any], work: bool, as_json: bool) -> int:
        async with opened_store(self._settings) as store:
            control = Control(store, self._settings.owner, self._log)
            carried = await control.request(self._pipeline, request)
            tell_decisions(carried.answer, as_json)
            if not work:
                return 0
            before = await self._newest(store)
            await reap_dead_workers(store, self._settings.worker_lost_seconds * 10)
            if await store.reads.running_jobs([self._pipeline.name]):
                await self._work(store)
            return await self._conclude(store, carried.job_ids, before)

    async def _work(self, store: Store) -> None:
        arguments = [self._pipeline.name, "--until-idle"]
        folder = self._settings.data_dir / "logs"
        drain_seconds = self._settings.drain_seconds
        self._supervisor = Supervisor(
            store, arguments, self._workers, drain_seconds, folder, self._log
        )
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop, number)
        showing = asyncio.create_task(self._show(store))
        try:
            await self._supervisor.run()
        finally:
            showing.cancel()
            await asyncio.gather(showing, return_exceptions=True)

    def _stop(self, number: signal.Signals) -> None:
        """The first asks for a clean stop, a second ends it at once."""
        assert self._supervisor is not None
        if self._signal is not None:
            self._supervisor.kill()
            return
        self._signal = number
        self._stopping = asyncio.ensure_future(self._supervisor.stop())

    async def _show(self, store: Store) -> None:
        """How its streams stand: less and less often."""
        wait = _LINE_SECONDS[0]
        while True:
            await asyncio.sleep(wait)
            for standing in await store.plans.standings(self._pipeline.name):
                if standing.job_state is JobState.RUNNING:
                    errors.print(_standing_line(standing), markup=False)
            wait = min(_LINE_SECONDS[1], wait * 1.5)

    async def _newest(self, store: Store) -> int:
        jobs = await store.reads.jobs(1)
        return jobs[0].id if jobs else 0

    async def _conclude(self, store: Store, job_ids: Sequence[int], before: int) -> int:
        """Of the jobs that were ordered, and of those that followed them."""
        followed = [job.id for job in await store.reads.jobs(1000) if job.id > before]
        failed = some_items = False
        for job_id in sorted({*job_ids, *followed}):
            job = await store.reads.job(job_id)
            counters = await store.reads.counters(job_id)
            errors.print(
                f"Job {job_id} {job.name}: {job.state}, {counters.done:,} rows done, "
                f"{counters.error:,} rejected",
                markup=False,
            )
            if job.error:
                errors.print(f"  {job.error}", markup=False)
            if counters.error:
                errors.print(f"  See why with: holdfast items {job_id} --status ERROR")
            failed = failed or job.state is not JobState.DONE
            some_items = some_items or bool(counters.error)
        if self._signal is not None:
            errors.print("Stopped. The same command continues where it stopped.")
            return 128 + self._signal
        if failed:
            return 1
        return SOME_ITEMS_FAILED if some_items else 0


def _standing_line(standing: Standing) -> str:
    """How far it is, and what it waits for if something is in its way."""
    far = (
        f"{standing.source} {standing.mode}: {standing.records_count:,} rows in "
        f"{standing.pages_count:,} pages"
    )
    return f"{far}; tried again soon: {standing.error}" if standing.error else far


def tell_decisions(answer: Any, as_json: bool) -> None:
    if as_json:
        print_json(answer)
        return
    names = ("subdomain", "document_type", "action", "why")
    rows = [[one[name] for name in names] for one in answer or []]
    print_table(("municipality", "type", "decision", "why"), rows, "Nothing to do.")
