"""Compares ingest of a CSV file, and its memory, with a bare loop of csv.reader, orjson and
COPY."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import median

from bench import floors, holdfast_runs
from bench.measure import Watch
from bench.report import Result, Table, Target, at_most, per_second, ratio, times
from bench.scenarios.ground import Ground

MEGABYTE = 1_000_000
MOST_MEMORY = 200
FLAT = 1.15  # how much memory may grow at most from the small file to the large one


def run(ground: Ground) -> Result:
    result = Result("ingest")
    small, large = ground.sizes.ingest_rows
    columns = ("rows", "Holdfast s", "rows/s", "MB", "bare loop s", "rows/s", "MB", "of its time")
    for kind in ("PostgreSQL", "SQLite"):
        table = Table(f"Ingest of a CSV file into {kind}", columns)
        for count in (small, large):
            _add_row(ground, result, table, kind, count)
        table.notes.append("Whole processes, from start to end. MB: most resident memory.")
        result.tables.append(table)
        _add_targets(result, kind, small, large)
    return result


def _add_row(ground: Ground, result: Result, table: Table, kind: str, count: int) -> None:
    file = ground.file(count)
    own = _median(ground, result, f"{kind} {count}", lambda: _own(ground, kind, file))
    bare = _median(ground, result, f"bare {kind} {count}", lambda: _bare(ground, kind, file))
    slower = own.seconds / bare.seconds if own and bare else None
    table.add(f"{count:,}", *_cells(own, count), *_cells(bare, count), times(slower))


def _cells(watch: Watch | None, count: int) -> tuple[str, str, str]:
    if watch is None:
        return ("—",) * 3
    rate, megabytes = count / watch.seconds, watch.peak_bytes / MEGABYTE
    return f"{watch.seconds:.1f}", per_second(rate), f"{megabytes:.0f}"


def _median(ground: Ground, result: Result, name: str, run: Callable[[], Watch]) -> Watch | None:
    attempts = [ground.attempt(result, f"ingest {name}", run) for _ in range(ground.sizes.rounds)]
    found = [watch for watch in attempts if watch is not None]
    if not found:
        return None
    middle = Watch(
        seconds=median(watch.seconds for watch in found),
        peak_bytes=max(watch.peak_bytes for watch in found),
    )
    result.figures[f"{name} seconds"] = middle.seconds
    result.figures[f"{name} peak bytes"] = middle.peak_bytes
    return middle


def _own(ground: Ground, kind: str, file: Path) -> Watch:
    database: holdfast_runs.Database
    if kind == "PostgreSQL":
        database = holdfast_runs.fresh_postgres(ground.servers, ground.folder)
    else:
        database = holdfast_runs.fresh_sqlite(ground.folder)
    return holdfast_runs.ingest(database, file, ground.folder)


def _bare(ground: Ground, kind: str, file: Path) -> Watch:
    if kind == "PostgreSQL":
        dsn = ground.servers.fresh_database("bare")
        return floors.ingest("postgres", file, dsn, ground.folder)
    path = ground.folder / "bare.db"
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    return floors.ingest("sqlite", file, str(path), ground.folder)


def _add_targets(result: Result, kind: str, small: int, large: int) -> None:
    figures = result.figures.get
    slower = ratio(figures(f"{kind} {large} seconds"), figures(f"bare {kind} {large} seconds"))
    peak, peak_small = figures(f"{kind} {large} peak bytes"), figures(f"{kind} {small} peak bytes")
    growth = ratio(peak, peak_small)
    name = f"ingest into {kind}, {large:,} rows"
    result.targets.append(at_most(name, slower, 1.3, "× the bare loop's time"))
    wanted = f"under {MOST_MEMORY} MB and flat in the file's size"
    if peak is None or growth is None:
        result.targets.append(Target(f"{name}, memory", wanted, "not measured", None))
        return
    megabytes = peak / MEGABYTE
    met = megabytes < MOST_MEMORY and growth <= FLAT
    seen = f"{megabytes:.0f} MB, {growth:.2f} × that of {small:,} rows"
    result.targets.append(Target(f"{name}, memory", wanted, seen, met))
