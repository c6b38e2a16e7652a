"""Builds what the API and the pages depend on, from the settings."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

import structlog

from holdfast.cli.composition import (
    metrics_of,
    worker_options,
)
from holdfast.cli.opening import opened_store
from holdfast.cli.served_flags import extensions_of, served_flags
from holdfast.cli.supervisor import worker_name
from holdfast.clock import Clock, SystemClock, system_random
from holdfast.configuration import Settings
from holdfast.features.accounts.compose import accounts_of, second_factors_of
from holdfast.features.bulk.bulk import Bulk
from holdfast.features.bulk.operation_runner import OperationRunner
from holdfast.features.console import Console, open_console
from holdfast.features.deletion.compose import deletions_of
from holdfast.features.exports.export_writer import ExportWriter
from holdfast.features.ingestion.adapter_scans import AdapterScans
from holdfast.features.ingestion.compose import open_place
from holdfast.features.items.item_lists import ItemLists
from holdfast.features.jobs.kickoffs import Kickoffs
from holdfast.features.jobs.live import Feed, Rates
from holdfast.features.jobs.new_jobs import NewJobs
from holdfast.features.library.compose import file_library
from holdfast.features.library.file_leftovers import FileLeftovers
from holdfast.features.library.file_library import FileLibrary
from holdfast.features.switches.flags import FeatureFlags
from holdfast.kernel.pace.backpressure import Backpressure
from holdfast.kernel.worker.lost_workers import LostWorkers
from holdfast.kernel.worker.presence import present
from holdfast.kernel.worker.worker import Worker
from holdfast.kernel.worker.worker_parts import WorkerParts
from holdfast.pipeline import Pipeline
from holdfast.server.dependencies import ApiOptions, Parts, Runners

_KICKOFFS = 2


@asynccontextmanager
async def opened_parts(
    settings: Settings, pipelines: Mapping[str, Pipeline], host: str = "127.0.0.1"
) -> AsyncIterator[Parts]:
    metrics = metrics_of(pipelines.values())
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(opened_store(settings, metrics))
        console = open_console(store, settings.quotas)
        clock, rng, log = SystemClock(), system_random(), structlog.get_logger()
        backpressure = Backpressure(store, settings.rules.backlog_max_items, clock, metrics)
        library = file_library(settings, console)
        name = await stack.enter_async_context(present(store, worker_name()))
        flags = FeatureFlags(console, served_flags(settings, extensions_of(pipelines)))

        def new_worker(job_id: int) -> Worker:
            parts = WorkerParts(store, worker_name(), settings.owner, clock, rng, metrics, log)
            return Worker(parts, pipelines, worker_options(settings, job_id, until_idle=True))

        new_jobs = NewJobs(console, pipelines, library, flags, backpressure, new_worker, log)
        rates = Rates(clock)
        yield Parts(
            store=store,
            console=console,
            pipelines=pipelines,
            accounts=accounts_of(console, settings, clock),
            second_factors=second_factors_of(console, clock),
            flags=flags,
            library=library,
            new_jobs=new_jobs,
            scans=AdapterScans(console, new_jobs, partial(open_place, settings), log),
            bulk=Bulk(console, pipelines),
            deletions=deletions_of(settings, console, log),
            item_lists=ItemLists(console, clock, metrics, log),
            rates=rates,
            feed=Feed(console, rates, clock),
            runners=_runners(settings, pipelines, console, library, clock, log, name),
            kickoffs=Kickoffs(store, pipelines, asyncio.Semaphore(_KICKOFFS), new_worker),
            options=_api_options(settings, host),
            secret=bytes.fromhex(await console.secrets.secret("signing", secrets.token_hex(32))),
            name=name,
            new_name=worker_name,
            clock=clock,
            rng=rng,
            metrics=metrics,
            log=log,
        )


def _runners(
    settings: Settings,
    pipelines: Mapping[str, Pipeline],
    console: Console,
    library: FileLibrary,
    clock: Clock,
    log: Any,
    name: str,
) -> Runners:
    access = library.access
    return Runners(
        operations=OperationRunner(console, pipelines, settings.retry, worker_name, log),
        exports=ExportWriter(console, access, worker_name, clock, log),
        leftovers=FileLeftovers(console, access, name, log),
        lost_workers=LostWorkers(console.store, name, log),
    )


def _api_options(settings: Settings, host: str) -> ApiOptions:
    return ApiOptions(
        owner=settings.owner,
        host=host,
        server=settings.server,
        health=settings.health,
        max_upload_bytes=settings.files.max_upload_bytes,
        session_seconds=settings.sessions.seconds,
        backfill_enabled=settings.rules.backfill_enabled,
    )
