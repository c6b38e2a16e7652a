"""pgqueuer: PostgreSQL carries the jobs; what a job returns is not kept, only a log row.

Its command line does not run with the typer of this project, so its `run()` is called.
"""

from __future__ import annotations

import asyncio
import os

import asyncpg
import orjson
import psycopg
import uvloop
from pgqueuer import AsyncpgDriver, PgQueuer, Queries
from pgqueuer.models import Job

from bench import data
from bench.peers import task

DSN = os.environ["BENCH_DSN"]
BATCH = 1_000


def enqueue(count: int) -> None:
    asyncio.run(_enqueue(count))


async def _enqueue(count: int) -> None:
    queries = Queries(AsyncpgDriver(await asyncpg.connect(DSN)))
    await queries.install()
    for start in range(0, count, BATCH):
        size = min(BATCH, count - start)
        payloads: list[bytes | None] = [orjson.dumps(item) for item in data.rows(size, start)]
        await queries.enqueue(["handle"] * size, payloads, [0] * size)


def work() -> None:
    uvloop.run(_work())


async def _work() -> None:
    queuer = PgQueuer(AsyncpgDriver(await asyncpg.connect(DSN)))
    chosen = task.chosen()

    @queuer.entrypoint("handle")
    async def handle(job: Job) -> None:
        await chosen(orjson.loads(job.payload or b"{}"))

    await queuer.run(batch_size=BATCH)


def kept() -> int:
    with psycopg.connect(DSN) as connection:
        found = connection.execute(
            "select count(*) from pgqueuer_log where status = 'successful'"
        ).fetchone()
    return found[0] if found else 0
