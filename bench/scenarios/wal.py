"""Measures the bytes of write-ahead log per no-op item, from file to outcome."""

from __future__ import annotations

from bench import data, holdfast_runs
from bench.holdfast_runs import Postgres
from bench.report import Result, Table, at_most
from bench.scenarios.ground import Ground

MOST_BYTES = 1_000


def run(ground: Ground) -> Result:
    result = Result("wal")
    count = ground.sizes.wal_items
    columns = ("", "ingest", "processing", "file to outcome")
    title = f"Bytes of write-ahead log per no-op item of {data.ROW_BYTES} bytes"
    table = Table(title, columns)
    found = ground.attempt(result, "WAL", _cycles, ground, count) or []
    for name, ingested, processed in found:
        total = ingested + processed
        result.figures[name] = total
        table.add(name, f"{ingested:.0f}", f"{processed:.0f}", f"{total:.0f}")
    table.notes.append(
        "After a checkpoint the first change of each page logs the whole page once more."
    )
    result.tables.append(table)
    worst = max(result.figures.values(), default=None)
    result.targets.append(at_most("WAL from file to outcome", worst, MOST_BYTES, "bytes an item"))
    return result


def _cycles(ground: Ground, count: int) -> list[tuple[str, float, float]]:
    """Measures two cycles: the first finds its pages changed since the last checkpoint, the second
    does not."""
    database = holdfast_runs.fresh_postgres(ground.servers, ground.folder)
    _cycle(ground, database, count, checkpoint=False)
    return [
        ("no checkpoint near", *_cycle(ground, database, count, checkpoint=False)),
        ("checkpoint before each phase", *_cycle(ground, database, count, checkpoint=True)),
    ]


def _cycle(ground: Ground, database: Postgres, count: int, checkpoint: bool) -> tuple[float, float]:
    if checkpoint:
        database.checkpoint()
    before = database.wal_bytes()
    holdfast_runs.ingest(database, ground.file(count), ground.folder)
    ingested = database.wal_bytes()
    if checkpoint:
        database.checkpoint()
    processing_from = database.wal_bytes()
    holdfast_runs.work(database, 2, ground.folder)
    done = database.wal_bytes()
    return (ingested - before) / count, (done - processing_from) / count
