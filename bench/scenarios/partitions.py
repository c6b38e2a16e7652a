"""Compares tables of items and outcomes, plain or with a partition for each job.

A prototype in SQL, not Holdfast itself: see docs/adr/0012-no-partitions.md.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg

from bench.report import Result, Table
from bench.scenarios.ground import QUICK, Ground

_ROWS, _QUICK_ROWS = 1_000_000, 50_000
_JOBS = (1, 100, 1_000)  # how many jobs there are beside the one that is measured
_BATCH, _READS = 1_000, 300
_CHUNK = 1_000
_SCHEMA = """
create table items (job_id bigint not null, seq bigint not null, key text, input text not null,
                    primary key (job_id, seq)) {partitioned};
create table outcomes (job_id bigint not null, seq bigint not null, status text not null,
                       result text, updated_at timestamptz not null default now(),
                       primary key (job_id, seq)) {partitioned};
create index outcomes_by_status on outcomes (job_id, status, updated_at, seq)
"""
_INPUT, _RESULT = "x" * 120, "y" * 60


@dataclass(frozen=True, slots=True)
class Costs:
    new_job_ms: float
    write_rate: float  # items and their outcomes, in batches
    first_read_ms: float  # on a new connection: what it has to learn about the tables
    read_ms: float
    delete_seconds: float
    delete_mb: float  # of write-ahead log


def run(ground: Ground) -> Result:
    result = Result("partitions")
    rows = _QUICK_ROWS if ground.sizes is QUICK else _ROWS
    title = f"A job of {rows:,} rows, beside others; plain tables, or a partition for each job"
    table = Table(
        title,
        ("tables", "other jobs", "new job ms", "rows/s", "first read ms", "read ms", "delete s",
         "delete WAL MB"),
    )  # fmt: skip
    for jobs in _JOBS:
        for partitioned in (False, True):
            name = "partitioned" if partitioned else "plain"
            costs = ground.attempt(
                result, f"{name}, {jobs} jobs", _measure, ground, jobs, rows, partitioned
            )
            if costs is not None:
                table.add(name, f"{jobs:,}", *_shown(costs))
                result.figures[f"{name}, {jobs} jobs, delete seconds"] = costs.delete_seconds
                result.figures[f"{name}, {jobs} jobs, rows/s"] = costs.write_rate
    result.tables.append(table)
    return result


def _shown(costs: Costs) -> tuple[str, ...]:
    return (
        f"{costs.new_job_ms:.1f}",
        f"{costs.write_rate:,.0f}",
        f"{costs.first_read_ms:.1f}",
        f"{costs.read_ms:.2f}",
        f"{costs.delete_seconds:.2f}",
        f"{costs.delete_mb:.1f}",
    )


def _measure(ground: Ground, jobs: int, rows: int, partitioned: bool) -> Costs:
    url = ground.servers.fresh_database("partitions")
    by_job = "partition by list (job_id)" if partitioned else ""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_SCHEMA.format(partitioned=by_job))
        new_job = statistics.median([_add_job(connection, n, partitioned) for n in range(jobs + 1)])
        with _taking() as writing:
            _write(connection, jobs, rows)
        for other in range(min(jobs, 20)):
            _write(connection, other, _BATCH)
        first, read = _read(url, jobs, rows)
        wal = _wal(connection)
        with _taking() as deleting:
            (_drop if partitioned else _delete)(connection, jobs)
        written = _wal(connection) - wal
    ground.servers.drop_database("partitions")
    return Costs(new_job, rows / writing(), first, read, deleting(), written / 1e6)


@contextmanager
def _taking() -> Iterator[Callable[[], float]]:
    started = time.monotonic()
    ended: list[float] = []
    yield lambda: ended[0] - started
    ended.append(time.monotonic())


def _wal(connection: psycopg.Connection) -> float:
    row = connection.execute("select pg_current_wal_lsn() - '0/0'::pg_lsn").fetchone()
    assert row is not None
    return float(row[0])


def _add_job(connection: psycopg.Connection, job_id: int, partitioned: bool) -> float:
    """Adds a job; returns the milliseconds, of which a plain table needs none."""
    if not partitioned:
        return 0.0
    with _taking() as adding, connection.transaction():
        for table in ("items", "outcomes"):
            connection.execute(
                f"create table {table}_{job_id} partition of {table} for values in ({job_id})"
            )
    return adding() * 1000


def _write(connection: psycopg.Connection, job_id: int, rows: int) -> None:
    for start in range(0, rows, _BATCH):
        seqs = range(start, min(rows, start + _BATCH))
        with connection.transaction():
            with connection.cursor().copy("copy items (job_id, seq, input) from stdin") as copy:
                for seq in seqs:
                    copy.write_row((job_id, seq, _INPUT))
            columns = "outcomes (job_id, seq, status, result)"
            with connection.cursor().copy(f"copy {columns} from stdin") as copy:
                for seq in seqs:
                    copy.write_row((job_id, seq, "DONE", _RESULT))


def _read(url: str, job_id: int, rows: int) -> tuple[float, float]:
    """Returns the milliseconds of the first read on a connection, and of later ones."""
    query = "select seq, input from items where job_id = %s and seq between %s and %s order by seq"
    times = []
    with psycopg.connect(url, autocommit=True) as connection:
        for number in range(_READS):
            lo = number * 7_919 % max(1, rows - 100)
            with _taking() as reading:
                connection.execute(query, (job_id, lo, lo + 99), prepare=True).fetchall()
            times.append(reading() * 1000)
    return times[0], statistics.median(times[1:])


def _delete(connection: psycopg.Connection, job_id: int) -> None:
    """Deletes a job as Holdfast does: one transaction for each chunk."""
    query = "select seq from items where job_id = %s order by seq limit %s"
    while seqs := connection.execute(query, (job_id, _CHUNK)).fetchall():
        with connection.transaction():
            for table in ("items", "outcomes"):
                connection.execute(
                    f"delete from {table} where job_id = %s and seq between %s and %s",
                    (job_id, seqs[0][0], seqs[-1][0]),
                )


def _drop(connection: psycopg.Connection, job_id: int) -> None:
    with connection.transaction():
        for table in ("items", "outcomes"):
            connection.execute(f"drop table {table}_{job_id}")
