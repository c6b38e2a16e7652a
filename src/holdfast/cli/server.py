"""The HTTP server. Imported only by processes that serve HTTP."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import resource
import signal
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from types import FrameType
from typing import cast

import uvicorn
from fastapi import FastAPI

from holdfast.cli.api_parts import opened_parts
from holdfast.cli.composition import serving_health, store_checks
from holdfast.cli.output import errors
from holdfast.cli.serve import BACKLOG, listen
from holdfast.cli.signals import stop_with_supervisor
from holdfast.cli.supervisor import reap_dead_workers
from holdfast.configuration import Settings
from holdfast.errors import UserError
from holdfast.extension import installed
from holdfast.features.console import open_console
from holdfast.features.jobs.live import Feed
from holdfast.kernel import Store
from holdfast.pipeline import Pipeline
from holdfast.server.api_app import create_app
from holdfast.server.connections import ConnectionLimits, Connections, GuardedConnection
from holdfast.server.dependencies import Parts
from holdfast.server.navigation import PagePack
from holdfast.server.site import add_pages

_DRAIN_SECONDS = 5
_KEEP_ALIVE_SECONDS = 5
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
        await reap_dead_workers(parts.store)
        app = create_app(parts)
        add_pages(app, page_packs(pipelines))
        connections = Connections(_connection_limits(), parts.clock, parts.log)
        server = Server(parts.feed, _config(app, settings, connections), connections)
        checks = store_checks(parts.store) | {"server": server.check}
        health = serving_health(settings, settings.health.port, parts.metrics, checks)
        with listen(host, port) as listener, health as server.drain:
            await _announce(parts, host, listener.getsockname()[1])
            await server.serve(sockets=[listener])


def page_packs(pipelines: Mapping[str, Pipeline]) -> list[PagePack]:
    """Returns the pages of the extensions whose pipelines are served."""
    served = [installed()[item.extension] for item in pipelines.values() if item.extension]
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

    def __init__(self, feed: Feed, config: uvicorn.Config, connections: Connections) -> None:
        super().__init__(config)
        self._feed = feed
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
        proxy_headers=bool(settings.server.trusted_proxies),
        forwarded_allow_ips=settings.server.trusted_proxies or None,
        backlog=BACKLOG,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_DRAIN_SECONDS,
    )


def _connection_limits() -> ConnectionLimits:
    # The other half is for files, the database, children, and a burst of connections that are
    # accepted before any of them can be refused.
    open_files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    limits = ConnectionLimits()
    return replace(limits, connections=max(1, min(limits.connections, open_files // 2)))


async def _refuse_unprotected(store: Store, host: str) -> None:
    """Refuses to serve other hosts unless people have to log in, and can."""
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
