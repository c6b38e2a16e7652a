"""The HTTP server and its parts. Imported only by processes that serve HTTP."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import resource
import secrets
import signal
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from types import FrameType
from typing import Any, cast

import structlog
import uvicorn
from fastapi import FastAPI

from holdfast.api.app import create_app
from holdfast.api.connections import ConnectionLimits, Connections, GuardedConnection
from holdfast.api.dependencies import ApiOptions, Parts, ServedFlag
from holdfast.api.flags import FLAGS
from holdfast.api.live import Feed
from holdfast.api.middleware import hosts_of
from holdfast.cli.composition import (
    backlog_bounds,
    discover_limits,
    ingest_bounds,
    metrics_of,
    opened_store,
    serving_health,
    store_checks,
    worker_options,
)
from holdfast.cli.output import errors
from holdfast.cli.people_parts import accounts_of, limits_of, second_factors_of
from holdfast.cli.serve import BACKLOG, listen
from holdfast.cli.signals import stop_with_supervisor
from holdfast.cli.supervisor import reap_dead_workers, worker_name
from holdfast.clock import SystemClock, system_random
from holdfast.console import open_console
from holdfast.console.operation_runner import AttemptLimits
from holdfast.engine.pace.backpressure import Backpressure
from holdfast.engine.record.discover import WalkParts
from holdfast.engine.record.uploads import UploadParts
from holdfast.engine.worker import Worker, WorkerParts
from holdfast.errors import UserError
from holdfast.extension import FlagSpec, installed
from holdfast.observe.health import MetricsAccess
from holdfast.pipeline import Pipeline
from holdfast.settings import SETTINGS, Group, Setting, Settings
from holdfast.store import Store
from holdfast.web.app import add_pages
from holdfast.web.navigation import PagePack

_DRAIN_SECONDS = 5
#: Uvicorn ticks ten times a second.
_SWEEP_TICKS = 10


async def serve(
    settings: Settings,
    pipelines: Mapping[str, Pipeline],
    host: str,
    port: int,
    supervised: bool = False,
) -> None:
    if supervised:
        stop_with_supervisor(asyncio.get_running_loop(), _stop_this_process)
    async with opened_parts(settings, pipelines, host) as parts:
        await _refuse_unprotected(parts.store, host)
        await reap_dead_workers(parts.store, settings.worker_lost_seconds * 10)
        app = create_app(parts)
        add_pages(app, page_packs(pipelines))
        connections = Connections(_connection_limits(settings), parts.clock, parts.log)
        server = Server(app, _config(app, settings, connections), connections)
        checks = store_checks(parts.store) | {"server": server.check}
        health = serving_health(settings, settings.health_port, parts.metrics, checks)
        with listen(host, port) as listener, health as server.drain:
            await _announce(parts, host, listener.getsockname()[1])
            await server.serve(sockets=[listener])


def page_packs(pipelines: Mapping[str, Pipeline]) -> list[PagePack]:
    """The pages of the extensions whose pipelines are served."""
    served = [installed()[each.extension] for each in pipelines.values() if each.extension]
    return [extension.load("web") for extension in served if extension.web]


def _stop_this_process() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


async def _announce(parts: Parts, host: str, port: int) -> None:
    shown = f"[{host}]" if ":" in host else host
    url = f"http://{shown}:{port}/"
    errors.print(f"Holdfast is running at {url} . Press Ctrl-C to stop.", markup=False)
    link = await parts.accounts.first_admin()
    if link is not None:
        errors.print(f"Log in (once) with: {url}login/{link}", markup=False)


class Server(uvicorn.Server):
    """Reports that it is ready only while it listens and is not stopping. On stopping it closes
    the live pages, which would otherwise keep it waiting."""

    drain: Callable[[], None]

    def __init__(self, app: FastAPI, config: uvicorn.Config, connections: Connections) -> None:
        super().__init__(config)
        self._feed: Feed = app.state.feed
        self._connections = connections

    async def on_tick(self, counter: int) -> bool:
        if counter % _SWEEP_TICKS == 0:
            self._connections.sweep()
        return await super().on_tick(counter)

    async def check(self) -> str | None:
        return None if self.started else "is starting"

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.drain()
        self._feed.close()
        # Uvicorn's own handler raises the signal again at the end, which would cut off what
        # follows: closing the store, sending the last traces.
        self.force_exit = self.should_exit
        self.should_exit = True


def _config(app: FastAPI, settings: Settings, connections: Connections) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=cast("type[asyncio.Protocol]", partial(GuardedConnection, connections)),
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=settings.trusted_proxies or None,
        backlog=BACKLOG,
        timeout_keep_alive=settings.keep_alive_seconds,
        timeout_graceful_shutdown=_DRAIN_SECONDS,
    )


def _connection_limits(settings: Settings) -> ConnectionLimits:
    # The other half is for files, the database, children, and a burst of connections that are
    # accepted before any of them can be refused.
    open_files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return ConnectionLimits(
        connections=max(1, min(settings.max_connections, open_files // 2)),
        head_seconds=settings.head_timeout_seconds,
        progress_seconds=settings.progress_seconds,
        bytes_per_second=settings.progress_bytes,
    )


@asynccontextmanager
async def opened_parts(
    settings: Settings, pipelines: Mapping[str, Pipeline], host: str = "127.0.0.1"
) -> AsyncIterator[Parts]:
    """Everything that the API needs, built from the settings."""
    metrics = metrics_of(pipelines.values())
    async with opened_store(settings, metrics) as store:
        console = open_console(store, limits_of(settings))
        clock, rng, log = SystemClock(), system_random(), structlog.get_logger()

        def new_worker(job_id: int) -> Worker:
            options = worker_options(settings, job_id, until_idle=True)
            name, owner = worker_name(), settings.owner
            parts = WorkerParts(store, name, owner, clock, rng, metrics, log)
            return Worker(parts, pipelines, options)

        walk = WalkParts(store, discover_limits(settings), clock, rng, metrics, log)
        uploads = UploadParts(walk, ingest_bounds(settings))
        yield Parts(
            store=store,
            console=console,
            pipelines=pipelines,
            accounts=accounts_of(console, settings, clock),
            second_factors=second_factors_of(console, clock),
            options=_api_options(settings, host, served_flags(settings, pipelines)),
            files=settings.data_dir / "files",
            secret=bytes.fromhex(await console.secrets.secret("signing", secrets.token_hex(32))),
            uploads=uploads,
            new_worker=new_worker,
            backpressure=Backpressure(store, backlog_bounds(settings), clock, metrics),
            new_name=worker_name,
            clock=clock,
            rng=rng,
            metrics=metrics,
            log=log,
        )


def _api_options(settings: Settings, host: str, flags: Sequence[ServedFlag]) -> ApiOptions:
    return ApiOptions(
        allowed_hosts=hosts_of(settings.allowed_hosts, host),
        https=settings.https,
        hsts_seconds=settings.hsts_seconds,
        metrics_access=MetricsAccess(settings.metrics_token, settings.metrics_open),
        owner=settings.owner,
        max_upload_bytes=settings.max_upload_bytes,
        max_body_bytes=settings.max_body_bytes,
        max_input_bytes=settings.max_input_bytes,
        max_workbook_bytes=settings.max_workbook_bytes,
        file_roots=settings.file_roots,
        kickoff_max_seconds=settings.kickoff_max_seconds,
        session_seconds=settings.session_hours * 3600.0,
        worker_lost_seconds=settings.worker_lost_seconds,
        backfill_enabled=settings.backfill_enabled,
        attempt_limits=AttemptLimits(settings.max_attempts_error, settings.max_attempts_not_found),
        flags={flag.name: flag for flag in flags},
    )


def served_flags(settings: Settings, pipelines: Mapping[str, Pipeline]) -> list[ServedFlag]:
    """The flags of the core and of the extensions whose pipelines are served."""
    flags = [_served(each, settings, {s.field: s for s in SETTINGS}) for each in FLAGS]
    for name in [each.extension for each in pipelines.values() if each.extension]:
        extension = installed()[name]
        declared = {each.field: each for each in Group(extension).settings}
        flags += [_served(each, settings.of(name), declared) for each in extension.flags]
    return flags


def _served(flag: FlagSpec, group: Any, declared: Mapping[str, Setting]) -> ServedFlag:
    if flag.setting is None:
        return ServedFlag(flag.name, flag.help, None, True)
    setting = declared[flag.setting]
    name = setting.also or setting.name
    return ServedFlag(flag.name, flag.help, name, bool(getattr(group, flag.setting)))


async def _refuse_unprotected(store: Store, host: str) -> None:
    """Serves other hosts only if people have to log in, and can."""
    if _is_loopback(host):
        return
    users = await open_console(store).people.users()
    if not any(user.has_password and not user.disabled for user in users):
        raise UserError(
            f"{host} can be reached from other hosts, and no account has a password",
            "Create one first: holdfast user add NAME --role admin",
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
