"""Opens what every command needs: settings, schema, store.

It is the only place that reads the environment."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from importlib.util import find_spec
from time import sleep
from typing import Any, TypeVar

import structlog

from holdfast.cli.output import errors
from holdfast.clock import system_random
from holdfast.configuration import Settings, load_settings
from holdfast.errors import DatabaseGone, UserError
from holdfast.extras import require
from holdfast.kernel import Store, open_store
from holdfast.kernel.database.driver import Fault, no_fault
from holdfast.kernel.database.migrate import require_current, status, upgrade
from holdfast.kernel.worker.patience import FIRST_SECONDS, LONGEST_SECONDS, backoff
from holdfast.observe import tracing
from holdfast.observe.health import WaitingServer
from holdfast.observe.log import configure
from holdfast.observe.metrics import Metrics
from holdfast.urls import sqlite_file

T = TypeVar("T")


def settings_from_environment() -> Settings:
    settings = load_settings(os.environ)
    configure(settings.log_level, settings.log_format)
    require_extras(settings)
    tracing.configure(settings.otlp_endpoint, settings.service_name)
    return settings


def require_extras(settings: Settings) -> None:
    """Raises an error if a setting needs a part of the program that is not installed."""
    if settings.otlp_endpoint is not None:
        require("otel", "HOLDFAST_OTLP_ENDPOINT")
    if settings.broker_url is not None:
        require("rabbitmq", "HOLDFAST_BROKER_URL")
    if settings.files.bucket:
        require("s3", "HOLDFAST_FILES_BUCKET")


def run_async(main: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine, on uvloop where it is installed (the extra `fast`)."""
    if find_spec("uvloop") is None:
        return asyncio.run(main)
    import uvloop

    return uvloop.run(main)


def require_broker(settings: Settings) -> str:
    """Returns the broker's URL; raises an error that says how to set one."""
    if settings.broker_url is None:
        raise UserError(
            "no broker is configured",
            "Set HOLDFAST_BROKER_URL, e.g. amqp://user:password@host:5672/, or do without: "
            "workers then poll the database.",
        )
    return settings.broker_url


def ensure_schema(settings: Settings, pipelines: Iterable[str | None] = ()) -> None:
    """Creates the tables of the core and of these pipelines, where they are missing. An SQLite file
    is upgraded too.

    On a server, only `holdfast migrate up` upgrades tables that are there."""
    url, schema = settings.database_url, settings.database_schema
    found = status(url, schema=schema)
    missing = found.unused(pipelines)
    if found.up_to_date and not missing:
        return
    if not found.is_empty and (found.newer or sqlite_file(url) is None):
        require_current(url, schema=schema)
    upgrade(url, schema=schema, only_used=True, using=missing)


def wait_for_schema(
    settings: Settings, health_port: int | None, pipelines: Iterable[str | None] = ()
) -> None:
    """Calls `ensure_schema` for the processes of a fleet, which may start before their database.

    Until it is there, the health port says that they are not ready."""
    log = structlog.get_logger()
    with ExitStack() as stack:
        for attempt, seconds in enumerate(backoff(system_random(), FIRST_SECONDS, LONGEST_SECONDS)):
            try:
                ensure_schema(settings, pipelines)
                return
            except DatabaseGone as error:
                if attempt == 0:
                    errors.print(f"Waiting for the database, which cannot be reached: {error}")
                    stack.enter_context(_saying_why(settings.health.host, health_port))
                log.warning("database.gone", error=str(error))
            sleep(seconds)


@contextmanager
def _saying_why(host: str, port: int | None) -> Iterator[None]:
    if port is None:
        yield
        return
    server = WaitingServer(host, port, "database", "cannot be reached")
    try:
        yield
    finally:
        server.stop()


def ready_settings(pipeline: str | None = None) -> Settings:
    """Returns the settings, for commands that need an existing database with the right schema, and
    tables of the pipeline if they read them."""
    settings = settings_from_environment()
    file = sqlite_file(settings.database_url)
    if file is not None and not file.exists():
        raise UserError(
            f"there is no database at {file} yet",
            "The first command that writes creates it, such as `holdfast run` or `holdfast up`. "
            "If you have one, change to its folder, or set HOLDFAST_DATABASE_URL or "
            "HOLDFAST_DATA_DIR.",
        )
    url, schema = settings.database_url, settings.database_schema
    require_current(url, schema=schema)
    if pipeline is not None and status(url, schema=schema).unused([pipeline]):
        raise UserError(
            f"{pipeline} was not used with this database yet",
            "The first command that uses it creates its tables; so does "
            f"`holdfast migrate up {pipeline}`.",
        )
    return settings


@asynccontextmanager
async def opened_store(settings: Settings, metrics: Metrics | None = None) -> AsyncIterator[Store]:
    def observe(verb: str, seconds: float, waited: float) -> None:
        if metrics is not None:
            metrics.database_seconds.labels(verb).observe(seconds)
            metrics.pool_wait_seconds.observe(waited)

    store = await open_store(
        settings.database_url,
        schema=settings.database_schema,
        pool_size=settings.pool_size,
        default_gate=settings.http.gate,
        rules=settings.rules,
        fault=_fault(),
        observe=observe,
    )
    try:
        yield store
    finally:
        await store.close()


def _fault() -> Fault:
    """Returns the fault hook of tests: HOLDFAST_FAULT=verb/query@n kills this process at the n-th
    such write."""
    setting = os.environ.get("HOLDFAST_FAULT")
    if not setting:
        return no_fault
    point, _, number = setting.partition("@")
    left = [int(number or 1)]

    def fault(verb: str, query: str) -> None:
        if f"{verb}/{query}" == point:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return fault
