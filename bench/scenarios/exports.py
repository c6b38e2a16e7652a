"""Measures exports through the API: how fast they are, and how much memory the server needs."""

from __future__ import annotations

import time
from statistics import median

from bench import api_runs, holdfast_runs, measure
from bench.api_runs import Api
from bench.report import Result, Table, Target, per_second
from bench.scenarios.ground import Ground

FORMATS = {"csv": 40_000, "xlsx": 10_000, "jsonl": None}  # rows/s to reach
MEGABYTE = 1_000_000
FLAT = 1.15  # how much memory may grow at most from the small export to the large one


def run(ground: Ground) -> Result:
    result = Result("exports")
    columns = ("format", "rows", "s", "rows/s", "MB of file", "MB resident at most")
    table = Table("Exports through the API, on PostgreSQL", columns)
    for count in ground.sizes.export_rows:
        ground.attempt(result, f"exports of {count:,} rows", _measure, ground, result, table, count)
    table.notes += [
        "From the request to the last byte of the download. MB resident: of the API's process,",
        "which is started anew for each; the middle of three for the seconds.",
    ]
    result.tables.append(table)
    for format, wanted in FORMATS.items():
        _add_targets(ground, result, format, wanted)
    return result


def _measure(ground: Ground, result: Result, table: Table, count: int) -> None:
    database = holdfast_runs.fresh_postgres(ground.servers, ground.folder)
    holdfast_runs.ingest(database, ground.file(count), ground.folder)
    holdfast_runs.work(database, 2, ground.folder)
    database.settle_down()
    job_id = database.newest_job()
    for format in FORMATS:
        seconds, size = [], 0
        with (
            api_runs.running(database, ground.folder) as api,
            measure.watching(api.process) as watch,
        ):
            for _ in range(ground.sizes.rounds):
                begun = time.perf_counter()
                size = _export(api, job_id, format, count)
                seconds.append(time.perf_counter() - begun)
        middle, name = median(seconds), f"{format} {count}"
        result.figures |= {f"{name} rows/s": count / middle, f"{name} bytes": watch.peak_bytes}
        rate, megabytes = per_second(count / middle), f"{watch.peak_bytes / MEGABYTE:.0f}"
        table.add(format, f"{count:,}", f"{middle:.2f}", rate, f"{size / MEGABYTE:.1f}", megabytes)


def _export(api: Api, job_id: int, format: str, count: int) -> int:
    made = api.post(f"/api/jobs/{job_id}/export", format=format)
    told = api.await_state(f"/api/exports/{made['id']}", "DONE")
    if told["rowsCount"] != count:
        raise measure.RunFailed(f"an export of {count} rows has {told['rowsCount']}")
    return api.download(told["download"])


def _add_targets(ground: Ground, result: Result, format: str, wanted: int | None) -> None:
    small, large = ground.sizes.export_rows
    rate = result.figures.get(f"{format} {small} rows/s")
    if wanted is not None:
        seen = "not measured" if rate is None else f"{rate:,.0f} rows/s"
        met = None if rate is None else rate >= wanted
        name = f"export of {small:,} rows, {format}"
        result.targets.append(Target(name, f"at least {wanted:,} rows/s", seen, met))
    before = result.figures.get(f"{format} {small} bytes")
    after = result.figures.get(f"{format} {large} bytes")
    name = f"export, {format}, memory of {large:,} rows"
    words = f"at most {FLAT} × that of {small:,}"
    if before is None or after is None:
        result.targets.append(Target(name, words, "not measured", None))
        return
    growth = after / before
    result.targets.append(Target(name, words, f"{growth:.2f} ×", growth <= FLAT))
