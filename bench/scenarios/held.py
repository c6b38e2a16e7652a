"""Holds a transaction open on PostgreSQL while a million items pass: nothing can be vacuumed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext

import psycopg

from bench import fleet_runs, holdfast_runs, row_queue
from bench.fleet_runs import Fleet
from bench.measure import Rate
from bench.report import Result, Table, per_second, ratio, times
from bench.scenarios.ground import Ground

PROCESSES = 2
WAYS = ("alone", "held")


def run(ground: Ground) -> Result:
    result = Result("held")
    count = ground.sizes.held_items
    columns = ("", "items/s", "with the transaction held", "of it", "last quarter, of the second")
    title = f"{count:,} no-op items while a transaction is held open, {PROCESSES} processes"
    table = Table(title, columns)
    _add_row(ground, result, table, "Holdfast, RabbitMQ", _fleet)
    _add_row(ground, result, table, "Holdfast, while as many are ingested", _fleet_with_ingest)
    _add_row(ground, result, table, "row queue, SKIP LOCKED", _rows)
    table.notes += [
        "The transaction: repeatable read, idle, with a transaction id, on the same database.",
        "Last quarter: its rate beside that of the second, held. In the first the pace is found.",
        f"The row queue stops after {ground.sizes.row_seconds:.0f} s; its rate is of what it did.",
    ]
    result.tables.append(table)
    return result


Contender = Callable[[Ground, bool], tuple[Rate, float]]


def _add_row(ground: Ground, result: Result, table: Table, name: str, contender: Contender) -> None:
    rates: dict[str, float] = {}
    kept_up = None
    for way in WAYS:
        what = f"{name}, {way}"
        found = ground.attempt(result, what, contender, ground, way == "held")
        if found is not None:
            rates[way], kept_up = found[0].per_second, found[1]
            result.figures[what] = rates[way]
            result.figures[f"{what}, last quarter of the second"] = kept_up
    alone, held = rates.get("alone"), rates.get("held")
    shown = times(kept_up if held else None)
    table.add(name, per_second(alone), per_second(held), times(ratio(held, alone)), shown)


def _fleet(ground: Ground, held: bool) -> tuple[Rate, float]:
    fleet: Fleet = fleet_runs.fresh_fleet(ground.servers, ground.folder, messages=True)
    job_id = fleet_runs.ingest(fleet, ground.file(ground.sizes.held_items))
    with _transaction(fleet.database.url) if held else nullcontext():
        rate = fleet_runs.work(fleet, job_id, PROCESSES)
    return rate, _kept_up(fleet.database.url, "holdfast.outcomes")


def _fleet_with_ingest(ground: Ground, held: bool) -> tuple[Rate, float]:
    """Returns the rate of what was ingested before, while further pages arrive."""
    fleet: Fleet = fleet_runs.fresh_fleet(ground.servers, ground.folder, messages=True)
    job_id = fleet_runs.ingest(fleet, ground.file(ground.sizes.held_items))
    more = ground.file(ground.sizes.held_items + 1)
    folder = ground.folder / "ingest-beside"
    folder.mkdir(exist_ok=True)
    with (
        _transaction(fleet.database.url) if held else nullcontext(),
        ThreadPoolExecutor(1) as beside,
    ):
        ingesting = beside.submit(holdfast_runs.ingest, fleet.database, more, folder)
        rate = fleet_runs.work(fleet, job_id, PROCESSES)
        ingesting.result()
    return rate, _kept_up(fleet.database.url, "holdfast.outcomes")


def _rows(ground: Ground, held: bool) -> tuple[Rate, float]:
    dsn = ground.servers.fresh_database("rows")
    row_queue.fill(dsn, ground.sizes.held_items)
    with _transaction(dsn) if held else nullcontext():
        rate = row_queue.work(dsn, PROCESSES, ground.sizes.row_seconds)
    return rate, _kept_up(dsn, "tasks")


@contextmanager
def _transaction(dsn: str) -> Iterator[None]:
    with psycopg.connect(dsn) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute("select txid_current()")
        yield
        connection.rollback()


def _kept_up(dsn: str, table: str) -> float:
    """Returns the rate of the last quarter of the rows over that of the second quarter."""
    shares = [0.25, 0.5, 0.75, 1.0]
    query = f"""
        select percentile_disc(%s::float8[])
               within group (order by extract(epoch from updated_at)::float8)
          from {table}
    """
    with psycopg.connect(dsn) as connection:
        found = connection.execute(query, (shares,)).fetchone()
    start, early, late, end = found[0] if found else (0.0,) * 4
    return (early - start) / (end - late) if end > late else 0.0
