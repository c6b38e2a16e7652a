"""pgqueuer: `enqueue`, one transaction for each job."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import asyncpg
import orjson
import uvloop
from pgqueuer import AsyncpgDriver, PgQueuer, Queries
from pgqueuer.models import Job

from bench.arrivals import notes

DSN = os.environ["BENCH_DSN"]


def install() -> None:
    async def apply() -> None:
        await Queries(AsyncpgDriver(await asyncpg.connect(DSN))).install()

    asyncio.run(apply())


def work() -> None:
    async def main() -> None:
        queuer = PgQueuer(AsyncpgDriver(await asyncpg.connect(DSN)))

        @queuer.entrypoint("arrive")
        async def arrive(job: Job) -> None:
            notes.begun(orjson.loads(job.payload or b"{}")["number"])

        await queuer.run(batch_size=100)

    uvloop.run(main())


@asynccontextmanager
async def producing() -> AsyncIterator[Callable[[int], Awaitable[None]]]:
    connection = await asyncpg.connect(DSN)
    queries = Queries(AsyncpgDriver(connection))

    async def add(number: int) -> None:
        payload = orjson.dumps({"number": number, "note": "x" * 80})
        await queries.enqueue(["arrive"], [payload], [0])

    yield add
    await connection.close()
