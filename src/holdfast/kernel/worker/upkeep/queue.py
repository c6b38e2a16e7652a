"""Metrics about what is waiting, which no single worker could count."""

from __future__ import annotations

from holdfast.kernel.worker.upkeep.parts import UpkeepParts
from holdfast.observe.metrics import QueueReading


async def read_queue(parts: UpkeepParts) -> None:
    """Reads the number and age of waiting items and messages into the metrics."""
    store, metrics = parts.store, parts.metrics
    readings = {
        pipeline: QueueReading(depth, age)
        for pipeline, depth, age in await store.reads.queue_depth()
    }
    metrics.set_queue(readings)
    metrics.set_dead_letters(await store.reads.count_dead_letters())
    count, age, _ = await store.messages.reading()
    metrics.outbox_depth.set(count)
    metrics.outbox_oldest_seconds.set(age)
    duties = await store.workers.duties()
    if "sweep" in duties:
        metrics.sweeper_age_seconds.set(duties["sweep"][1])
    oldest = await store.reads.oldest_transaction_seconds()
    metrics.oldest_transaction_seconds.set(oldest or 0.0)
