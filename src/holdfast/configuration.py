"""Assembles every setting of the core from the parts that declare them, and reads them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, cast

from holdfast.errors import PipelineError
from holdfast.features.accounts.accounts import SessionOptions
from holdfast.features.accounts.quotas import Amounts
from holdfast.features.deletion.retention_rows import Policies
from holdfast.files.options import FileOptions, S3Connection
from holdfast.http import HttpOptions
from holdfast.kernel.database.names import DEFAULT_SCHEMA
from holdfast.kernel.jobs.admission import JobRules
from holdfast.kernel.pace.concurrency import ConcurrencyBounds
from holdfast.kernel.pace.controllers import ClaimBounds, IngestBounds
from holdfast.kernel.pace.retry import RetryPolicy
from holdfast.kernel.record.execute import ItemOptions
from holdfast.kernel.record.settle import FlushLimits
from holdfast.messaging.signing import MessageTrust
from holdfast.observe.health import HealthOptions
from holdfast.server.options import ServerOptions
from holdfast.settings.declared import (
    PREFIX,
    Setting,
    declared_by,
    nearest,
    read_setting,
    setting,
)
from holdfast.settings.groups import (
    ExtensionSettings,
    Group,
    Groups,
    installed_groups,
    no_environment,
    settings_error,
)
from holdfast.tables.types import TableOptions
from holdfast.urls import default_database_url, mask_password


def _worker_count() -> int:
    return min(os.cpu_count() or 1, 4)


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a process: its own, and those of its parts."""

    database_url: str = setting(
        default_database_url(Path(".holdfast")),
        "URL of the database: an SQLite file or a PostgreSQL server.",
        kind="database URL",
        secret=True,
        shown="`holdfast.db` under `HOLDFAST_DATA_DIR`",
    )
    database_schema: str = setting(
        DEFAULT_SCHEMA,
        "Schema that has Holdfast's tables on PostgreSQL; on SQLite their names begin with it.",
        kind="schema",
    )
    data_dir: Path = setting(  # noqa: RUF009 - it returns a field, as `field` does
        Path(".holdfast"), "Folder for the database file and other state."
    )
    owner: str = setting("local", "Owner recorded on jobs created by this process.")
    pool_size: int = setting(
        6,
        "Maximum number of database connections per process.",
        1,
        1000,
        alias="DATABASE_POOL_SIZE",
    )

    broker_url: str | None = setting(
        None,
        "URL of the RabbitMQ server that carries messages from and to other programs.",
        kind="broker URL",
        secret=True,
        shown="none: no messages",
    )
    queue_prefix: str = setting(
        "holdfast",
        "Prefix of the names of exchanges and queues.",
        kind="queue prefix",
    )

    workers: int = setting(
        _worker_count,
        "Worker processes of `holdfast run` and `holdfast up`.",
        1,
        256,
        shown="number of CPUs, at most 4",
    )
    drain_seconds: float = setting(
        1.5, "Time that running items get to finish when a worker stops.", 0, 3600
    )
    sweep_seconds: float = setting(
        5, "Interval between searches for unfinished jobs and for what no worker holds.", 0.01, 3600
    )

    log_level: str = setting(
        "warning", "Lowest level that is logged.", choices=("debug", "info", "warning", "error")
    )
    log_format: str = setting(
        "auto",
        "Lines for people or machines; `auto` means `console` on a terminal, otherwise `json`.",
        choices=("auto", "console", "json"),
    )
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

    ingest: IngestBounds = field(default_factory=IngestBounds, metadata={"heading": "Ingest"})
    claim: ClaimBounds = field(default_factory=ClaimBounds, metadata={"heading": "Work"})
    concurrency: ConcurrencyBounds = field(
        default_factory=ConcurrencyBounds, metadata={"heading": "Work"}
    )
    flush: FlushLimits = field(default_factory=FlushLimits, metadata={"heading": "Work"})
    items: ItemOptions = field(default_factory=ItemOptions, metadata={"heading": "Items"})
    tables: TableOptions = field(default_factory=TableOptions, metadata={"heading": "Items"})
    retry: RetryPolicy = field(default_factory=RetryPolicy, metadata={"heading": "Retries"})
    rules: JobRules = field(default_factory=JobRules, metadata={"heading": "Backfills and caps"})
    http: HttpOptions = field(default_factory=HttpOptions, metadata={"heading": "HTTP"})
    server: ServerOptions = field(default_factory=ServerOptions, metadata={"heading": "Serving"})
    sessions: SessionOptions = field(
        default_factory=SessionOptions, metadata={"heading": "Serving"}
    )
    quotas: Amounts = field(default_factory=Amounts, metadata={"heading": "Serving"})
    messages: MessageTrust = field(default_factory=MessageTrust, metadata={"heading": "Serving"})
    files: FileOptions = field(default_factory=FileOptions, metadata={"heading": "Files"})
    s3: S3Connection = field(default_factory=S3Connection, metadata={"heading": "Files"})
    health: HealthOptions = field(
        default_factory=HealthOptions, metadata={"heading": "Health and metrics"}
    )
    retention: Policies = field(default_factory=Policies, metadata={"heading": "Retention"})
    extensions: ExtensionSettings = field(default_factory=no_environment, repr=False, compare=False)

    def value(self, name: str) -> Any:
        """Returns the value of a setting by its name without the prefix, in lower case."""
        return next(each for each in SETTINGS if each.bare.lower() == name).value_in(self)

    def of(self, extension: str) -> Any:
        """Returns the settings of an extension, read when they are first needed."""
        return self.extensions.read(extension, self)

    @property
    def masked_database_url(self) -> str:
        return mask_password(self.database_url)

    @property
    def masked_broker_url(self) -> str | None:
        return None if self.broker_url is None else mask_password(self.broker_url)


#: The parts that declare settings, by their fields.
PARTS: dict[str, type[Any]] = {
    each.name: cast("type[Any]", each.default_factory)
    for each in fields(Settings)
    if "heading" in each.metadata
}

SETTINGS = declared_by(Settings) + tuple(
    each for part, kind in PARTS.items() for each in declared_by(kind, part=part)
)

#: in each pair, the first must not be greater than the second
ORDERED = (
    ("INGEST_MIN_ROWS", "INGEST_MAX_ROWS"),
    ("DB_P50_MS", "DB_P95_MS"),
    ("CLAIM_MIN", "CLAIM_MAX"),
    ("LOCK_FLOOR_MS", "LOCK_CAP_MS"),
)


#: first setting under a heading of the reference page -> the heading
HEADINGS = {
    "database_url": "Database and folder",
    "broker_url": "Broker",
    "workers": "Processes",
    "log_level": "Logs and traces",
}


def sections() -> dict[str, list[Setting]]:
    """Returns the settings under each heading of the reference page."""
    found: dict[str, list[Setting]] = {}
    heading = ""
    for each in SETTINGS:
        heading = HEADINGS.get(each.field, heading) if not each.part else _heading_of(each.part)
        found.setdefault(heading, []).append(each)
    return found


def _heading_of(part: str) -> str:
    return str(Settings.__dataclass_fields__[part].metadata["heading"])


#: Read by the fault points of the tests; not a setting, but not refused either.
TEST_NAMES = frozenset({"HOLDFAST_FAULT"})
_CORE_NAMES = tuple(each.name for each in SETTINGS)
#: How similar two names must be to suggest one for the other. Settings of extensions must be more
#: similar, because they often differ only in the name of the extension.
_ALIKE, _VERY_ALIKE = 0.5, 0.75


def load_settings(environ: Mapping[str, str], groups: Groups = installed_groups) -> Settings:
    """Reads the settings of this environment, or raises one SettingsError that lists everything
    wrong.

    The groups of extensions are looked up only if the environment has a prefixed name that the core
    does not know; the others are read by `Settings.of`."""
    given: dict[str, dict[str, Any]] = {part: {} for part in ("", *PARTS)}
    faulty: set[str] = set()
    problems: list[str] = []
    for each in SETTINGS:
        values, complaints = read_setting(each, environ)
        if complaints:
            faulty.add(each.bare)
        elif values:
            given[each.part][each.field] = values[0]
        problems += complaints
    settings = _assembled(given, ExtensionSettings(environ, groups))
    problems = _of_extensions(environ, groups, settings) + problems
    problems += _order_problems(settings, faulty)
    if problems:
        raise settings_error(problems)
    return settings


def _assembled(given: dict[str, dict[str, Any]], extensions: ExtensionSettings) -> Settings:
    own = given.pop("")
    if "data_dir" in own:
        own.setdefault("database_url", default_database_url(own["data_dir"]))
    parts = {part: PARTS[part](**values) for part, values in given.items()}
    return Settings(**own, **parts, extensions=extensions)


def every_setting(groups: Mapping[str, Group]) -> dict[str, tuple[Setting, ...]]:
    """Returns the settings of the core, under the name "", and of each extension.

    No two share a name."""
    declared = {"": SETTINGS} | {name: group.settings for name, group in groups.items()}
    owners: dict[str, str] = {}
    for owner, settings in declared.items():
        for name in (name for each in settings for name in each.names):
            if name in owners:
                both = " and ".join(each or "the core" for each in (owners[name], owner))
                raise PipelineError(f"{name} is a setting of both {both}", "Rename one of them.")
            owners[name] = owner
    return declared


def _of_extensions(environ: Mapping[str, str], groups: Groups, settings: Settings) -> list[str]:
    """Returns what is wrong with the prefixed names that the core does not know."""
    known = TEST_NAMES.union(_CORE_NAMES)
    foreign = sorted(name for name in environ if name.startswith(PREFIX) and name not in known)
    if not foreign:
        return []
    every = groups()
    wanted = [
        group for group in every.values() if any(name.startswith(group.prefix) for name in foreign)
    ]
    declared = {each.name for group in wanted for each in group.settings}
    problems = [_refusal(name, every) for name in foreign if name not in declared]
    for group in wanted:
        problems += group.read(environ, settings)[1]
    return problems


def _refusal(name: str, groups: Mapping[str, Group]) -> str:
    owners = [group for group in groups.values() if name.startswith(group.prefix)]
    if owners:
        owner = max(owners, key=lambda group: len(group.prefix))
        suggestion = nearest(name, [each.name for each in owner.settings], _ALIKE)
        return f"{name} is not a setting of the extension {owner.name}{_question(suggestion)}"
    every = [*_CORE_NAMES, *(each.name for group in groups.values() for each in group.settings)]
    suggestion = nearest(name, every, _VERY_ALIKE) or nearest(name, [*_CORE_NAMES], _ALIKE)
    if suggestion:
        return f"{name} is not a setting{_question(suggestion)}"
    names = ", ".join(sorted(groups)) or "none"
    return f"{name} is not a setting; no installed extension has it (installed: {names})"


def _question(suggestion: str | None) -> str:
    return f"; did you mean {suggestion}?" if suggestion else ""


def _order_problems(settings: Settings, faulty: set[str]) -> list[str]:
    named = {each.bare: each for each in SETTINGS}
    return [
        f"{named[low].name} ({named[low].written_in(settings)}) must not be greater than "
        f"{named[high].name} ({named[high].written_in(settings)})"
        for low, high in ORDERED
        if not {low, high} & faulty
        and named[low].value_in(settings) > named[high].value_in(settings)
    ]
