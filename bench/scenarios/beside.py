"""Adds records as an application does while the same workers are busy with a bulk job."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from bench import holdfast_runs
from bench.arrivals import notes
from bench.arrivals.run import HOLDFAST, PIPELINE, Contender, Latency
from bench.holdfast_runs import Database
from bench.measure import ROOT, RunFailed, run_to_end
from bench.report import Result, Table, Target, at_most
from bench.scenarios.ground import Ground

BULK = ROOT / "bench" / "bulk.py"
AT_ONCE = 64  # bulk items of one worker
DATABASES = ("PostgreSQL", "SQLite")
WORK = {"50 ms": 0.05, "5 s": 5.0, "no work": 0.0}
WORKERS = (1, 2)
RATES = (2, 50)
MOST_P50_MS, MOST_P99_MS = 5, 50
_AROUND_SECONDS = 20.0  # the bulk job is worked on before and after the records, too
_READY_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Cell:
    database: str
    work: str
    workers: int
    rate: int

    @property
    def name(self) -> str:
        workers = "1 worker" if self.workers == 1 else f"{self.workers} workers"
        return f"{self.database}, {self.work}, {workers}, {self.rate}/s"

    @property
    def allowed(self) -> float | None:
        """Bulk items per second, if only their waiting counted."""
        seconds = WORK[self.work]
        return AT_ONCE * self.workers / seconds if seconds else None


@dataclass(frozen=True, slots=True)
class Figures:
    latency: Latency
    bulk_rate: float


def run(ground: Ground) -> Result:
    result = Result("beside")
    found: dict[Cell, Figures | None] = {}
    for cell in (Cell(*values) for values in product(DATABASES, WORK, WORKERS, RATES)):
        if ground.wants(cell.name):
            found[cell] = ground.attempt(result, cell.name, _measure, ground, cell)
    for name in DATABASES:
        own = {cell: figures for cell, figures in found.items() if cell.database == name}
        if own:
            result.tables.append(_table(name, own))
            result.targets += _targets(name, own)
    for cell, figures in found.items():
        if figures is not None:
            result.figures[f"{cell.name}, p50 ms"] = figures.latency.p50
            result.figures[f"{cell.name}, p99 ms"] = figures.latency.p99
            result.figures[f"{cell.name}, largest ms"] = figures.latency.largest
            result.figures[f"{cell.name}, bulk items/s"] = figures.bulk_rate
    return result


def _measure(ground: Ground, cell: Cell) -> Figures:
    folder = ground.folder / "beside"
    begun = folder / "begun"
    begun.mkdir(parents=True, exist_ok=True)
    for mark in begun.iterdir():
        mark.unlink()
    database: Database = (
        holdfast_runs.fresh_postgres(ground.servers, folder, "beside")
        if cell.database == "PostgreSQL"
        else holdfast_runs.fresh_sqlite(folder)
    )
    work = {"BENCH_ITEM_SECONDS": str(WORK[cell.work]), "BENCH_BULK_BEGUN": str(begun)}
    contender = Contender(HOLDFAST, database.url, folder, cell.workers, (BULK,), work)
    contender.next_run()
    run_to_end([["holdfast", "open", str(PIPELINE)]], folder, contender.settings())
    holdfast_runs.ingest(database, ground.file(_bulk_items(ground, cell)), folder, BULK)
    job_id = database.newest_job()
    with contender.working():
        _await_bulk(begun, cell)
        with contender.producing(cell.rate, ground.sizes.beside_seconds):
            pass
    figures = _figures(contender, database, job_id)
    if cell.database == "PostgreSQL":
        ground.servers.drop_database("beside")
    return figures


def _bulk_items(ground: Ground, cell: Cell) -> int:
    """Returns how many bulk items last longer than the records arrive; without work, as long."""
    if cell.allowed is None:
        return ground.sizes.beside_noop_items
    return int(cell.allowed * (ground.sizes.beside_seconds + _AROUND_SECONDS))


def _await_bulk(begun: Path, cell: Cell) -> None:
    deadline = time.monotonic() + _READY_SECONDS
    while sum(1 for _ in begun.iterdir()) < cell.workers:
        if time.monotonic() > deadline:
            raise RunFailed("not every worker began the bulk job")
        time.sleep(0.02)


def _figures(contender: Contender, database: Database, job_id: int) -> Figures:
    """Measures from the first record to the last one, or to the end of the bulk job."""
    to_wall_clock = time.time() - notes.now()
    committed = notes.read(contender.committed).values()
    starts, ends = min(committed), max(committed)
    finishes = [(at - to_wall_clock, count) for at, count in database.finishes(job_id)]
    items, done = database.counts(job_id)
    if items == done:
        ends = min(ends, finishes[-1][0])
    if ends <= starts:
        raise RunFailed("the bulk job ended before the records came: it needs more items")
    during = sum(count for at, count in finishes if starts < at <= ends)
    return Figures(contender.latency(until=ends), during / (ends - starts))


def _table(name: str, found: dict[Cell, Figures | None]) -> Table:
    columns = ("bulk items take", "workers", "added", "p50", "p99", "largest", "bulk items/s")
    table = Table(f"Milliseconds from commit to start beside a bulk job, on {name}", columns)
    for cell, figures in found.items():
        table.add(cell.work, str(cell.workers), f"{cell.rate}/s", *_cells(figures))
    table.notes.append(
        f"Each worker runs {AT_ONCE} bulk items at once: 1,280/s of 50 ms, 12.8/s of 5 s."
    )
    return table


def _cells(figures: Figures | None) -> Iterator[str]:
    if figures is None:
        yield from "————"
    else:
        for value in (figures.latency.p50, figures.latency.p99, figures.latency.largest):
            yield f"{value:,.1f}"
        yield (
            f"{figures.bulk_rate:,.1f}" if figures.bulk_rate < 100 else f"{figures.bulk_rate:,.0f}"
        )


def _targets(name: str, found: dict[Cell, Figures | None]) -> Iterator[Target]:
    """Yields one target for all cells of the same bulk work: the slowest counts."""
    for work in WORK:
        own = [figures for cell, figures in found.items() if cell.work == work]
        if own:
            seen = [figures.latency for figures in own if figures is not None]
            what = f"commit to start beside a bulk job, {name}, {work}"
            p50 = max((latency.p50 for latency in seen), default=None)
            p99 = max((latency.p99 for latency in seen), default=None)
            yield at_most(f"{what}, slowest p50", p50, MOST_P50_MS, "ms")
            yield at_most(f"{what}, slowest p99", p99, MOST_P99_MS, "ms")
