"""Shows what a plan's jobs would discover, without creating them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import structlog

from holdfast.cli.composition import worker_options
from holdfast.cli.opening import ensure_schema, opened_store, run_async
from holdfast.cli.supervisor import worker_name
from holdfast.clock import SystemClock, system_random
from holdfast.configuration import Settings
from holdfast.kernel import Store
from holdfast.kernel.worker.dry_discovery import DryDiscovery, DryLimits, DrySource, dry_options
from holdfast.kernel.worker.worker import Worker
from holdfast.kernel.worker.worker_parts import WorkerParts
from holdfast.model import Job, JobState, Lane, StreamStatus
from holdfast.observe.metrics import Metrics
from holdfast.orders import Start
from holdfast.pipeline import Pipeline
from holdfast.reading import Reading


def dry_starts(
    settings: Settings,
    pipeline: Pipeline,
    starts_of: Callable[[Sequence[StreamStatus]], Sequence[Start]],
) -> list[DrySource]:
    """Returns what the starts would discover; `starts_of` is given the streams as they are now."""
    ensure_schema(settings, [pipeline.extension])

    async def main() -> list[DrySource]:
        async with opened_store(settings) as store:
            streams = await store.plans.streams(pipeline.name)
            walked: list[DrySource] = []
            for start in starts_of(streams):
                walked += await _walk(settings, store, pipeline, start)
            return walked

    return run_async(main())


async def _walk(
    settings: Settings, store: Store, pipeline: Pipeline, start: Start
) -> list[DrySource]:
    lane = start.lane or Lane.BACKFILL
    job = Job(
        0, pipeline.name, start.name, JobState.RUNNING, settings.owner, start.mode, lane,
        options=start.options, reading=Reading(plan=start.plan),
    )  # fmt: skip
    limits = DryLimits(start.max_items, start.cap_of, settings.items.max_input_bytes)
    parts = WorkerParts(
        store,
        worker_name(),
        settings.owner,
        SystemClock(),
        system_random(),
        Metrics(),
        structlog.get_logger(),
    )
    own = dry_options(worker_options(settings, None, True))
    worker = Worker(parts, {pipeline.name: pipeline}, own)
    return await DryDiscovery(store, pipeline, job, limits).run(worker, start)
