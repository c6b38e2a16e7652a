"""Reads stored files in, as a worker does, and processes nothing: tests say when that happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import structlog

from holdfast.cli.composition import discover_limits, file_access, table_limits
from holdfast.cli.supervisor import worker_name
from holdfast.clock import SystemClock, system_random
from holdfast.configuration import Settings
from holdfast.errors import DatabaseGone, NotThere
from holdfast.files import FileAccess
from holdfast.kernel import Store
from holdfast.kernel.pace.backpressure import Backpressure
from holdfast.kernel.record.discover import Discovery, WalkParts, WorkerSources
from holdfast.kernel.record.file_pages import StoredTables
from holdfast.kernel.worker.presence import present
from holdfast.observe.metrics import Metrics
from holdfast.pipeline import Pipeline
from holdfast.tasks import end_tasks

_LOOK_SECONDS = 0.02


@asynccontextmanager
async def reading_files(
    settings: Settings,
    store: Store,
    pipelines: Mapping[str, Pipeline],
    files: Callable[[], FileAccess] | None = None,
) -> AsyncIterator[None]:
    """`files`: how the file store is reached now, if not as the settings say."""
    access = partial(file_access, settings) if files is None else files
    async with present(store, worker_name()) as name:
        reader = FileReader(settings, store, pipelines, access, name)
        reading = asyncio.create_task(reader.run())
        try:
            yield
        finally:
            await end_tasks([reading])


class FileReader:
    """Each file has a walk of its own."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        pipelines: Mapping[str, Pipeline],
        files: Callable[[], FileAccess],
        name: str,
    ) -> None:
        self._name = name
        self._settings = settings
        self._files = files
        self._store = store
        self._pipelines = pipelines
        self._walks: dict[int, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Until it is cancelled."""
        try:
            while True:
                with suppress(DatabaseGone):
                    await self._look()
                await asyncio.sleep(_LOOK_SECONDS)
        finally:
            await end_tasks(list(self._walks.values()))

    async def _look(self) -> None:
        self._walks = {job: walk for job, walk in self._walks.items() if not walk.done()}
        for job_id, _, _ in await self._store.reads.discovering_jobs([], list(self._pipelines)):
            if job_id not in self._walks:
                self._walks[job_id] = asyncio.create_task(self._walk(job_id))

    async def _walk(self, job_id: int) -> None:
        try:
            job = await self._store.reads.job(job_id)
        except NotThere:
            return
        if job.file_id is None:
            return
        discovery = self._discovery()
        leased = await discovery.lease(self._pipelines[job.pipeline], job)
        if leased is not None:
            await discovery.walk(leased, lambda: False, _nobody_waits)

    def _discovery(self) -> Discovery:
        clock, metrics, log = SystemClock(), Metrics(), structlog.get_logger()
        limits, store = discover_limits(self._settings), self._store
        sources = WorkerSources(
            reach=_nowhere,
            facilities=_nowhere,
            backpressure=Backpressure(store, None, clock, metrics),
            tables=StoredTables(store, self._files(), table_limits(self._settings)),
            max_input_bytes=limits.max_input_bytes,
            log=log,
        )
        parts = WalkParts(store, limits, clock, system_random(), metrics, log)
        return Discovery(parts, sources, self._name, self._settings.claim.target_slice_seconds)


def _nowhere(*of: object) -> Any:
    raise AssertionError("a file reaches nothing")


async def _nobody_waits() -> bool:
    return False
