"""Measures what the databases can do without Holdfast: the floors of its figures.

The range floor claims 1,000 items by one small row, reads and decodes them, does the same work as
everyone, and writes results and the range's end in one statement. It has no fence, retry, counter,
coroutine or limit: the best that this design could be, not a usable program.
"""

from __future__ import annotations

import asyncio
import csv
import multiprocessing
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

import asyncpg
import orjson
import uvloop

from bench import data, measure
from bench.measure import Rate, Watch, python

RANGE = 1_000
COPY_BATCH = 5_000

POSTGRES_SCHEMA = """
    create table items (id bigint primary key, job_id bigint not null, input jsonb not null);
    create table ranges (
        id bigint generated always as identity primary key,
        lo bigint not null,
        hi bigint not null,
        status smallint not null default 0,
        worker text,
        leased_at timestamptz
    ) with (fillfactor = 50);
    create table results (
        id bigint primary key,
        status smallint not null,
        result jsonb,
        updated_at timestamptz not null default now()
    );
"""
POSTGRES_CLAIM = """
    with free as materialized (
        select id from ranges where status = 0 order by id limit 1 for update skip locked
    ), leased as (
        update ranges
           set status = 1, worker = $1, leased_at = now()
          from free
         where ranges.id = free.id
     returning ranges.id, lo, hi
    )
    select items.id, items.input::text, leased.id
      from leased
      join items on items.id between leased.lo and leased.hi
"""
POSTGRES_SETTLE = """
    with ended as (
        update ranges set status = 2 where id = $3 and worker = $4 and status = 1 returning id
    )
    insert into results (id, status, result)
    select done.id, 2, done.result
      from unnest($1::bigint[], $2::jsonb[]) as done (id, result), ended
"""

SQLITE_SCHEMA = """
    create table items (id integer primary key, job_id integer not null, input text not null);
    create table ranges (
        id integer primary key,
        lo integer not null,
        hi integer not null,
        status integer not null default 0,
        worker text
    );
    create index ranges_free on ranges (id) where status = 0;
    create table results (id integer primary key, status integer, result text, updated_at text);
"""
SQLITE_CLAIM = """
    update ranges
       set status = 1, worker = ?
     where id = (select id from ranges where status = 0 order by id limit 1)
 returning id, lo, hi
"""
SQLITE_END = "update ranges set status = 2 where id = ? and worker = ? and status = 1"
SQLITE_RESULT = "insert into results values (?, 2, ?, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))"


def encoded(item: dict[str, str]) -> str:
    return orjson.dumps(item).decode()


def decode_work_encode(text: str) -> str:
    return orjson.dumps(data.work(orjson.loads(text))).decode()


def side_by_side(target: Callable[..., None], processes: int, *arguments: object) -> None:
    context = multiprocessing.get_context("spawn")
    started = [
        context.Process(target=target, args=(*arguments, f"worker-{number}"))
        for number in range(processes)
    ]
    for process in started:
        process.start()
    for process in started:
        process.join()
    if any(process.exitcode for process in started):
        raise measure.RunFailed("a process of the floor failed")


def fill_postgres(dsn: str, count: int) -> None:
    asyncio.run(_fill_postgres(dsn, count))


async def _fill_postgres(dsn: str, count: int) -> None:
    connection = await asyncpg.connect(dsn)
    await connection.execute(POSTGRES_SCHEMA)
    for start in range(0, count, COPY_BATCH):
        records = [
            (start + offset, 1, encoded(item))
            for offset, item in enumerate(data.rows(min(COPY_BATCH, count - start), start))
        ]
        await connection.copy_records_to_table("items", records=records)
    await connection.close()


def postgres_ranges(dsn: str, count: int, processes: int) -> Rate:
    """Processes the filled items with this many processes."""
    asyncio.run(_make_ranges(dsn, count))
    side_by_side(_postgres_worker, processes, dsn)
    return measure.postgres_rate(dsn, "results")


async def _make_ranges(dsn: str, count: int) -> None:
    connection = await asyncpg.connect(dsn)
    await connection.execute("truncate ranges, results")
    await connection.execute(
        "insert into ranges (lo, hi) select lo, lo + $2 - 1 from generate_series(0, $1, $2) lo",
        count - 1,
        RANGE,
    )
    await connection.execute("vacuum analyze")
    await connection.execute("checkpoint")
    await connection.close()


def _postgres_worker(dsn: str, worker: str) -> None:
    uvloop.run(_work_postgres(dsn, worker))


async def _work_postgres(dsn: str, worker: str) -> None:
    connection = await asyncpg.connect(dsn)
    claim = await connection.prepare(POSTGRES_CLAIM)
    settle = await connection.prepare(POSTGRES_SETTLE)
    while found := await claim.fetch(worker):
        results = [decode_work_encode(text) for _, text, _ in found]
        await settle.fetch([item[0] for item in found], results, found[0][2], worker)
    await connection.close()


def sqlite_ranges(path: Path, count: int, processes: int) -> Rate:
    path.unlink(missing_ok=True)
    with closing(_open_sqlite(path)) as connection:
        connection.executescript(SQLITE_SCHEMA)
        connection.execute("begin immediate")
        connection.executemany(
            "insert into items values (?, 1, ?)",
            ((int(item["id"]), encoded(item)) for item in data.rows(count)),
        )
        connection.executemany(
            "insert into ranges (lo, hi) values (?, ?)",
            ((low, low + RANGE - 1) for low in range(0, count, RANGE)),
        )
        connection.execute("commit")
        connection.execute("pragma wal_checkpoint(truncate)")
    side_by_side(_sqlite_worker, processes, path)
    return measure.sqlite_rate(path, "results")


def _open_sqlite(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=60, isolation_level=None)
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma synchronous = full")
    return connection


def _sqlite_worker(path: Path, worker: str) -> None:
    with closing(_open_sqlite(path)) as connection:
        while leased := connection.execute(SQLITE_CLAIM, (worker,)).fetchall():
            (range_id, low, high) = leased[0]
            found = connection.execute(
                "select id, input from items where id between ? and ?", (low, high)
            ).fetchall()
            results = [(item_id, decode_work_encode(text)) for item_id, text in found]
            connection.execute("begin immediate")
            connection.execute(SQLITE_END, (range_id, worker))
            connection.executemany(SQLITE_RESULT, results)
            connection.execute("commit")


def bare_waiting(concurrency: int, count: int) -> Rate:
    """Runs coroutines that wait 10 ms, and nothing else: what the event loop itself allows."""
    return uvloop.run(_waitside_by_side(concurrency, count))


async def _waitside_by_side(concurrency: int, count: int) -> Rate:
    numbers = iter(range(count))

    async def runner() -> None:
        for _ in numbers:
            await asyncio.sleep(0.010)

    start = time.perf_counter()
    await asyncio.gather(*(runner() for _ in range(concurrency)))
    return Rate(count, time.perf_counter() - start)


def ingest(kind: str, file: Path, target: str, folder: Path) -> Watch:
    """Runs the bare loop as a separate process, timed from its start to its end."""
    return measure.run_to_end([python("bench.floors", kind, file, target)], folder)


def _batches(file: Path) -> Iterator[list[tuple[int, int, str]]]:
    with file.open(newline="") as lines:
        reader = csv.reader(lines)
        columns = next(reader)
        numbered = enumerate(reader)
        while batch := list(islice(numbered, COPY_BATCH)):
            yield [
                (number, 1, orjson.dumps(dict(zip(columns, values, strict=True))).decode())
                for number, values in batch
            ]


async def _ingest_postgres(file: Path, dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    await connection.execute(POSTGRES_SCHEMA.replace("jsonb", "json"))
    for records in _batches(file):
        async with connection.transaction():
            await connection.copy_records_to_table("items", records=records)
    await connection.close()


def _ingest_sqlite(file: Path, path: Path) -> None:
    with closing(_open_sqlite(path)) as connection:
        connection.executescript(SQLITE_SCHEMA)
        for records in _batches(file):
            connection.execute("begin immediate")
            connection.executemany("insert into items values (?, ?, ?)", records)
            connection.execute("commit")


def main(kind: str, file: str, target: str) -> None:
    if kind == "postgres":
        uvloop.run(_ingest_postgres(Path(file), target))
    else:
        _ingest_sqlite(Path(file), Path(target))


if __name__ == "__main__":
    main(*sys.argv[1:])
