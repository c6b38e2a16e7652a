"""`holdfast work`: one worker, or several under a supervisor, until stopped."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import traceback
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial

import structlog
import typer

from holdfast.cli.arguments import HEALTH_PORT, PIPELINES
from holdfast.cli.composition import (
    broker_awaited,
    metrics_of,
    serving_health,
    store_checks,
    worker_options,
)
from holdfast.cli.opening import opened_store, run_async, settings_from_environment, wait_for_schema
from holdfast.cli.output import errors, print_error
from holdfast.cli.pipelines import load_all
from holdfast.cli.served_flags import extensions_of
from holdfast.cli.signals import STOP_SIGNALS, run_until_signalled, stop_with_supervisor
from holdfast.cli.supervisor import Supervisor, WorkerChild, WorkerSetup, worker_name
from holdfast.cli.waiting import WaitedFor, Waiting
from holdfast.clock import SystemClock, system_random
from holdfast.configuration import Settings
from holdfast.errors import DatabaseGone, UserError
from holdfast.kernel import Store
from holdfast.kernel.worker.worker import Worker
from holdfast.kernel.worker.worker_parts import WorkerParts
from holdfast.observe import tracing
from holdfast.observe.metrics import Metrics
from holdfast.pipeline import Pipeline
from holdfast.tasks import end_tasks


def register(app: typer.Typer) -> None:
    app.command("work")(work)


@dataclass(frozen=True, slots=True)
class _Work:
    """What the command line requests."""

    name: str
    job: int | None
    until_idle: bool
    supervised: bool
    health_port: int | None


def work(
    pipelines: list[str] = PIPELINES,
    processes: int = typer.Option(
        1, "--processes", min=1, max=256, help="Number of worker processes."
    ),
    job: int | None = typer.Option(None, "--job", help="Work on this job only."),
    until_idle: bool = typer.Option(
        False,
        "--until-idle",
        help="Exit when no job of these pipelines has anything left to do. Items that are due later"
        " count: it waits for them.",
    ),
    health_port: int | None = HEALTH_PORT,
    name: str | None = typer.Option(None, "--name", hidden=True),
    supervised: bool = typer.Option(False, "--supervised", hidden=True),
) -> None:
    """Process the running jobs of the given pipelines, all of them at once.

    Start it as often as you like, on every host that can reach the database. With
    HOLDFAST_BROKER_URL set, it also follows orders of other programs.

    With several --processes, a supervisor restarts those that die; the processes answer on the
    ports after the health port.

    Ctrl-C or SIGTERM stops it cleanly: running items get a moment to finish, the others are
    returned without counting as attempts.
    """
    settings = settings_from_environment()
    loaded = load_all(pipelines, settings)
    # Several supervised workers share one environment, but cannot share its port.
    if health_port is None and not supervised:
        health_port = settings.health.port
    wait_for_schema(settings, health_port, extensions_of(loaded))
    if processes > 1:
        setup = WorkerSetup(_arguments(pipelines, job), until_idle, health_port=health_port)
        run_async(_supervise(settings, setup, processes, list(loaded), job))
        return
    if not supervised:
        names = ", ".join(sorted(loaded))
        errors.print(f"Working on {names}. Press Ctrl-C to stop.", markup=False)
    collect_garbage_less_often()
    wanted = _Work(name or worker_name(), job, until_idle, supervised, health_port)
    run_async(_work_and_exit(settings, loaded, wanted))


def _arguments(pipelines: Sequence[str], job: int | None) -> list[str]:
    return [*pipelines] if job is None else [*pipelines, "--job", str(job)]


async def _supervise(
    settings: Settings, setup: WorkerSetup, count: int, pipelines: list[str], job: int | None
) -> None:
    log, metrics = structlog.get_logger(), Metrics()
    async with opened_store(settings, metrics) as store:
        children = setup.children(store, count, log)
        supervisor = Supervisor(children, settings.drain_seconds)
        port, checks = setup.health_port, store_checks(store)
        own = partial(_names, children)
        waiting = _waiting(settings, store, pipelines, job, own) if setup.until_idle else None
        with serving_health(settings, port, metrics, checks) as drain:
            message = f"Running {count} worker processes."
            async with _saying(waiting):
                await run_until_signalled(supervisor.run(), drain, supervisor.stop, message)


def _names(children: Sequence[WorkerChild]) -> list[str]:
    return [child.name for child in children]


def collect_garbage_less_often() -> None:
    """Makes the garbage collector run less often.

    A worker creates and drops rows by the thousand, and hardly any reference cycles. With Python's
    defaults, looking for cycles took an eighth of a worker's time in a backfill."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


async def _work_and_exit(
    settings: Settings, pipelines: Mapping[str, Pipeline], wanted: _Work
) -> None:
    """Processes items, then exits from inside the event loop: an item may hold a thread that
    nothing can stop, or a coroutine that ignores its cancellation."""
    code = 0
    try:
        await _work(settings, pipelines, wanted)
    except UserError as error:
        print_error(error.message, error.hint)
        code = 1
    except Exception:
        traceback.print_exc()
        code = 1
    tracing.stop()
    if not wanted.supervised and not code:
        errors.print("Stopped.")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


async def _work(settings: Settings, pipelines: Mapping[str, Pipeline], wanted: _Work) -> None:
    # A worker for one job needs no messages.
    listens = settings.broker_url is not None and wanted.job is None
    metrics, log = metrics_of(pipelines.values()), structlog.get_logger()
    options = worker_options(settings, wanted.job, wanted.until_idle)
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(opened_store(settings, metrics))
        parts = WorkerParts(
            store, wanted.name, settings.owner, SystemClock(), system_random(), metrics, log
        )
        worker = Worker(parts, pipelines, options)
        checks = store_checks(store) | (broker_awaited() if listens else {})
        # Before connecting to the broker, which may take long: the process is healthy until then.
        health = serving_health(settings, wanted.health_port, metrics, checks)
        drain = stack.enter_context(health)
        if listens:
            from holdfast.cli.broker_composition import taking_messages

            taking = taking_messages(settings, store, pipelines, worker, checks, metrics, log)
            await stack.enter_async_context(taking)
        _stop_on_request(wanted.supervised, drain, worker)
        says = wanted.until_idle and not wanted.supervised
        waiting = _waiting(settings, store, pipelines, wanted.job, lambda: [wanted.name])
        async with _saying(waiting if says else None):
            await worker.run()


def _waiting(
    settings: Settings,
    store: Store,
    pipelines: Collection[str],
    job: int | None,
    own: Callable[[], Collection[str]],
) -> Waiting:
    enabled = settings.rules.backfill_enabled
    return Waiting(WaitedFor(store, pipelines, job, enabled, own), SystemClock())


@asynccontextmanager
async def _saying(waiting: Waiting | None) -> AsyncIterator[None]:
    """Says what keeps the worker from ending, and at the end what it did not wait for."""
    if waiting is None:
        yield
        return
    showing = asyncio.create_task(waiting.show())
    try:
        yield
        with suppress(DatabaseGone):
            await waiting.show_paused()
    finally:
        await end_tasks([showing])


def _stop_on_request(supervised: bool, drain: Callable[[], None], worker: Worker) -> None:
    def stop() -> None:
        drain()
        worker.stop()

    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, stop)
    if supervised:
        stop_with_supervisor(loop, stop)
