"""`holdfast consume`: reads the queues of other programs, without processing items."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack

import structlog
import typer

from holdfast.cli.arguments import HEALTH_PORT, PIPELINES
from holdfast.cli.composition import broker_awaited, metrics_of, serving_health, store_checks
from holdfast.cli.opening import (
    opened_store,
    require_broker,
    run_async,
    settings_from_environment,
    wait_for_schema,
)
from holdfast.cli.pipelines import load_all
from holdfast.cli.served_flags import extensions_of
from holdfast.cli.signals import run_until_signalled
from holdfast.configuration import Settings
from holdfast.errors import UserError
from holdfast.extension import installed
from holdfast.pipeline import Pipeline


def register(app: typer.Typer) -> None:
    app.command("consume")(consume)


def consume(pipelines: list[str] = PIPELINES, health_port: int | None = HEALTH_PORT) -> None:
    """Take messages of other programs from their queues, for workers to process.

    Workers with a broker do this too. Start it where taking messages should not wait for
    processing; any number may run. Each message is acknowledged after its records are stored.
    Needs HOLDFAST_BROKER_URL.
    """
    settings = settings_from_environment()
    loaded = load_all(pipelines, settings)
    for name, pipeline in loaded.items():
        if pipeline.extension is None or installed()[pipeline.extension].consumers is None:
            raise UserError(
                f"the pipeline {name} reads no queue of other programs",
                "See `consumers` of an extension.",
            )
    port = settings.health.port if health_port is None else health_port
    require_broker(settings)
    wait_for_schema(settings, port, extensions_of(loaded))
    run_async(_consume(settings, loaded, port))


async def _consume(settings: Settings, pipelines: Mapping[str, Pipeline], port: int | None) -> None:
    from holdfast.cli import broker_composition as parts

    log, metrics, ended = structlog.get_logger(), metrics_of(pipelines.values()), asyncio.Event()
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(opened_store(settings, metrics))
        checks = store_checks(store) | broker_awaited()
        # Before connecting to the broker, which may take long: the process is healthy until then.
        drain = stack.enter_context(serving_health(settings, port, metrics, checks))
        broker = await stack.enter_async_context(parts.opened_broker(settings, log))
        checks |= parts.broker_check(broker)
        reading = parts.foreign_queues(settings, store, pipelines, broker, metrics, log)
        await stack.enter_async_context(reading)

        async def run() -> None:
            await ended.wait()

        async def stop() -> None:
            ended.set()

        await run_until_signalled(run(), drain, stop, "Consuming.")
