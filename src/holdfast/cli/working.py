"""`holdfast work`: one worker, until it is stopped."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import socket
import sys
import traceback

import structlog
import typer

from holdfast.cli.composition import (
    ensure_schema,
    opened_store,
    run_async,
    settings_from_environment,
    worker_options,
)
from holdfast.cli.loading import load_all
from holdfast.cli.output import errors, tell
from holdfast.clock import SystemClock, system_random
from holdfast.engine.worker import Worker
from holdfast.errors import UserError
from holdfast.metrics import Metrics, MetricsServer, serve
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
    metrics_port: int | None = typer.Option(
        None,
        "--metrics-port",
        min=0,
        max=65535,
        help="Serve Prometheus metrics on this port of 127.0.0.1.",
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
    metrics = Metrics()
    server = None if metrics_port is None else serve(metrics, metrics_port)
    run_async(_work_and_exit(settings, loaded, metrics, server, name, job, until_idle, supervised))


async def _work_and_exit(
    settings: Settings,
    pipelines: dict[str, Pipeline],
    metrics: Metrics,
    server: MetricsServer | None,
    name: str | None,
    job: int | None,
    until_idle: bool,
    supervised: bool,
) -> None:
    """Ends the process from inside the event loop: an item may hold a thread that nothing can
    stop, or a coroutine that does not let itself be cancelled."""
    code = 0
    try:
        await _work(
            settings, pipelines, metrics, name or worker_name(), job, until_idle, supervised
        )
    except UserError as error:
        tell(error.message, error.hint)
        code = 1
    except Exception:
        traceback.print_exc()
        code = 1
    if server is not None:
        server.stop()
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
    metrics: Metrics,
    name: str,
    job: int | None,
    until_idle: bool,
    supervised: bool,
) -> None:
    async with opened_store(settings, metrics) as store:
        worker = Worker(
            store,
            name,
            pipelines,
            worker_options(settings, job, until_idle),
            settings.owner,
            SystemClock(),
            system_random(),
            metrics,
            structlog.get_logger(),
        )
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, worker.stop)
        if supervised:
            _stop_with_supervisor(loop, worker)
        await worker.run()


def _stop_with_supervisor(loop: asyncio.AbstractEventLoop, worker: Worker) -> None:
    """The supervisor holds the other end of standard input: its end is our end too."""

    def ended() -> None:
        if not os.read(0, 1024):
            loop.remove_reader(0)
            worker.stop()

    loop.add_reader(0, ended)
