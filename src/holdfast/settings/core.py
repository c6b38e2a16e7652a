"""Every setting of the core: its name, alias, default, bounds and help, in one class."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from holdfast.settings.declared import declared_by, setting
from holdfast.settings.groups import ExtensionSettings, no_environment
from holdfast.settings.retention import RetentionSettings
from holdfast.urls import default_database_url, mask_password

MIB = 1024 * 1024
HOUR_MS = 3_600_000
DAY_SECONDS = 86_400


def _user_agent() -> str:
    return f"holdfast/{version('holdfast')} (+contact unset)"


def _worker_count() -> int:
    return min(os.cpu_count() or 1, 4)


@dataclass(frozen=True, slots=True)
class Settings(RetentionSettings):
    database_url: str = setting(
        default_database_url(Path(".holdfast")),
        "URL of the database: an SQLite file or a PostgreSQL server.",
        kind="database URL",
        secret=True,
        shown="`holdfast.db` under `HOLDFAST_DATA_DIR`",
    )
    data_dir: Path = setting(  # noqa: RUF009 - it returns a field, as `field` does
        Path(".holdfast"), "Folder for the database file and other state."
    )
    owner: str = setting("local", "Owner recorded on jobs created by this process.")

    broker_url: str | None = setting(
        None,
        "URL of the RabbitMQ server that carries messages between processes.",
        kind="broker URL",
        secret=True,
        shown="none: workers find their work in the database",
    )
    queue_prefix: str = setting(
        "holdfast",
        "Prefix of the names of exchanges and queues.",
        kind="queue prefix",
    )
    max_message_bytes: int = setting(
        64 * 1024, "Largest message that is read; larger ones become dead letters.", 1024, 16 * MIB
    )

    ingest_min_rows: int = setting(
        256, "Rows in the first batch of an ingest, and the minimum.", 1, 1_000_000, aliased=True
    )
    ingest_max_rows: int = setting(
        20_000, "Maximum number of rows in a batch.", 1, 1_000_000, aliased=True
    )
    ingest_max_batch_bytes: int = setting(
        8 * MIB, "Maximum number of bytes in a batch.", 1024, 1024 * MIB, aliased=True
    )
    db_p50_ms: int = setting(
        150, "Batches are halved when their median time is longer.", 1, HOUR_MS, aliased=True
    )
    db_p95_ms: int = setting(
        600,
        "Batches are halved when the 95th percentile of their times is longer.",
        1,
        HOUR_MS,
        aliased=True,
    )

    worker_target_slice_ms: int = setting(
        5000, "Target duration of a slice of work.", 10, HOUR_MS, aliased=True
    )
    claim_min: int = setting(1, "Minimum number of items in a claim.", 1, 1_000_000, aliased=True)
    claim_max: int = setting(
        2000, "Maximum number of items in a claim.", 1, 1_000_000, aliased=True
    )
    safety_factor: float = setting(
        0.7, "Share of the target slice that a claim should fill.", 0.01, 1, aliased=True
    )
    lock_floor_ms: int = setting(
        20_000,
        "A worker without a sign of life counts as lost after twice its p95 item time, but not"
        " before this time.",
        100,
        24 * HOUR_MS,
        aliased=True,
    )
    lock_cap_ms: int = setting(
        120_000,
        "A worker that is silent for this long counts as lost, however long its items take.",
        100,
        24 * HOUR_MS,
        aliased=True,
    )
    concurrency_min: int = setting(
        1, "Minimum number of items that a worker processes at once.", 1, 10_000
    )
    concurrency_max: int = setting(
        64, "Maximum number of items that a worker processes at once.", 1, 10_000
    )
    concurrency_start: int = setting(
        8,
        "Number of items processed at once before anything is measured.",
        1,
        10_000,
        shown="8, kept between `HOLDFAST_CONCURRENCY_MIN` and `_MAX`",
    )
    threads: int = setting(32, "Threads per worker for plain `def` pipelines.", 1, 1000)
    flush_items: int = setting(1000, "Outcomes are written when this many are ready.", 1, 1_000_000)
    flush_ms: int = setting(500, "Outcomes are written when one has waited this long.", 1, HOUR_MS)
    item_timeout_seconds: float = setting(
        60, "Time limit for one item, unless its pipeline sets one.", 0.01, DAY_SECONDS
    )
    drain_seconds: float = setting(
        1.5, "Time that running items get to finish when a worker stops.", 0, 3600
    )

    max_attempts_error: int = setting(
        5, "Attempts at an item whose errors can be retried.", 1, 1000, aliased=True
    )
    max_attempts_not_found: int = setting(
        2, "Attempts at an item that is not found.", 1, 1000, aliased=True
    )
    retry_soon_base_seconds: float = setting(
        1, "First delay before retrying a temporary error (network, timeout).", 0, DAY_SECONDS
    )
    retry_soon_cap_seconds: float = setting(
        60, "Longest delay before retrying a temporary error.", 0, DAY_SECONDS
    )
    retry_later_base_seconds: float = setting(
        60, "First delay before retrying an error that takes time to resolve.", 0, DAY_SECONDS
    )
    retry_later_cap_seconds: float = setting(
        3600, "Longest delay before retrying an error that takes time to resolve.", 0, DAY_SECONDS
    )
    retry_throttle_base_seconds: float = setting(
        5, "First delay when throttled without a Retry-After.", 0, DAY_SECONDS
    )
    retry_throttle_cap_seconds: float = setting(
        600, "Longest delay when throttled without a Retry-After.", 0, DAY_SECONDS
    )
    retry_not_found_base_seconds: float = setting(
        5, "First delay before retrying an item that is not found.", 0, DAY_SECONDS
    )
    retry_not_found_cap_seconds: float = setting(
        60, "Longest delay before retrying an item that is not found.", 0, DAY_SECONDS
    )

    max_input_bytes: int = setting(10 * MIB, "Largest input of one item.", 1, 1024 * MIB)
    max_result_bytes: int = setting(10 * MIB, "Largest result of one item.", 1, 1024 * MIB)
    max_unpacked_bytes: int = setting(
        100_000_000_000,
        "Most that a table packed with gzip, zstd or zip may unpack to. It is unpacked while it is"
        " read, not to disk.",
        1,
        10**15,
    )
    max_bad_rows: int = setting(
        1_000,
        "Most rows of one file that cannot be read. Each becomes an ERROR item; one more stops the"
        " file.",
        0,
        10**12,
    )
    max_bad_rows_share: float = setting(
        0.1, "Most rows of one file that cannot be read, as a share; ten are always allowed.", 0, 1
    )
    max_workbook_bytes: int = setting(
        1_000_000_000,
        "Maximum memory for reading one XLSX workbook, and its maximum unpacked size. The API"
        " reads up to four at once, a worker two.",
        200_000_000,
        64 * 1024 * MIB,
    )

    backfill_enabled: bool = setting(
        True,
        "`false` stops every backfill, like the kill switch, and refuses new ones.",
        aliased=True,
    )
    max_urls_per_run: int | None = setting(
        None, "Maximum number of new items in any job.", 1, 10**12, aliased=True, shown="no limit"
    )
    max_urls_per_source: int | None = setting(
        None,
        "Maximum number of new items from one source in any job.",
        1,
        10**12,
        aliased=True,
        shown="no limit",
    )
    sweep_seconds: float = setting(
        5, "Interval between searches for unfinished jobs and for what nobody holds.", 0.01, 3600
    )
    discover_timeout_seconds: float = setting(
        300, "Time limit for a source to return one page.", 0.1, DAY_SECONDS
    )
    relay_poll_seconds: float = setting(
        0.2, "Interval at which a relay checks the outbox when it is not notified.", 0.01, 3600
    )
    backlog_max_items: int | None = setting(
        None,
        "With more open items than this, sources wait and uploads are refused.",
        1,
        10**12,
        shown="no limit",
    )
    backlog_max_seconds: float | None = setting(
        None,
        "The same if the oldest open item has waited longer than this.",
        1,
        365 * DAY_SECONDS,
        shown="no limit",
    )
    pool_size: int = setting(
        6,
        "Maximum number of database connections per process.",
        1,
        1000,
        alias="DATABASE_POOL_SIZE",
    )
    workers: int = setting(
        _worker_count,
        "Worker processes of `holdfast run` and `holdfast up`.",
        1,
        256,
        shown="number of CPUs, at most 4",
    )
    pressure_threshold: float = setting(
        0.8, "Claims shrink when memory use is above this share.", 0.01, 0.99
    )
    claim_warmup: int = setting(64, "Items in a claim before anything is measured.", 1, 1_000_000)
    claim_max_bytes: int = setting(
        32 * MIB, "Maximum number of input bytes in a claim.", 1024, 1024 * MIB
    )
    error_spike_share: float = setting(
        0.2, "Share of failing attempts above which retries are delayed further.", 0.01, 0.99
    )
    retry_spacing_max: float = setting(
        8.0, "Maximum factor by which retry delays grow while errors spike.", 1, 1000
    )

    http_user_agent: str = setting(
        _user_agent,
        "User-Agent of `ctx.http`; include how to contact you.",
        kind="header",
        shown="`holdfast/VERSION (+contact unset)`",
    )
    http_timeout_seconds: float = setting(30, "Time limit for a response.", 0.01, 3600)
    http_connect_timeout_seconds: float = setting(10, "Time limit for a connection.", 0.01, 3600)
    http_max_bytes: int = setting(20 * MIB, "Largest response body that is read.", 1, 1024 * MIB)
    http_max_redirects: int = setting(5, "Maximum number of redirects that are followed.", 0, 50)
    http_obey_robots: bool = setting(True, "Obey robots.txt.")
    http_spacing_seconds: float = setting(
        0, "Minimum time between two requests to a host, across all workers.", 0, DAY_SECONDS
    )
    http_jitter_seconds: float = setting(
        0, "Maximum random time added to the spacing.", 0, DAY_SECONDS
    )
    http_concurrency: int = setting(
        8, "Maximum number of requests to a host at once, across all workers.", 1, 10_000
    )
    gate_max_wait_seconds: float = setting(
        2, "An item that has to wait longer for a gate is put back.", 0, 3600
    )
    allow_private_addresses: bool = setting(
        False, "Allow `ctx.http` to reach loopback and private addresses."
    )

    db_ingest_enabled: bool = setting(
        True, "`false` refuses uploads over HTTP, like the flag `ingest`.", aliased=True
    )
    pending_enabled: bool = setting(
        True, "`false` hides the list of pending items, like the flag `pending`.", aliased=True
    )
    max_upload_bytes: int = setting(
        2048 * MIB, "Largest file that can be uploaded over HTTP.", 1, 1024 * 1024 * MIB
    )
    max_body_bytes: int = setting(MIB, "Largest body of any other request.", 1024, 1024 * MIB)
    file_roots: tuple[Path, ...] = setting(
        (),
        "Folders with files that the API may use for jobs, separated by `:`.",
        kind="folders",
        shown="none",
    )
    kickoff_max_seconds: float = setting(
        30, "Longest slice of work within one HTTP request.", 0.1, 3600
    )
    session_hours: float = setting(168, "Hours that a login lasts.", 0.01, 24 * 366)
    session_idle_hours: float = setting(
        24, "A login ends after this many hours without use.", 0.01, 24 * 366
    )
    quota_files: int = setting(10_000, "Maximum number of stored files per owner.", 0, 10**12)
    quota_bytes: int = setting(
        100 * 1024 * MIB, "Maximum size of the files and exports of one owner, in bytes.", 0, 2**62
    )
    quota_exports: int = setting(1_000, "Maximum number of exports per owner.", 0, 10**12)
    quota_jobs: int = setting(
        1_000,
        "Maximum number of unfinished jobs per owner, counted when one is started over HTTP.",
        0,
        10**12,
    )
    quota_items: int = setting(
        100_000_000,
        "Maximum number of open items per owner, counted when a job is made over HTTP or by an"
        " adapter, or its maximum is raised over HTTP: it takes in no more than what is left; and"
        " when records are added over HTTP.",
        0,
        10**12,
    )
    quota_tokens: int = setting(50, "Maximum number of valid tokens per owner.", 0, 10**12)
    message_key: str = setting(
        "",
        "Key shared with programs that send messages; a message signed with it may name an owner.",
        secret=True,
        shown="none",
    )
    message_signatures: bool = setting(
        False, "Refuse messages that start jobs unless they are signed with `HOLDFAST_MESSAGE_KEY`."
    )
    trusted_proxies: str = setting(
        "",
        "Addresses of proxies, separated by commas, whose X-Forwarded headers are trusted.",
        shown="none",
    )
    https: bool = setting(
        False,
        "All clients use TLS, which ends at a proxy in front of this server; cookies require it.",
    )
    hsts_seconds: int = setting(
        365 * DAY_SECONDS, "How long browsers must use TLS after a first visit over TLS.", 0, 10**9
    )
    allowed_hosts: str = setting(
        "",
        "Host names that requests may use, separated by commas: `a.org`, `*.a.org`, `*` for any.",
        shown="loopback and the address it listens on",
    )
    max_connections: int = setting(
        1000,
        "Maximum number of connections at once; at most half of the limit on open files.",
        1,
        1_000_000,
    )
    head_timeout_seconds: float = setting(10, "Time limit for the head of a request.", 0.1, 3600)
    keep_alive_seconds: int = setting(5, "How long an idle connection is kept open.", 1, 3600)
    progress_seconds: float = setting(
        20, "Period over which the speed of a body is measured.", 0.1, 3600
    )
    progress_bytes: int = setting(
        512,
        "Minimum speed of a request body or of a client reading a response, in bytes a second.",
        1,
        MIB,
    )

    log_level: str = setting(
        "warning", "Lowest level that is logged.", choices=("debug", "info", "warning", "error")
    )
    log_format: str = setting(
        "auto",
        "Lines for people or machines; `auto` means `console` on a terminal, otherwise `json`.",
        choices=("auto", "console", "json"),
    )

    health_port: int | None = setting(
        None,
        "Port of `/healthz`, `/readyz` and `/metrics`; 0 picks a free one.",
        0,
        65535,
        shown="not served",
    )
    health_host: str = setting(
        "127.0.0.1",
        "Address of `/healthz`, `/readyz` and `/metrics`; use `0.0.0.0` in a container.",
    )
    health_stall_seconds: float = setting(
        30, "A process whose event loop is blocked for this long is reported as not alive.", 1, 3600
    )
    metrics_token: str = setting(
        "",
        "Token that `/metrics` requires: `Authorization: Bearer TOKEN`.",
        kind="header",
        secret=True,
        shown="none",
    )
    metrics_open: bool = setting(False, "Serve `/metrics` without a token.")
    otlp_endpoint: str | None = setting(
        None,
        "Address that traces are sent to (OTLP over HTTP).",
        kind="web address",
        alias="OTEL_EXPORTER_OTLP_ENDPOINT",
        shown="not sent",
    )
    service_name: str = setting(
        "holdfast", "Name of this process in traces.", alias="OTEL_SERVICE_NAME"
    )

    extensions: ExtensionSettings = field(default_factory=no_environment, repr=False, compare=False)

    def of(self, extension: str) -> Any:
        """The settings of an extension, read when they are first needed."""
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


_GROUPED = frozenset(RetentionSettings.__dataclass_fields__)

#: Those declared here, then those of the groups.
SETTINGS = tuple(sorted(declared_by(Settings), key=lambda each: each.field in _GROUPED))

#: in each pair, the first must not be greater than the second
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
    "database_url": "Database and folder",
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
    "files_bucket": "Files in a bucket",
    "retain_jobs_days": "Retention",
}
