"""awa-pg: PostgreSQL carries the jobs; completed ones are counted, what they return is not kept."""

from __future__ import annotations

import asyncio
import os
from dataclasses import asdict, dataclass
from typing import Any

import psycopg
from awa import AsyncClient

from bench import data
from bench.peers import task

DSN = os.environ["BENCH_DSN"]
QUEUE = "bench"
BATCH = 5_000
WORKERS = 256


@dataclass
class Item:
    id: str
    title: str
    brand: str
    sku: str
    gtin: str
    note: str


def enqueue(count: int) -> None:
    asyncio.run(_enqueue(count))


async def _enqueue(count: int) -> None:
    client = AsyncClient(DSN)
    await client.migrate()
    await client.install_queue_storage()
    for start in range(0, count, BATCH):
        size = min(BATCH, count - start)
        items = [Item(**item) for item in data.rows(size, start)]
        await client.enqueue_many_copy(items, queue=QUEUE)
    await client.close()


def work() -> None:
    asyncio.run(_work())


async def _work() -> None:
    client = AsyncClient(DSN)
    chosen = task.chosen()

    @client.task(Item, queue=QUEUE)
    async def handle(job: Any) -> None:
        await chosen(asdict(job.args))

    await client.start([(QUEUE, WORKERS)])
    await asyncio.Event().wait()


def kept() -> int:
    """Counts completed jobs, including those it has folded into a mere count.

    They are read from its tables: its own statistics take minutes for this many jobs."""
    with psycopg.connect(DSN) as connection:
        found = connection.execute(
            """
            select coalesce((select sum(completed_count) from awa.receipt_completion_batches), 0)
                 + coalesce((select sum(pruned_completed_count) from awa.queue_terminal_rollups), 0)
            """
        ).fetchone()
    return int(found[0]) if found else 0
