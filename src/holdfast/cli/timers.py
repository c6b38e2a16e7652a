"""`holdfast timers`: upkeep and schedules, without working on items."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import structlog
import typer

from holdfast.cli.arguments import HEALTH_PORT, PIPELINES
from holdfast.cli.composition import (
    metrics_of,
    serving_health,
    store_checks,
    upkeep_limits,
)
from holdfast.cli.opening import opened_store, run_async, settings_from_environment, wait_for_schema
from holdfast.cli.pipelines import load_all
from holdfast.cli.served_flags import extensions_of
from holdfast.cli.signals import run_until_signalled, stop_with_supervisor
from holdfast.cli.supervisor import worker_name
from holdfast.clock import SystemClock
from holdfast.configuration import Settings
from holdfast.features.manifest import feature_chores
from holdfast.kernel.jobs.control import Control
from holdfast.kernel.worker.chores import begin
from holdfast.kernel.worker.presence import present
from holdfast.kernel.worker.upkeep import chores
from holdfast.kernel.worker.upkeep.parts import UpkeepParts
from holdfast.kernel.worker.upkeep.tend import Tending
from holdfast.pipeline import Pipeline
from holdfast.tasks import end_tasks


def register(app: typer.Typer) -> None:
    app.command("timers")(timers)


def timers(
    pipelines: list[str] = PIPELINES,
    health_port: int | None = HEALTH_PORT,
    supervised: bool = typer.Option(False, "--supervised", hidden=True),
) -> None:
    """Run upkeep and start scheduled jobs, without processing items.

    Workers do this too, so nothing depends on this command; it keeps upkeep running where workers
    come and go. However many processes run, one does the upkeep at a time.
    """
    settings = settings_from_environment()
    loaded = load_all(pipelines, settings)
    # When supervised, it shares its environment with the server, but cannot share its port.
    default = None if supervised else settings.health.port
    port = default if health_port is None else health_port
    wait_for_schema(settings, port, extensions_of(loaded))
    run_async(_run_upkeep(settings, loaded, port, supervised))


async def _run_upkeep(
    settings: Settings, pipelines: Mapping[str, Pipeline], port: int | None, supervised: bool
) -> None:
    log, metrics, ended = structlog.get_logger(), metrics_of(pipelines.values()), asyncio.Event()
    async with opened_store(settings, metrics) as store:
        holder = f"timers-{worker_name()}"
        parts = UpkeepParts(
            store,
            Control(store, settings.owner, log),
            pipelines,
            upkeep_limits(settings),
            holder,
            metrics,
            log,
            Tending(store, pipelines),
            feature_chores(settings),
        )

        async def stop() -> None:
            ended.set()

        async def run() -> None:
            async with present(store, holder):
                tasks = begin(chores(parts), SystemClock(), log)
                await ended.wait()
                await end_tasks(tasks)

        if supervised:
            stop_with_supervisor(asyncio.get_running_loop(), ended.set)
        with serving_health(settings, port, metrics, store_checks(store)) as drain:
            await run_until_signalled(run(), drain, stop, None if supervised else "Running timers.")
