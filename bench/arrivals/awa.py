"""awa-pg: `insert`, one transaction for each job."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from awa import AsyncClient

from bench.arrivals import notes

DSN = os.environ["BENCH_DSN"]
QUEUE = "bench"


@dataclass
class Arrival:
    number: int
    note: str


def install() -> None:
    async def apply() -> None:
        client = AsyncClient(DSN)
        await client.migrate()
        await client.install_queue_storage()
        await client.close()

    asyncio.run(apply())


def work() -> None:
    async def main() -> None:
        client = AsyncClient(DSN)

        @client.task(Arrival, queue=QUEUE)
        async def arrive(job: Any) -> None:
            notes.begun(job.args.number)

        await client.start([(QUEUE, 64)])
        await asyncio.Event().wait()

    asyncio.run(main())


@asynccontextmanager
async def producing() -> AsyncIterator[Callable[[int], Awaitable[None]]]:
    client = AsyncClient(DSN)

    async def add(number: int) -> None:
        await client.insert(Arrival(number, "x" * 80), queue=QUEUE)

    yield add
    await client.close()
