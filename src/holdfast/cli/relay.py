"""`holdfast relay`: sends messages from the outbox to the broker."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import structlog
import typer

from holdfast.cli.arguments import HEALTH_PORT
from holdfast.cli.composition import broker_awaited, serving_health, store_checks
from holdfast.cli.opening import (
    opened_store,
    require_broker,
    run_async,
    settings_from_environment,
    wait_for_schema,
)
from holdfast.cli.signals import run_until_signalled, stop_with_supervisor
from holdfast.clock import SystemClock, system_random
from holdfast.configuration import Settings
from holdfast.kernel.worker.chores import Chore, begin
from holdfast.observe.metrics import Metrics
from holdfast.tasks import end_tasks, raise_failure

_DEPTH_SECONDS = 5.0


def register(app: typer.Typer) -> None:
    app.command("relay")(relay)


def relay(
    health_port: int | None = HEALTH_PORT,
    supervised: bool = typer.Option(False, "--supervised", hidden=True),
) -> None:
    """Send the messages in the outbox to the broker, and store its dead letters.

    It keeps a message in the broker for each job with work, by which workers can be scaled. Any
    number may run; one at a time sends what is in the outbox, in order. Needs
    HOLDFAST_BROKER_URL.
    """
    settings = settings_from_environment()
    # When supervised, it shares its environment with the server, but cannot share its port.
    default = None if supervised else settings.health.port
    port = default if health_port is None else health_port
    require_broker(settings)
    wait_for_schema(settings, port)
    run_async(_relay(settings, port, supervised))


async def _relay(settings: Settings, port: int | None, supervised: bool) -> None:
    from holdfast.cli import broker_composition as parts
    from holdfast.messaging.relay import Relay

    log = structlog.get_logger()
    metrics = Metrics()
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(opened_store(settings, metrics))
        checks = store_checks(store) | broker_awaited()
        # Before connecting to the broker, which may take long: the process is healthy until then.
        drain = stack.enter_context(serving_health(settings, port, metrics, checks))
        broker = await stack.enter_async_context(parts.opened_broker(settings, log))
        checks |= parts.broker_check(broker)
        relaying = Relay(store, broker, system_random(), metrics, log)
        depths = Chore("depths", _DEPTH_SECONDS, lambda: parts.read_depths(broker, metrics))
        beside = [
            asyncio.create_task(parts.keep_dead_letters(broker, store, log)),
            *begin([depths], SystemClock(), log),
            asyncio.create_task(parts.send_nudges(settings, broker, store, metrics, log)),
        ]

        for task in beside:
            # A relay that cannot store dead letters must not appear to be healthy.
            task.add_done_callback(lambda _: relaying.stop())

        async def stop() -> None:
            relaying.stop()

        if supervised:
            stop_with_supervisor(asyncio.get_running_loop(), relaying.stop)
        ready = None if supervised else "Relaying."
        await run_until_signalled(relaying.run(), drain, stop, ready)
        await end_tasks(beside)
        raise_failure(beside)
