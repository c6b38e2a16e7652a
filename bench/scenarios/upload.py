"""Uploads a large CSV file to the API, read by a worker, and compares with `holdfast run` reading
the same file."""

from __future__ import annotations

import time
from statistics import median

import psutil

from bench import api_runs, holdfast_runs, measure
from bench.measure import ROOT, Watch, python
from bench.report import Result, Table, Target, at_most, per_second, ratio, times
from bench.scenarios.ground import Ground

MOST_TIMES = 1.5
MOST_MEMORY = 300
MEGABYTE = 1_000_000
#: Its items wait, so that the worker reads and does little else.
WAITING = ROOT / "bench" / "waiting.py"


def run(ground: Ground) -> Result:
    result = Result("upload")
    count = ground.sizes.upload_rows
    runs: dict[str, list[Watch]] = {"API": [], "holdfast run": []}
    ways = {"API": _through_api, "holdfast run": _by_command}
    for _ in range(ground.sizes.rounds):
        for name, way in ways.items():
            found = ground.attempt(result, f"{count:,} rows by {name}", way, ground, count)
            if found is not None:
                runs[name].append(found)
    columns = ("", "s", "rows/s", "MB resident at most")
    table = Table(f"A CSV file of {count:,} rows into PostgreSQL", columns)
    for name, found in runs.items():
        if found:
            _add_row(result, table, name, count, found)
    table.notes += [
        "API: from the first byte sent until all rows are items, with one worker, whose memory is",
        "counted with that of the API. holdfast run --no-work: the whole process. In turn, on an",
        "empty database each; the middle of the rounds.",
    ]
    result.tables.append(table)
    figures = result.figures.get
    slower = ratio(figures("API seconds"), figures("holdfast run seconds"))
    table.add("API / holdfast run", times(slower))
    name = f"upload of {count:,} rows through the API"
    result.targets.append(at_most(name, slower, MOST_TIMES, "× holdfast run's ingest"))
    result.targets.append(_memory(name, figures("API peak bytes")))
    return result


def _add_row(result: Result, table: Table, name: str, count: int, found: list[Watch]) -> None:
    seconds = median(watch.seconds for watch in found)
    peak = max(watch.peak_bytes for watch in found)
    result.figures |= {f"{name} seconds": seconds, f"{name} peak bytes": peak}
    table.add(name, f"{seconds:.1f}", per_second(count / seconds), f"{peak / MEGABYTE:.0f}")


def _through_api(ground: Ground, count: int) -> Watch:
    file = ground.file(count)
    database = holdfast_runs.fresh_postgres(ground.servers, ground.folder)
    worker_folder = ground.folder / "worker"
    worker_folder.mkdir(exist_ok=True)
    used = api_runs.settings(database, ground.folder / "api")
    with (
        api_runs.running(database, ground.folder, WAITING) as api,
        measure.processes([python("holdfast", "work", WAITING)], worker_folder, used) as (worker,),
        measure.watching(api.process) as watch,
        measure.watching(psutil.Process(worker.pid)) as of_worker,
    ):
        begun = time.perf_counter()
        job_id = api.upload(file, "waiting")
        api.await_state(f"/api/jobs/{job_id}", "set", "discoveredAt")
        watch.seconds = time.perf_counter() - begun
    items, _ = database.counts(job_id)
    if items != count:
        raise measure.RunFailed(f"{items} of {count} rows are items")
    watch.peak_bytes += of_worker.peak_bytes
    return watch


def _by_command(ground: Ground, count: int) -> Watch:
    database = holdfast_runs.fresh_postgres(ground.servers, ground.folder)
    return holdfast_runs.ingest(database, ground.file(count), ground.folder)


def _memory(name: str, peak: float | None) -> Target:
    wanted = f"under {MOST_MEMORY} MB"
    if peak is None:
        return Target(f"{name}, memory", wanted, "not measured", None)
    megabytes = peak / MEGABYTE
    return Target(f"{name}, memory", wanted, f"{megabytes:.0f} MB", megabytes < MOST_MEMORY)
