"""Processes items while people watch: the same job with no live page open and with many."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from statistics import median

from bench import api_runs, holdfast_runs, measure
from bench.api_runs import Api
from bench.measure import RunFailed, python
from bench.report import Result, Table, at_least, per_second, ratio, times
from bench.scenarios.ground import Ground

WORKERS = 2
LEAST_SHARE = 0.9
OPEN_SECONDS = 60.0


def run(ground: Ground) -> Result:
    result = Result("live")
    count, pages = ground.sizes.live_items, ground.sizes.live_pages
    found = defaultdict[str, list[float]](list)
    cores = defaultdict[str, list[float]](list)
    names = {0: "no live page", pages: f"{pages} live pages"}
    for _ in range(ground.sizes.rounds):
        for opened, name in names.items():
            seen = ground.attempt(result, name, _one_run, ground, count, opened)
            if seen is not None:
                found[name].append(seen[0])
                cores[name].append(seen[1])
    columns = ("", "items/s", "of it without", "cores that the API used")
    table = Table(f"{count:,} no-op items beside the API, {WORKERS} workers, PostgreSQL", columns)
    result.figures = {name: median(values) for name, values in found.items()}
    alone, watched = (result.figures.get(name) for name in names.values())
    for name, rate in result.figures.items():
        share = times(ratio(rate, alone))
        table.add(name, per_second(rate), share, f"{median(cores[name]):.2f}")
    table.notes.append(
        "The API serves in both; live pages are connections to /api/events that are read on."
    )
    result.tables.append(table)
    target = at_least(
        f"processing beside {pages} live pages", ratio(watched, alone), LEAST_SHARE, "without"
    )
    result.targets.append(target)
    return result


def _one_run(ground: Ground, count: int, opened: int) -> tuple[float, float]:
    """Returns the items per second, and the cores that the API's process used at the same time."""
    database = holdfast_runs.fresh_postgres(ground.servers, ground.folder)
    holdfast_runs.ingest(database, ground.file(count), ground.folder)
    database.settle_down()
    with (
        api_runs.running(database, ground.folder) as api,
        _live_pages(ground, api, opened) if opened else nullcontext(),
    ):
        used, begun = api.cpu_seconds(), time.perf_counter()
        rate = holdfast_runs.work(database, WORKERS, ground.folder).rate
        cores = (api.cpu_seconds() - used) / (time.perf_counter() - begun)
    return rate.per_second, cores


@contextmanager
def _live_pages(ground: Ground, api: Api, count: int) -> Iterator[None]:
    folder = ground.folder / "live"
    folder.mkdir(exist_ok=True)
    command = python("bench.live_pages", api.port, api.token, count)
    with measure.processes([command], folder) as (process,):
        deadline = time.monotonic() + OPEN_SECONDS
        while "all pages are live" not in measure.tail(folder):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RunFailed(f"the live pages did not open. {measure.tail(folder)}")
            time.sleep(0.1)
        yield
        if process.poll() is not None:
            raise RunFailed(f"the live pages were closed. {measure.tail(folder)}")
