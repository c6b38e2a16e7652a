"""Builds the parts of a process from the settings."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.cli.served_flags import served_flags
from holdfast.configuration import Settings
from holdfast.errors import DatabaseGone, PipelineError
from holdfast.extension import Extension, installed
from holdfast.extras import require
from holdfast.features.manifest import feature_chores
from holdfast.files import FileAccess, FileStore, FolderStore, LocalFiles
from holdfast.kernel import Store
from holdfast.kernel.database.migrate import compare
from holdfast.kernel.record.discover import DiscoverLimits
from holdfast.kernel.worker.upkeep.parts import UpkeepLimits
from holdfast.kernel.worker.worker_parts import WorkerOptions
from holdfast.observe.health import Check, HealthServer
from holdfast.observe.metrics import Metrics
from holdfast.pipeline import Pipeline

T = TypeVar("T")

if TYPE_CHECKING:
    from holdfast.files.bucket import BucketStore


def metrics_of(pipelines: Iterable[Pipeline]) -> Metrics:
    """Returns the metrics of a process that runs these pipelines, including those of their
    extensions."""
    metrics = Metrics()
    for pipeline in pipelines:
        if pipeline.extension is not None:
            pipeline.metrics = declare_metrics(metrics, installed()[pipeline.extension])
    return metrics


def declare_metrics(metrics: Metrics, extension: Extension) -> Any:
    if extension.metrics is None:
        return None
    try:
        return metrics.declare(extension.name, extension.load("metrics"))
    except ValueError as error:
        raise PipelineError(
            f"the metrics of the extension {extension.name} cannot be declared: {error}",
            "Update the package or uninstall it.",
        ) from error


@contextmanager
def serving_health(
    settings: Settings, port: int | None, metrics: Metrics, checks: Mapping[str, Check]
) -> Iterator[Callable[[], None]]:
    """Serves health checks and metrics while the process runs, if a port is given. Yields a
    function to call when the process starts to drain. Must be entered in the event loop."""
    if port is None:
        yield lambda: None
        return
    server = HealthServer(
        port,
        metrics,
        checks,
        asyncio.get_running_loop(),
        options=settings.health,
    )
    try:
        yield server.drain
    finally:
        server.stop()


def store_checks(store: Store) -> dict[str, Check]:
    """Returns what every process needs to be ready: the database, with the schema of this
    version."""

    async def schema() -> str | None:
        try:
            return compare(await store.reads.schema_versions()).missing
        except DatabaseGone:
            return "unknown"

    async def database() -> str | None:
        try:
            await store.reads.kill_switches()
        except DatabaseGone:
            return "cannot be reached"
        return None

    return {"database": database, "schema": schema}


def broker_awaited() -> dict[str, Check]:
    """Returns a check for a process that waits for the broker; `broker_check` replaces it once
    connected."""

    async def broker() -> str | None:
        return "is being waited for"

    return {"broker": broker}


def table_limits(settings: Settings) -> dict[str, Any]:
    """Returns the limits of reading a table file, by the names of `TableOptions`."""
    return {
        "max_cell_bytes": settings.items.max_input_bytes,
        "max_row_bytes": settings.items.max_input_bytes,
        "max_workbook_bytes": settings.tables.max_workbook_bytes,
        "max_bad_rows": settings.tables.max_bad_rows,
    }


def discover_limits(settings: Settings) -> DiscoverLimits:
    return DiscoverLimits(
        max_input_bytes=settings.items.max_input_bytes,
        max_failures=settings.retry.max_attempts_error,
        retry_base_seconds=settings.retry.base_seconds,
        ingest=settings.ingest,
    )


def worker_options(settings: Settings, only_job: int | None, until_idle: bool) -> WorkerOptions:
    return WorkerOptions(
        items=settings.items,
        flush=settings.flush,
        files=file_access(settings),
        tables=table_limits(settings),
        discover=discover_limits(settings),
        claim=settings.claim,
        concurrency=settings.concurrency,
        retry=settings.retry,
        http=settings.http,
        rules=settings.rules,
        upkeep=upkeep_limits(settings),
        drain_seconds=settings.drain_seconds,
        flags=partial(served_flags, settings),
        only_job=only_job,
        until_idle=until_idle,
        chores=feature_chores(settings),
    )


def file_access(settings: Settings) -> FileAccess:
    folder = settings.data_dir / "temporary"
    return FileAccess(file_store(settings), LocalFiles(folder), settings.files.max_upload_bytes)


def file_store(settings: Settings) -> FileStore:
    files = settings.files
    if files.bucket:
        return open_bucket(settings, files.bucket, files.prefix or "")
    return FolderStore(settings.data_dir / "files")


def open_bucket(settings: Settings, bucket: str, prefix: str = "") -> BucketStore:
    require("s3", f"the bucket {bucket}")
    # Only here: commands that use no bucket should not import its library.
    from holdfast.files.bucket import BucketStore

    return BucketStore(settings.s3, bucket, prefix)


def upkeep_limits(settings: Settings) -> UpkeepLimits:
    return UpkeepLimits(
        sweep_seconds=settings.sweep_seconds,
        lost_after_seconds=settings.claim.lock_floor_seconds,
    )
