"""Builds what talks to the broker from the settings; imported only if a broker is set."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

from holdfast.clock import SystemClock, system_random
from holdfast.engine.adding import Adding
from holdfast.engine.control import Control
from holdfast.engine.worker import WorkerOptions
from holdfast.errors import BrokerGone, UserError
from holdfast.messaging.broker import Broker, open_broker
from holdfast.messaging.broker_turns import BrokerTurns, TurnLimits, TurnParts
from holdfast.messaging.dead import keep_dead_messages
from holdfast.messaging.item_adds import ItemAdds
from holdfast.messaging.job_starts import JobStarts
from holdfast.messaging.signing import MessageTrust
from holdfast.messaging.topology import DEAD_QUEUE, QUEUES
from holdfast.observe.health import Check
from holdfast.observe.metrics import Metrics
from holdfast.pipeline import Pipeline
from holdfast.settings import Settings
from holdfast.store import Store


@asynccontextmanager
async def opened_broker(settings: Settings, log: Any) -> AsyncIterator[Broker]:
    """Waits until the broker can be reached."""
    if settings.broker_url is None:
        raise UserError(
            "no broker is configured",
            "Set HOLDFAST_BROKER_URL, e.g. amqp://user:password@host:5672/, or do without: "
            "workers then poll the database.",
        )
    broker = await open_broker(settings.broker_url, settings.queue_prefix, log)
    try:
        yield broker
    finally:
        await broker.close()


@asynccontextmanager
async def broker_turns(
    settings: Settings,
    store: Store,
    pipelines: Mapping[str, Pipeline],
    options: WorkerOptions,
    metrics: Metrics,
    log: Any,
) -> AsyncIterator[tuple[BrokerTurns, Broker]]:
    async with opened_broker(settings, log) as broker:
        control = Control(store, settings.owner, log)
        trust = MessageTrust(settings.message_key, settings.message_signatures)
        adding = Adding(store, pipelines, settings.max_input_bytes, log)
        parts = TurnParts(
            store,
            broker,
            JobStarts(store, control, pipelines, log, trust),
            ItemAdds(adding, trust),
            SystemClock(),
            system_random(),
            metrics,
            log,
        )
        limits = TurnLimits(
            room=settings.claim_warmup,
            owner_slices=settings.owner_slices,
            max_message_bytes=settings.max_message_bytes,
            lost_seconds=settings.worker_lost_seconds,
        )
        turns = BrokerTurns(parts, limits, pipelines, options.may_run)
        await turns.open()
        yield turns, broker


async def keep_dead_letters(broker: Broker, store: Store, log: Any) -> None:
    """Stores messages that the broker set aside as dead letters, until cancelled."""
    consumer = await broker.consume(DEAD_QUEUE, prefetch=10)
    keep = store.messages.keep_dead
    await keep_dead_messages(consumer, broker.topology, keep, log, system_random())


async def read_depths(broker: Broker, metrics: Metrics) -> None:
    """Reports the length of each queue, for scaling the workers."""
    with suppress(BrokerGone):
        for queue in QUEUES:
            metrics.broker_queue_depth.labels(queue).set(await broker.depth(queue))


def broker_check(broker: Broker) -> dict[str, Check]:
    async def check() -> str | None:
        return None if broker.is_up else "cannot be reached"

    return {"broker": check}
