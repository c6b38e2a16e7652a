"""Builds what talks to the broker from the settings; imported only if a broker is set."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import cache, partial
from typing import Any

from holdfast.cli.composition import open_bucket
from holdfast.cli.opening import require_broker
from holdfast.cli.served_flags import extensions_of, served_flags
from holdfast.clock import SystemClock, system_random
from holdfast.configuration import Settings
from holdfast.consumers import (
    ConsumerTools,
    QueueConsumer,
)
from holdfast.errors import BrokerGone
from holdfast.extension import installed
from holdfast.kernel import Store
from holdfast.kernel.arrivals.adding import Adding
from holdfast.kernel.jobs.control import Control, JobRequest
from holdfast.kernel.worker.chores import Chore, begin, repeat
from holdfast.kernel.worker.flag_values import FlagValues
from holdfast.kernel.worker.worker import Worker
from holdfast.messaging.acceptance import Acceptance, pipeline_of
from holdfast.messaging.broker import Broker, open_broker
from holdfast.messaging.dead import keep_dead_messages
from holdfast.messaging.foreign import Accept, ForeignConsumer, ForeignQueue, ForeignTrust
from holdfast.messaging.item_adds import ItemAdds
from holdfast.messaging.job_starts import JobStarts
from holdfast.messaging.nudges import KEEP_SECONDS, LOOK_SECONDS, HeldNudges, NudgeSender
from holdfast.messaging.orders import OrderParts, Orders
from holdfast.messaging.topology import DEAD_QUEUE, ORDERS_QUEUE, QUEUES, work_queue
from holdfast.observe.health import Check
from holdfast.observe.metrics import Metrics
from holdfast.pipeline import Pipeline
from holdfast.tasks import end_tasks, raise_failure

#: How many orders a worker follows at once. Each that it holds when it is killed counts as
#: delivered.
_ORDERS = 4
#: Maximum number of a pipeline's nudges that a worker holds; the others wait in the queue.
_NUDGES = 100


@asynccontextmanager
async def opened_broker(settings: Settings, log: Any) -> AsyncIterator[Broker]:
    """Opens the broker; waits until it can be reached."""
    broker = await open_broker(require_broker(settings), settings.queue_prefix, log)
    try:
        yield broker
    finally:
        await broker.close()


@asynccontextmanager
async def taking_messages(
    settings: Settings,
    store: Store,
    pipelines: Mapping[str, Pipeline],
    worker: Worker,
    checks: dict[str, Check],
    metrics: Metrics,
    log: Any,
) -> AsyncIterator[None]:
    """Takes messages beside a worker, which does not wait for the broker.

    If that fails for good, the worker is stopped."""
    stack = AsyncExitStack()

    async def open_() -> None:
        await worker.started.wait()
        broker = await stack.enter_async_context(opened_broker(settings, log))
        checks.update(broker_check(broker))
        foreign = foreign_queues(settings, store, pipelines, broker, metrics, log)
        await stack.enter_async_context(foreign)
        own = own_queues(settings, store, pipelines, worker, broker, metrics, log)
        await stack.enter_async_context(own)

    opening = asyncio.create_task(open_())
    opening.add_done_callback(partial(_stop_after_failure, worker))
    try:
        yield
    finally:
        await end_tasks([opening])
        await stack.aclose()
        raise_failure([opening])


def _stop_after_failure(worker: Worker, task: asyncio.Task[None]) -> None:
    """Stops the worker: one that takes no messages must not appear to be healthy."""
    if not task.cancelled() and task.exception() is not None:
        worker.stop()


@asynccontextmanager
async def own_queues(
    settings: Settings,
    store: Store,
    pipelines: Mapping[str, Pipeline],
    worker: Worker,
    broker: Broker,
    metrics: Metrics,
    log: Any,
) -> AsyncIterator[None]:
    """Follows orders of other programs and holds nudges."""
    orders = _orders(settings, store, pipelines, metrics, log)
    nudges = HeldNudges(store, worker.hear, SystemClock())
    ordered = await broker.consume(ORDERS_QUEUE, _ORDERS)
    nudged = [await broker.consume(work_queue(name), _NUDGES) for name in pipelines]
    keeping = begin([Chore("nudges", KEEP_SECONDS, nudges.keep)], SystemClock(), log)
    taking = [
        asyncio.create_task(orders.follow(ordered)),
        *(asyncio.create_task(nudges.take(consumer)) for consumer in nudged),
    ]
    for task in taking:
        task.add_done_callback(partial(_stop_after_failure, worker))
    try:
        yield
    finally:
        await ordered.stop(orders.hand_back)
        await asyncio.gather(*(consumer.stop() for consumer in nudged))
        # They end by themselves now, and must not be cancelled while they hand back.
        await asyncio.wait(taking)
        await end_tasks(keeping)
        raise_failure(taking)


def _orders(
    settings: Settings, store: Store, pipelines: Mapping[str, Pipeline], metrics: Metrics, log: Any
) -> Orders:
    trust = settings.messages
    adding = Adding(store, pipelines, settings.items.max_input_bytes, log)
    parts = OrderParts(
        store,
        JobStarts(store, Control(store, settings.owner, log), pipelines, log, trust),
        ItemAdds(adding, trust, settings.owner),
        system_random(),
        metrics,
        log,
    )
    return Orders(parts, pipelines)


@asynccontextmanager
async def foreign_queues(
    settings: Settings,
    store: Store,
    pipelines: Mapping[str, Pipeline],
    broker: Broker,
    metrics: Metrics,
    log: Any,
) -> AsyncIterator[None]:
    """Reads the queues that the extensions of these pipelines consume."""
    flags = FlagValues(store, served_flags(settings, extensions_of(pipelines)), SystemClock())
    readers = []
    for pipeline in pipelines.values():
        for spec in consumers_of(pipeline, settings, flags, log):
            target = pipeline_of(spec, pipeline, pipelines)
            accept = accepting(settings, store, target, spec, log)
            queue = ForeignQueue(broker.topology, spec)
            consumer = await broker.read(queue, spec.prefetch, spec.consumers)
            reader = ForeignConsumer(
                spec, consumer, accept, store.messages, metrics, system_random(), log
            )
            readers.append((consumer, asyncio.create_task(reader.run())))
    try:
        yield
    finally:
        await asyncio.gather(*(consumer.stop() for consumer, _ in readers))
        await asyncio.gather(*(task for _, task in readers), return_exceptions=True)


def consumers_of(
    pipeline: Pipeline, settings: Settings, flags: FlagValues, log: Any
) -> Sequence[QueueConsumer]:
    if pipeline.extension is None:
        return ()
    part = installed()[pipeline.extension].load("consumers") or ()
    if callable(part):
        clock = SystemClock()
        part = part(
            ConsumerTools(
                pipeline,
                flags.get,
                fetching(settings),
                clock,
                log,
                settings.owner,
                ForeignTrust(settings.messages, clock),
            )
        )
    return tuple(part)


def fetching(settings: Settings) -> Callable[[str, str], AsyncIterator[bytes]]:
    """Reads files of any bucket; each bucket is opened once."""
    bucket = cache(partial(open_bucket, settings))

    def fetch(name: str, key: str) -> AsyncIterator[bytes]:
        return bucket(name).stream(key)

    return fetch


def accepting(
    settings: Settings, store: Store, pipeline: Pipeline, spec: QueueConsumer, log: Any
) -> Accept:
    control = Control(store, spec.owner or settings.owner, log)
    standing = control.standing_job(JobRequest(pipeline))
    return Acceptance(store, pipeline, standing, settings.items.max_input_bytes)


async def keep_dead_letters(broker: Broker, store: Store, log: Any) -> None:
    """Stores messages that the broker set aside as dead letters, until cancelled."""
    consumer = await broker.consume(DEAD_QUEUE, prefetch=10)
    keep = store.messages.keep_dead
    await keep_dead_messages(consumer, broker.topology, keep, log, system_random())


async def send_nudges(
    settings: Settings, broker: Broker, store: Store, metrics: Metrics, log: Any
) -> None:
    """Sends nudges until it is cancelled."""
    clock = SystemClock()
    sender = NudgeSender(store, broker, settings.rules.backfill_enabled, clock, metrics)
    await repeat(Chore("nudges", LOOK_SECONDS, sender.look), clock, log)


async def read_depths(broker: Broker, metrics: Metrics) -> None:
    """Reports the length of all queues except those of nudges, which are counted."""
    with suppress(BrokerGone):
        for queue in QUEUES:
            metrics.broker_queue_depth.labels(queue).set(await broker.depth(queue))


def broker_check(broker: Broker) -> dict[str, Check]:
    async def check() -> str | None:
        return None if broker.is_up else "cannot be reached"

    return {"broker": check}
