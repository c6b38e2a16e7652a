"""Builds the parts of a process from the settings."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.cli.opening import backlog_bounds
from holdfast.cli.served_flags import served_flags
from holdfast.console import Console
from holdfast.console.deletion import Deletions
from holdfast.engine.deletion import Deleter
from holdfast.engine.pace.concurrency import ConcurrencyBounds
from holdfast.engine.pace.controllers import ClaimBounds, IngestBounds, SpacingBounds
from holdfast.engine.pace.retry import RetryPolicy
from holdfast.engine.record.discover import DiscoverLimits
from holdfast.engine.record.execute import ExecuteLimits
from holdfast.engine.record.running import WorkLimits
from holdfast.engine.record.settle import FlushLimits
from holdfast.engine.retention import Retention
from holdfast.engine.upkeep import UpkeepLimits
from holdfast.engine.worker import WorkerOptions
from holdfast.errors import DatabaseGone, PipelineError
from holdfast.extension import Extension, installed
from holdfast.files import FileAccess, FileStore, FolderStore, LocalFiles
from holdfast.http import HttpOptions
from holdfast.observe.health import Check, HealthServer, MetricsAccess
from holdfast.observe.metrics import Metrics
from holdfast.pipeline import Backoff, Pipeline
from holdfast.settings import Settings
from holdfast.store import Store
from holdfast.store.migrate import compare
from holdfast.store.retention import Policies

T = TypeVar("T")

if TYPE_CHECKING:
    from holdfast.files.bucket import BucketStore


def metrics_of(pipelines: Iterable[Pipeline]) -> Metrics:
    """The metrics of a process that runs these pipelines, including those of their extensions."""
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
        access=MetricsAccess(settings.metrics_token, settings.metrics_open),
        host=settings.health_host,
        stall_seconds=settings.health_stall_seconds,
    )
    try:
        yield server.drain
    finally:
        server.stop()


def store_checks(store: Store) -> dict[str, Check]:
    """What every process needs to be ready: the database, with the schema of this version."""

    async def schema() -> str | None:
        try:
            return compare(await store.reads.schema_revisions()).missing
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
    """For a process that waits for the broker; replaced by `broker_check` when it is connected."""

    async def broker() -> str | None:
        return "is being waited for"

    return {"broker": broker}


def table_limits(settings: Settings) -> dict[str, Any]:
    """The limits of reading a table file, by the names of `TableOptions`."""
    return {
        "max_cell_bytes": settings.max_input_bytes,
        "max_row_bytes": settings.max_input_bytes,
        "max_workbook_bytes": settings.max_workbook_bytes,
        "max_unpacked_bytes": settings.max_unpacked_bytes,
        "max_bad_rows": settings.max_bad_rows,
        "max_bad_rows_share": settings.max_bad_rows_share,
    }


def ingest_bounds(settings: Settings) -> IngestBounds:
    return IngestBounds(
        min_rows=settings.ingest_min_rows,
        max_rows=settings.ingest_max_rows,
        max_bytes=settings.ingest_max_batch_bytes,
        p50_seconds=settings.db_p50_seconds,
        p95_seconds=settings.db_p95_seconds,
    )


def discover_limits(settings: Settings) -> DiscoverLimits:
    return DiscoverLimits(
        max_input_bytes=settings.max_input_bytes,
        max_failures=settings.max_attempts_error,
        page_seconds=settings.discover_timeout_seconds,
        retry_cap_seconds=settings.retry_soon_cap_seconds,
        ingest=ingest_bounds(settings),
    )


def worker_options(settings: Settings, only_job: int | None, until_idle: bool) -> WorkerOptions:
    return WorkerOptions(
        work=WorkLimits(
            slice_seconds=settings.target_slice_seconds,
            max_claim_bytes=settings.claim_max_bytes,
            flush=FlushLimits(settings.flush_items, settings.flush_seconds),
        ),
        execute=ExecuteLimits(
            timeout_seconds=settings.item_timeout_seconds,
            max_result_bytes=settings.max_result_bytes,
        ),
        files=file_access(settings),
        tables=table_limits(settings),
        threads=settings.threads,
        discover=discover_limits(settings),
        claim=_claim_bounds(settings),
        concurrency=ConcurrencyBounds(
            minimum=settings.concurrency_min,
            maximum=settings.concurrency_max,
            start=settings.concurrency_start,
        ),
        spacing=SpacingBounds(
            spike_share=settings.error_spike_share,
            max_multiplier=settings.retry_spacing_max,
        ),
        retry=_retry_policy(settings),
        http=_http_options(settings),
        gate_max_wait_seconds=settings.gate_max_wait_seconds,
        backlog=backlog_bounds(settings),
        upkeep=upkeep_limits(settings),
        drain_seconds=settings.drain_seconds,
        backfill_enabled=settings.backfill_enabled,
        flags=partial(served_flags, settings),
        policies=policies_of(settings),
        only_job=only_job,
        until_idle=until_idle,
    )


def file_access(settings: Settings) -> FileAccess:
    folder = settings.data_dir / "temporary"
    return FileAccess(_file_store(settings), LocalFiles(folder), settings.max_upload_bytes)


def _file_store(settings: Settings) -> FileStore:
    if settings.files_bucket:
        return open_bucket(settings, settings.files_bucket, settings.files_prefix or "")
    return FolderStore(settings.data_dir / "files")


def open_bucket(settings: Settings, bucket: str, prefix: str = "") -> BucketStore:
    # Only here: commands that use no bucket should not import its library.
    from holdfast.files.bucket import BucketStore, S3Connection

    connection = S3Connection(
        endpoint=settings.s3_endpoint,
        region=settings.s3_region or None,
        access_key_id=settings.s3_access_key_id or None,
        secret_access_key=settings.s3_secret_access_key or None,
    )
    return BucketStore(connection, bucket, prefix)


def deleter_of(settings: Settings, store: Store, log: Any) -> Deleter:
    files = _file_store(settings)
    return Deleter(store, files.delete, log, files.list)


def deletions_of(settings: Settings, console: Console, log: Any) -> Deletions:
    return Deletions(console, deleter_of(settings, console.store, log), log)


def retention_of(settings: Settings, store: Store, log: Any) -> Retention:
    return Retention(store, deleter_of(settings, store, log), policies_of(settings), log)


def policies_of(settings: Settings) -> Policies:
    return Policies(
        jobs_days=settings.retain_jobs_days,
        jobs_count=settings.retain_jobs_count,
        items_days=settings.retain_items_days,
        attempts_days=settings.retain_attempts_days,
        decisions_days=settings.retain_decisions_days,
        samples_days=settings.retain_samples_days,
        inbox_days=settings.retain_inbox_days,
        audit_days=settings.retain_audit_days,
        files_days=settings.retain_files_days,
        exports_days=settings.retain_exports_days,
    )


def upkeep_limits(settings: Settings) -> UpkeepLimits:
    return UpkeepLimits(
        sweep_seconds=settings.sweep_seconds,
        lost_after_seconds=settings.lock_floor_seconds,
    )


def _claim_bounds(settings: Settings) -> ClaimBounds:
    return ClaimBounds(
        min_items=settings.claim_min,
        max_items=settings.claim_max,
        warmup_items=settings.claim_warmup,
        target_slice_seconds=settings.target_slice_seconds,
        safety=settings.safety_factor,
        pressure_threshold=settings.pressure_threshold,
        lock_floor_seconds=settings.lock_floor_seconds,
        lock_cap_seconds=settings.lock_cap_seconds,
    )


def _retry_policy(settings: Settings) -> RetryPolicy:
    return RetryPolicy(
        max_attempts_error=settings.max_attempts_error,
        max_attempts_not_found=settings.max_attempts_not_found,
        soon=_backoff(settings.retry_soon_base_seconds, settings.retry_soon_cap_seconds),
        later=_backoff(settings.retry_later_base_seconds, settings.retry_later_cap_seconds),
        throttle=_backoff(
            settings.retry_throttle_base_seconds, settings.retry_throttle_cap_seconds
        ),
        # Looking again at once would find the same.
        not_found=_backoff(
            settings.retry_not_found_base_seconds, settings.retry_not_found_cap_seconds, 0.5
        ),
    )


def _backoff(base: float, cap: float, jitter: float = 1.0) -> Backoff:
    """The settings are checked one by one: a cap below its base bounds it."""
    return Backoff(min(base, cap), cap, jitter)


def _http_options(settings: Settings) -> HttpOptions:
    return HttpOptions(
        user_agent=settings.http_user_agent,
        timeout_seconds=settings.http_timeout_seconds,
        connect_timeout_seconds=settings.http_connect_timeout_seconds,
        max_bytes=settings.http_max_bytes,
        max_redirects=settings.http_max_redirects,
        obey_robots=settings.http_obey_robots,
        allow_private_addresses=settings.allow_private_addresses,
    )
