"""`holdfast worker`, `relay` and `timers`: the processes of a fleet, as many of each as wanted."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import socket
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from typing import Any

import structlog
import typer

from holdfast.cli.composition import (
    broker_awaited,
    ensure_schema,
    metrics_of,
    opened_store,
    run_async,
    serving_health,
    settings_from_environment,
    store_checks,
    upkeep_limits,
)
from holdfast.cli.loading import load_all
from holdfast.cli.output import errors
from holdfast.cli.supervising import Supervisor
from holdfast.cli.working import stop_with_supervisor
from holdfast.clock import system_random
from holdfast.engine.control import Control
from holdfast.engine.upkeep import Upkeep, every
from holdfast.observe.metrics import Metrics
from holdfast.pipeline import Pipeline
from holdfast.settings import Settings
from holdfast.tasks import end_tasks, raise_failure

_DEPTH_SECONDS = 5.0
_PIPELINES = typer.Argument(
    ..., metavar="PIPELINE.py …", help="Whose pipelines it runs; FILE.py:name for one of many."
)
_HEALTH_PORT = typer.Option(
    None,
    "--health-port",
    min=0,
    max=65535,
    help="Serve /healthz, /readyz and /metrics on this port; else HOLDFAST_HEALTH_PORT.",
)


def register(app: typer.Typer) -> None:
    app.command("worker")(worker)
    app.command("relay")(relay)
    app.command("timers")(timers)


def worker(
    pipelines: list[str] = _PIPELINES,
    processes: int | None = typer.Option(
        None, "--processes", min=1, max=256, help="Worker processes; else HOLDFAST_WORKERS."
    ),
    health_port: int | None = _HEALTH_PORT,
) -> None:
    """Run several worker processes under a supervisor that starts them again when they die.

    With HOLDFAST_BROKER_URL set, each hears messages; without, it polls the database. SIGTERM
    drains: what runs may end, the rest goes back. With a health port, the processes answer on
    the ports after it.
    """
    settings = settings_from_environment()
    load_all(pipelines, settings)
    ensure_schema(settings)
    count = processes or settings.workers
    port = settings.health_port if health_port is None else health_port
    run_async(_supervise(settings, pipelines, count, port))


async def _supervise(
    settings: Settings, pipelines: list[str], count: int, port: int | None
) -> None:
    log = structlog.get_logger()
    metrics = Metrics()
    async with opened_store(settings, metrics) as store:
        supervisor = Supervisor(
            store, pipelines, count, settings.drain_seconds, None, log, health_port=port
        )
        with serving_health(settings, port, metrics, store_checks(store)) as drain:
            told = f"Running {count} worker processes."
            await _until_signalled(supervisor.run(), drain, supervisor.stop, told)


def relay(health_port: int | None = _HEALTH_PORT) -> None:
    """Send what waits in the outbox to the broker, and keep what the broker set aside.

    Run at least one, and as many as you like: each job's messages are sent by one at a time, in
    their order. Needs HOLDFAST_BROKER_URL.
    """
    settings = settings_from_environment()
    ensure_schema(settings)
    port = settings.health_port if health_port is None else health_port
    run_async(_relay(settings, port))


async def _relay(settings: Settings, port: int | None) -> None:
    from holdfast.cli import broker_parts as parts
    from holdfast.messaging.relay import Relay

    log = structlog.get_logger()
    metrics = Metrics()
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(opened_store(settings, metrics))
        checks = store_checks(store) | broker_awaited()
        # Before the broker, which may be waited for: the process is well meanwhile.
        drain = stack.enter_context(serving_health(settings, port, metrics, checks))
        broker = await stack.enter_async_context(parts.opened_broker(settings, log))
        checks |= parts.broker_check(broker)
        relaying = Relay(store, broker, settings.relay_poll_seconds, system_random(), metrics, log)
        depths = every(_DEPTH_SECONDS, lambda: parts.read_depths(broker, metrics), log, "depths")
        beside = [
            asyncio.create_task(parts.keep_dead_letters(broker, store, log)),
            asyncio.create_task(depths),
        ]

        for task in beside:
            # A relay that keeps no dead letters must not look as if it did.
            task.add_done_callback(lambda _: relaying.stop())

        async def stop() -> None:
            relaying.stop()

        await _until_signalled(relaying.run(), drain, stop, "Relaying.")
        await end_tasks(beside)
        raise_failure(beside)


def timers(
    pipelines: list[str] = _PIPELINES,
    health_port: int | None = _HEALTH_PORT,
    supervised: bool = typer.Option(False, "--supervised", hidden=True),
) -> None:
    """Sweep and fire schedules without working on items.

    Workers do this too, so that nothing depends on this command; it keeps the upkeep going where
    workers come and go. Of any number of processes, one sweeps at a time.
    """
    settings = settings_from_environment()
    loaded = load_all(pipelines, settings)
    ensure_schema(settings)
    # Supervised, it shares its environment with the server, and cannot share its port.
    given = None if supervised else settings.health_port
    port = given if health_port is None else health_port

    run_async(_keep_time(settings, loaded, port, supervised))


async def _keep_time(
    settings: Settings, pipelines: Mapping[str, Pipeline], port: int | None, supervised: bool
) -> None:
    log, metrics, ended = structlog.get_logger(), metrics_of(pipelines.values()), asyncio.Event()
    async with opened_store(settings, metrics) as store:
        holder = f"timers-{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"
        control = Control(store, settings.owner, log)
        upkeep = Upkeep(store, control, pipelines, upkeep_limits(settings), holder, metrics, log)

        async def stop() -> None:
            ended.set()

        async def run() -> None:
            loops = [asyncio.create_task(task) for task in upkeep.loops()]
            await ended.wait()
            await end_tasks(loops)
            await store.upkeep.stop_worker(holder)

        if supervised:
            stop_with_supervisor(asyncio.get_running_loop(), ended.set)
        with serving_health(settings, port, metrics, store_checks(store)) as drain:
            await _until_signalled(run(), drain, stop, None if supervised else "Keeping time.")


async def _until_signalled(
    running: Coroutine[Any, Any, None],
    drain: Callable[[], None],
    stop: Callable[[], Coroutine[Any, Any, None]],
    told: str | None,
) -> None:
    """Runs until SIGTERM or Ctrl-C, then lets `stop` bring it to its end. What is `told` is told
    when it can be stopped so."""
    stops: set[asyncio.Task[None]] = set()

    def signalled() -> None:
        drain()
        stops.add(asyncio.ensure_future(stop()))

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, signalled)
    if told:
        errors.print(f"{told} Ctrl-C stops.", markup=False)
    await running
    await asyncio.gather(*stops)
    if told:
        errors.print("Stopped.")
