"""`holdfast work`: one worker, until it is stopped."""

from __future__ import annotations

import asyncio
import gc
import os
import secrets
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from contextlib import AsyncExitStack

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
    worker_options,
)
from holdfast.cli.loading import load_all
from holdfast.cli.output import errors, tell
from holdfast.clock import SystemClock, system_random
from holdfast.engine.worker import Worker, WorkerParts
from holdfast.errors import UserError
from holdfast.observe import tracing
from holdfast.pipeline import Pipeline
from holdfast.settings import Settings


def register(app: typer.Typer) -> None:
    app.command("work")(work)


def work(
    pipelines: list[str] = typer.Argument(
        ...,
        metavar="PIPELINE …",
        help="What it runs: files (FILE.py:name for one of many) or built-in pipelines.",
    ),
    job: int | None = typer.Option(None, "--job", help="Work on this job only."),
    until_idle: bool = typer.Option(
        False, "--until-idle", help="Stop when no job of these pipelines is running any more."
    ),
    health_port: int | None = typer.Option(
        None,
        "--health-port",
        min=0,
        max=65535,
        help="Serve /healthz, /readyz and /metrics on this port; else HOLDFAST_HEALTH_PORT.",
    ),
    name: str | None = typer.Option(None, "--name", hidden=True),
    supervised: bool = typer.Option(False, "--supervised", hidden=True),
) -> None:
    """Run a worker: it takes the running jobs of the given pipelines in turn.

    Start as many as you like, on as many hosts as reach the database. SIGTERM or Ctrl-C stops it
    cleanly: what runs may end for a moment, the rest goes back uncharged.
    """
    settings = settings_from_environment()
    loaded = load_all(pipelines, settings)
    ensure_schema(settings)
    if not supervised:
        errors.print(f"Working for {', '.join(sorted(loaded))}. Ctrl-C stops.", markup=False)
    # Several supervised workers share one environment, but cannot share its port.
    if health_port is None and not supervised:
        health_port = settings.health_port
    name = name or worker_name()
    _seek_cycles_seldom()
    run_async(_work_and_exit(settings, loaded, health_port, name, job, until_idle, supervised))


def _seek_cycles_seldom() -> None:
    """A worker makes and drops rows by the thousand, and hardly a cycle of references. Looked for
    at Python's own pace, they took an eighth of a worker's time in a backfill."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


async def _work_and_exit(
    settings: Settings,
    pipelines: dict[str, Pipeline],
    health_port: int | None,
    name: str,
    job: int | None,
    until_idle: bool,
    supervised: bool,
) -> None:
    """Ends the process from inside the event loop: an item may hold a thread that nothing can
    stop, or a coroutine that does not let itself be cancelled."""
    code = 0
    try:
        await _work(settings, pipelines, health_port, name, job, until_idle, supervised)
    except UserError as error:
        tell(error.message, error.hint)
        code = 1
    except Exception:
        traceback.print_exc()
        code = 1
    tracing.stop()
    if not supervised and not code:
        errors.print("Stopped.")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def worker_name() -> str:
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"


async def _work(
    settings: Settings,
    pipelines: dict[str, Pipeline],
    health_port: int | None,
    name: str,
    job: int | None,
    until_idle: bool,
    supervised: bool,
) -> None:
    # A worker for one job needs no messages: it polls, and nobody else is told of its work.
    listens = settings.broker_url is not None and job is None
    metrics, log = metrics_of(pipelines.values()), structlog.get_logger()
    options = worker_options(settings, job, until_idle)
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(opened_store(settings, metrics, listens))
        checks, turns = store_checks(store) | (broker_awaited() if listens else {}), None
        # Before the broker, which may be waited for: the process is well meanwhile.
        drain = stack.enter_context(serving_health(settings, health_port, metrics, checks))
        if listens:
            from holdfast.cli.broker_parts import broker_check, broker_turns

            hearing = broker_turns(settings, store, pipelines, options, metrics, log)
            turns, broker = await stack.enter_async_context(hearing)
            checks |= broker_check(broker)
        parts = WorkerParts(
            store, name, settings.owner, SystemClock(), system_random(), metrics, log
        )
        worker = Worker(parts, pipelines, options, turns)
        _stop_on_demand(supervised, drain, worker)
        await worker.run()


def _stop_on_demand(supervised: bool, drain: Callable[[], None], worker: Worker) -> None:
    def stop() -> None:
        drain()
        worker.stop()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    if supervised:
        stop_with_supervisor(loop, stop)


def stop_with_supervisor(loop: asyncio.AbstractEventLoop, stop: Callable[[], None]) -> None:
    """The supervisor holds the other end of standard input: its end is our end too."""

    def ended() -> None:
        if not os.read(0, 1024):
            loop.remove_reader(0)
            stop()

    loop.add_reader(0, ended)
