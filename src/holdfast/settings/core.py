"""Every setting of the core: its name, alias, default, bounds and help, in one class."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from holdfast.database_url import default_database_url, mask_password
from holdfast.settings.declared import declared_by, setting
from holdfast.settings.groups import ExtensionSettings, no_environment

MIB = 1024 * 1024
HOUR_MS = 3_600_000
DAY_SECONDS = 86_400


def _user_agent() -> str:
    return f"holdfast/{version('holdfast')} (+contact unset)"


def _worker_count() -> int:
    return min(os.cpu_count() or 1, 4)


@dataclass(frozen=True, slots=True)
class Settings:
    database_url: str = setting(
        default_database_url(Path(".holdfast")),
        "The database: an SQLite file, or a PostgreSQL server.",
        kind="database URL",
        secret=True,
        shown="`holdfast.db` under `HOLDFAST_DATA_DIR`",
    )
    data_dir: Path = setting(  # noqa: RUF009 - it makes a field, as `field` does
        Path(".holdfast"), "The folder for the database file and other state."
    )
    owner: str = setting("local", "Whose the jobs are that are made here.")

    broker_url: str | None = setting(
        None,
        "The RabbitMQ server that carries messages between processes.",
        kind="broker URL",
        secret=True,
        shown="none: workers poll the database",
    )
    queue_prefix: str = setting(
        "holdfast",
        "What the names of our exchanges and queues begin with.",
        kind="queue prefix",
    )
    max_message_bytes: int = setting(
        64 * 1024, "Largest message that is read; a larger one is a dead letter.", 1024, 16 * MIB
    )

    ingest_min_rows: int = setting(
        256, "Rows of the first batch of an ingest, and the fewest.", 1, 1_000_000, aliased=True
    )
    ingest_max_rows: int = setting(
        20_000, "Most rows that one batch writes.", 1, 1_000_000, aliased=True
    )
    ingest_max_batch_bytes: int = setting(
        8 * MIB, "Most bytes that one batch writes.", 1024, 1024 * MIB, aliased=True
    )
    db_p50_ms: int = setting(
        150, "Batches stop doubling when half of them take longer.", 1, HOUR_MS, aliased=True
    )
    db_p95_ms: int = setting(
        600, "Batches shrink when one in twenty takes longer.", 1, HOUR_MS, aliased=True
    )
    pool_wait_ms: int = setting(
        50, "Batches stop doubling when a connection is waited for longer.", 1, HOUR_MS
    )

    worker_target_slice_ms: int = setting(
        5000, "How long a slice of work should take.", 10, HOUR_MS, aliased=True
    )
    claim_min: int = setting(1, "Fewest items that one claim asks for.", 1, 1_000_000, aliased=True)
    claim_max: int = setting(2000, "Most items that one claim takes.", 1, 1_000_000, aliased=True)
    safety_factor: float = setting(
        0.7, "Share of the target slice that a claim is sized for.", 0.01, 1, aliased=True
    )
    lock_floor_ms: int = setting(30_000, "Shortest lease.", 100, 24 * HOUR_MS, aliased=True)
    lock_cap_ms: int = setting(900_000, "Longest lease.", 100, 24 * HOUR_MS, aliased=True)
    concurrency_min: int = setting(1, "Fewest items in work at once in a worker.", 1, 10_000)
    concurrency_max: int = setting(64, "Most items in work at once in a worker.", 1, 10_000)
    concurrency_start: int = setting(
        8,
        "Items in work at once before anything was measured.",
        1,
        10_000,
        shown="8, kept between `HOLDFAST_CONCURRENCY_MIN` and `_MAX`",
    )
    threads: int = setting(32, "Threads of a worker for plain `def` pipelines.", 1, 1000)
    flush_items: int = setting(1000, "Outcomes are settled when so many are ready.", 1, 1_000_000)
    flush_ms: int = setting(500, "Outcomes are settled when one has waited so long.", 1, HOUR_MS)
    item_timeout_seconds: float = setting(
        60, "Longest time for one item, where its pipeline sets none.", 0.01, DAY_SECONDS
    )
    drain_seconds: float = setting(
        1.5, "On stopping, how long running items may still finish.", 0, 3600
    )

    max_attempts_error: int = setting(
        5, "Tries of an item whose errors deserve another.", 1, 1000, aliased=True
    )
    max_attempts_not_found: int = setting(
        2, "Tries of an item that is not found.", 1, 1000, aliased=True
    )
    retry_soon_base_seconds: float = setting(
        1, "First backoff after a hiccup (network, time-out).", 0, DAY_SECONDS
    )
    retry_soon_cap_seconds: float = setting(60, "Longest backoff after a hiccup.", 0, DAY_SECONDS)
    retry_later_base_seconds: float = setting(
        60, "First backoff from a state that changes slowly.", 0, DAY_SECONDS
    )
    retry_later_cap_seconds: float = setting(
        3600, "Longest backoff from a state that changes slowly.", 0, DAY_SECONDS
    )
    retry_throttle_base_seconds: float = setting(
        5, "First backoff when throttled without being told how long.", 0, DAY_SECONDS
    )
    retry_throttle_cap_seconds: float = setting(
        600, "Longest backoff when throttled without being told how long.", 0, DAY_SECONDS
    )
    retry_not_found_base_seconds: float = setting(
        5, "First backoff of an item that is not found.", 0, DAY_SECONDS
    )
    retry_not_found_cap_seconds: float = setting(
        60, "Longest backoff of an item that is not found.", 0, DAY_SECONDS
    )

    max_input_bytes: int = setting(10 * MIB, "Largest input of one item.", 1, 1024 * MIB)
    max_result_bytes: int = setting(10 * MIB, "Largest result of one item.", 1, 1024 * MIB)
    max_workbook_bytes: int = setting(
        1_000_000_000,
        "Most memory for reading one XLSX workbook, and the most it may unpack to. The API reads"
        " up to four at once.",
        200_000_000,
        64 * 1024 * MIB,
    )

    backfill_enabled: bool = setting(
        True, "Off stops every backfill, as the kill switch does.", aliased=True
    )
    max_urls_per_run: int | None = setting(
        None, "Most new items of one job.", 1, 10**12, aliased=True, shown="no limit"
    )
    max_urls_per_source: int | None = setting(
        None,
        "Most new items of one source in one job.",
        1,
        10**12,
        aliased=True,
        shown="no limit",
    )
    sweep_seconds: float = setting(
        5, "How often expired leases and unfinished jobs are looked for.", 0.01, 3600
    )
    discover_timeout_seconds: float = setting(
        300, "Longest that a source may take for one page.", 0.1, DAY_SECONDS
    )
    stale_stream_seconds: float = setting(
        120, "A stream that did not move for so long is taken up again.", 1, DAY_SECONDS
    )
    worker_lost_seconds: float = setting(
        30, "A worker that gave no sign for so long counts as lost.", 1, DAY_SECONDS
    )
    message_lost_seconds: float = setting(
        60, "A message that nobody took for so long is sent again.", 1, DAY_SECONDS
    )
    relay_poll_seconds: float = setting(
        0.2, "How often a relay looks into the outbox when nothing woke it.", 0.01, 3600
    )
    owner_slices: int | None = setting(
        None, "Most workers that work for one owner at once.", 1, 10_000, shown="no limit"
    )
    backlog_max_items: int | None = setting(
        None,
        "With more open items than these, sources wait and uploads are refused.",
        1,
        10**12,
        shown="no limit",
    )
    backlog_max_seconds: float | None = setting(
        None,
        "The same when the oldest open item has waited for longer.",
        1,
        365 * DAY_SECONDS,
        shown="no limit",
    )
    pool_size: int = setting(6, "Database connections of one process.", 1, 1000)
    workers: int = setting(
        _worker_count, "Worker processes.", 1, 256, shown="as many as CPUs, at most 4"
    )
    pressure_threshold: float = setting(
        0.8, "Claims shrink when processor or memory is pressed harder than this.", 0.01, 0.99
    )
    claim_warmup: int = setting(64, "Items of a claim before anything was measured.", 1, 1_000_000)
    claim_max_bytes: int = setting(
        32 * MIB, "Most bytes of inputs that one claim reads.", 1024, 1024 * MIB
    )
    lease_margin: float = setting(2.0, "Leases last so many times what a claim takes.", 1, 100)
    error_spike_share: float = setting(
        0.2, "Share of failing tries above which retries are spaced out.", 0.01, 0.99
    )
    retry_spacing_max: float = setting(
        8.0, "Most times that retry delays grow while errors spike.", 1, 1000
    )

    http_user_agent: str = setting(
        _user_agent,
        "How `ctx.http` names itself; say here how to reach you.",
        kind="header",
        shown="`holdfast/VERSION (+contact unset)`",
    )
    http_timeout_seconds: float = setting(30, "Longest wait for an answer.", 0.01, 3600)
    http_connect_timeout_seconds: float = setting(10, "Longest wait for a connection.", 0.01, 3600)
    http_max_bytes: int = setting(20 * MIB, "Largest body that is read.", 1, 1024 * MIB)
    http_max_redirects: int = setting(5, "Most redirects that are followed.", 0, 50)
    http_obey_robots: bool = setting(True, "Ask robots.txt before fetching.")
    http_spacing_seconds: float = setting(
        0, "Least time between two requests to a host, over all workers.", 0, DAY_SECONDS
    )
    http_jitter_seconds: float = setting(
        0, "Random time of up to so much is added to the spacing.", 0, DAY_SECONDS
    )
    http_concurrency: int = setting(
        8, "Most requests to a host at once, over all workers.", 1, 10_000
    )
    gate_max_wait_seconds: float = setting(
        2, "An item that has to wait longer for a gate gives its place up.", 0, 3600
    )
    allow_private_addresses: bool = setting(
        False, "Let `ctx.http` reach loopback and private addresses."
    )

    db_ingest_enabled: bool = setting(
        True, "Off refuses uploads over HTTP, as the flag `ingest` does.", aliased=True
    )
    pending_enabled: bool = setting(
        True, "Off hides the list of everything pending, as the flag `pending` does.", aliased=True
    )
    max_upload_bytes: int = setting(
        2048 * MIB, "Largest file that is taken over HTTP.", 1, 1024 * 1024 * MIB
    )
    max_body_bytes: int = setting(MIB, "Largest other body that is taken.", 1024, 1024 * MIB)
    file_roots: tuple[Path, ...] = setting(
        (),
        "Folders whose files the API may make jobs of, parted by `:`.",
        kind="folders",
        shown="none",
    )
    kickoff_max_seconds: float = setting(30, "Longest slice of work within one request.", 0.1, 3600)
    session_hours: float = setting(168, "How long a login lasts.", 0.01, 24 * 366)
    trusted_proxies: str = setting(
        "",
        "Addresses of proxies, parted by commas, whose X-Forwarded headers are believed.",
        shown="none",
    )

    log_level: str = setting(
        "warning", "The least that is logged.", choices=("debug", "info", "warning", "error")
    )
    log_format: str = setting(
        "auto",
        "Lines for people or for machines; `auto` is `console` on a terminal, else `json`.",
        choices=("auto", "console", "json"),
    )

    health_port: int | None = setting(
        None,
        "Port of `/healthz`, `/readyz` and `/metrics`; 0 takes a free one.",
        0,
        65535,
        shown="not served",
    )
    health_host: str = setting(
        "127.0.0.1", "Address of `/healthz`, `/readyz` and `/metrics`; in a container `0.0.0.0`."
    )
    health_stall_seconds: float = setting(
        30, "A process whose event loop did not answer for so long is not alive.", 1, 3600
    )
    otlp_endpoint: str | None = setting(
        None,
        "Where traces are sent (OTLP over HTTP).",
        kind="web address",
        alias="OTEL_EXPORTER_OTLP_ENDPOINT",
        shown="not sent",
    )
    service_name: str = setting(
        "holdfast", "How this process is named in traces.", alias="OTEL_SERVICE_NAME"
    )

    extensions: ExtensionSettings = field(default_factory=no_environment, repr=False, compare=False)

    def of(self, extension: str) -> Any:
        """The settings of an extension: its options, read when they are first wanted."""
        return self.extensions.read(extension, self)

    @property
    def masked_database_url(self) -> str:
        return mask_password(self.database_url)

    @property
    def masked_broker_url(self) -> str | None:
        return None if self.broker_url is None else mask_password(self.broker_url)

    @property
    def db_p50_seconds(self) -> float:
        return self.db_p50_ms / 1000

    @property
    def db_p95_seconds(self) -> float:
        return self.db_p95_ms / 1000

    @property
    def pool_wait_seconds(self) -> float:
        return self.pool_wait_ms / 1000

    @property
    def target_slice_seconds(self) -> float:
        return self.worker_target_slice_ms / 1000

    @property
    def lock_floor_seconds(self) -> float:
        return self.lock_floor_ms / 1000

    @property
    def lock_cap_seconds(self) -> float:
        return self.lock_cap_ms / 1000

    @property
    def flush_seconds(self) -> float:
        return self.flush_ms / 1000


SETTINGS = declared_by(Settings)

#: pairs of which the first must not be above the second
ORDERED = (
    ("ingest_min_rows", "ingest_max_rows"),
    ("db_p50_ms", "db_p95_ms"),
    ("claim_min", "claim_max"),
    ("lock_floor_ms", "lock_cap_ms"),
    ("concurrency_min", "concurrency_max"),
    ("concurrency_min", "concurrency_start"),
    ("concurrency_start", "concurrency_max"),
    ("retry_soon_base_seconds", "retry_soon_cap_seconds"),
    ("retry_later_base_seconds", "retry_later_cap_seconds"),
    ("retry_throttle_base_seconds", "retry_throttle_cap_seconds"),
    ("retry_not_found_base_seconds", "retry_not_found_cap_seconds"),
    ("http_connect_timeout_seconds", "http_timeout_seconds"),
)


#: first setting under a heading of the reference page -> the heading
HEADINGS = {
    "database_url": "Database and files",
    "broker_url": "Broker",
    "ingest_min_rows": "Ingest",
    "worker_target_slice_ms": "Work",
    "max_attempts_error": "Retries",
    "max_input_bytes": "Sizes",
    "backfill_enabled": "Backfills and caps",
    "sweep_seconds": "Processes and upkeep",
    "http_user_agent": "HTTP",
    "db_ingest_enabled": "Serving",
    "log_level": "Logs",
    "health_port": "Health, metrics and traces",
}
