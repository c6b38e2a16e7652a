"""One worker in this process, which works until nothing is left to do."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import structlog

from holdfast.cli.composition import file_access, worker_options
from holdfast.clock import Clock, SystemClock
from holdfast.configuration import load_settings
from holdfast.flags import CORE_FLAGS, FlagSpec, ServedFlag
from holdfast.kernel import Store
from holdfast.kernel.record.settle import FlushLimits
from holdfast.kernel.worker.facilities import FacilityParts, JobFacilities
from holdfast.kernel.worker.flag_values import FlagValues
from holdfast.kernel.worker.worker import Worker
from holdfast.kernel.worker.worker_parts import WorkerParts
from holdfast.model import Job, JobState
from holdfast.observe.metrics import Metrics
from holdfast.pipeline import Pipeline

_PATIENCE_SECONDS = 180
_NUMBERS = itertools.count(1)  # a worker's name is never used again


async def work(
    store: Store,
    made: Pipeline,
    patience: float = _PATIENCE_SECONDS,
    flush: FlushLimits | None = None,
    **settings: str,
) -> None:
    worker = make_worker(store, made, f"one {next(_NUMBERS)}", True, flush, **settings)
    async with asyncio.timeout(patience):
        await worker.run()


def make_worker(
    store: Store,
    made: Pipeline,
    name: str,
    until_idle: bool = False,
    flush: FlushLimits | None = None,
    **settings: str,
) -> Worker:
    parts = WorkerParts(
        store,
        name=name,
        owner="tester",
        clock=SystemClock(),
        rng=random.Random(1),
        metrics=Metrics(),
        log=structlog.get_logger(),
    )
    options = worker_options(load_settings(settings), None, until_idle)
    options = replace(options, flush=flush or options.flush)
    return Worker(parts, {made.name: made}, options)


def facilities_of(
    store: Store,
    made: Pipeline,
    timeout: float = 30.0,
    flags_of: Sequence[FlagSpec] = CORE_FLAGS,
    **settings: str,
) -> JobFacilities:
    """What an item of a job of this pipeline may use."""
    log = structlog.get_logger()
    flags = FlagValues(store, {flag.name: ServedFlag(flag) for flag in flags_of}, SystemClock())
    files = file_access(load_settings(settings))
    parts = FacilityParts(store, None, lambda name: None, flags.get, files, timeout, 1000, log)  # type: ignore[arg-type]
    return JobFacilities(parts, made, Job(1, made.name, made.name, JobState.RUNNING))


@asynccontextmanager
async def working(
    store: Store, *made: Pipeline, clock: Clock | None = None, **settings: str
) -> AsyncIterator[None]:
    """A worker that works until the end of the block."""
    parts = WorkerParts(
        store,
        f"one {next(_NUMBERS)}",
        "tester",
        clock or SystemClock(),
        random.Random(1),
        Metrics(),
        structlog.get_logger(),
    )
    options = worker_options(load_settings(settings), None, until_idle=False)
    worker = Worker(parts, {pipeline.name: pipeline for pipeline in made}, options)
    running = asyncio.create_task(worker.run())
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            yield
    finally:
        worker.stop()
        await running


async def until(condition: Callable[[], Awaitable[Any]]) -> Any:
    """Waits for a condition; its caller limits the time."""
    while not (value := await condition()):
        await asyncio.sleep(0.01)
    return value
