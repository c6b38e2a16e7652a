"""The usual queue: one row for each task, taken with SKIP LOCKED, changed when taken and when done.

It is compared with ranges while a transaction is held open: the dead rows it leaves cannot be
vacuumed, and each claim has to pass over all of them.
"""

from __future__ import annotations

import asyncio
import time

import asyncpg
import uvloop

from bench import data, floors, measure
from bench.measure import Rate

BATCH = 1_000

SCHEMA = """
    create table tasks (
        id bigint primary key,
        status smallint not null default 0,
        available_at timestamptz not null default clock_timestamp(),
        input jsonb not null,
        worker text,
        result jsonb,
        updated_at timestamptz
    ) with (fillfactor = 50);
    create index tasks_due on tasks (available_at, id) where status = 0;
"""
CLAIM = """
    with due as materialized (
        select id from tasks where status = 0 order by available_at, id limit $2
           for update skip locked
    )
    update tasks
       set status = 1, worker = $1
      from due
     where tasks.id = due.id
 returning tasks.id, tasks.input::text
"""
SETTLE = """
    update tasks
       set status = 2, result = done.result, updated_at = clock_timestamp()
      from unnest($1::bigint[], $2::jsonb[]) as done (id, result)
     where tasks.id = done.id and worker = $3 and status = 1
"""


def fill(dsn: str, count: int) -> None:
    asyncio.run(_fill(dsn, count))


async def _fill(dsn: str, count: int) -> None:
    connection = await asyncpg.connect(dsn)
    await connection.execute(SCHEMA)
    for start in range(0, count, floors.COPY_BATCH):
        items = data.rows(min(floors.COPY_BATCH, count - start), start)
        records = [(int(item["id"]), floors.encoded(item)) for item in items]
        await connection.copy_records_to_table("tasks", records=records, columns=["id", "input"])
    await connection.execute("vacuum analyze tasks")
    await connection.execute("checkpoint")
    await connection.close()


def work(dsn: str, processes: int, seconds: float) -> Rate:
    """Processes the tasks, for at most this many seconds."""
    floors.side_by_side(_worker, processes, dsn, seconds)
    return measure.postgres_rate(dsn, "tasks", "status = 2")


def _worker(dsn: str, seconds: float, worker: str) -> None:
    uvloop.run(_work(dsn, seconds, worker))


async def _work(dsn: str, seconds: float, worker: str) -> None:
    connection = await asyncpg.connect(dsn)
    claim = await connection.prepare(CLAIM)
    settle = await connection.prepare(SETTLE)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and (found := await claim.fetch(worker, BATCH)):
        results = [floors.decode_work_encode(text) for _, text in found]
        await settle.fetch([task_id for task_id, _ in found], results, worker)
    await connection.close()
