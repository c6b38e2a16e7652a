"""Backfills a very large municipality: from a Datasette through to the pages table."""

from __future__ import annotations

import asyncio
import shutil
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import structlog

from bench import holdfast_runs, measure
from bench.holdfast_runs import Postgres
from bench.measure import RunFailed, Watch, python
from bench.meetings.site import make_site, serving
from bench.report import Result, Table, at_least, at_most, per_second, ratio
from bench.scenarios.ground import QUICK, Ground
from bench.servers import free_port
from holdfast.kernel import open_store
from holdfast.kernel.jobs.control import Control
from holdfast.observe.log import configure
from holdfast_meetings.pipeline import Meetings
from tests.names import whole_names

_TOWN = "largest.ca"
_PAGES, _QUICK_PAGES = 547_000, 20_000
_CONTENDER = "contender"
_OTHERS = 1000
_ORDERS = 40
_MEGABYTE = 1024 * 1024
_PATIENCE = 3600.0  # seconds; indexing all words takes several times as long as the pages


@dataclass(frozen=True, slots=True)
class Backfilled:
    """Seconds until the last page was written, until it was proven, until all is indexed."""

    pages: float
    proof: float
    index: float
    peak_bytes: int


def run(ground: Ground) -> Result:
    result = Result("meetings")
    count = _QUICK_PAGES if ground.sizes is QUICK else _PAGES
    ground.say(f"a site of {count:,} pages")
    folder = ground.folder / "site"
    folder.mkdir()
    site = make_site(folder, count)
    with serving(folder, site, free_port()) as url:
        seconds = _contenders(ground, result, url)
        database = holdfast_runs.fresh_postgres(ground.servers, ground.folder)
        own = ground.attempt(result, "Holdfast, full", _full, ground, database, url, count)
        again = ground.attempt(result, "Holdfast, incremental", _incremental, ground, database)
    orders = ground.attempt(result, f"{_OTHERS:,} municipalities", _order_times, database)
    shutil.rmtree(folder)
    _tell(result, count, seconds, own, again, orders)
    return result


def _contenders(ground: Ground, result: Result, url: str) -> dict[str, float]:
    """Measures whole processes, from start to end, each with a server that has nothing else to
    do."""
    seconds = {}
    for name, module, more in (
        ("bare download", "bench.meetings.download", []),
        ("bulk_create", "bench.meetings.bulk_create", ["DATABASE"]),
        ("dlt", "bench.meetings.dlt_merge", ["DATABASE", str(ground.folder / "dlt")]),
    ):
        database = ground.servers.fresh_database(_CONTENDER)
        arguments = [database if word == "DATABASE" else word for word in more]
        command = python(module, url, *arguments)
        watch = ground.attempt(
            result, name, measure.run_to_end, [command], ground.folder, {}, _PATIENCE
        )
        if watch is not None:
            seconds[name] = watch.seconds
    ground.servers.drop_database(_CONTENDER)
    return seconds


def _settings(database: Postgres, folder: Path) -> dict[str, str]:
    return {
        "HOLDFAST_DATABASE_URL": database.url,
        "HOLDFAST_DATA_DIR": str(folder / "data"),
        "HOLDFAST_ALLOW_PRIVATE_ADDRESSES": "true",
        "HOLDFAST_MEETINGS_REBUILD_SECONDS": "1",
    }


def _holdfast(ground: Ground, database: Postgres, *arguments: str) -> Watch:
    settings = _settings(database, ground.folder)
    command = python("holdfast", *arguments)
    return measure.run_to_end([command], ground.folder, settings, _PATIENCE)


def _full(ground: Ground, database: Postgres, url: str, count: int) -> Backfilled:
    _holdfast(ground, database, "meetings", "add", _TOWN, "--url", url)
    _holdfast(ground, database, "meetings", "backfill", _TOWN, "--no-work")
    started = _one(database, "select extract(epoch from clock_timestamp())")
    watch = _holdfast(ground, database, "work", "meetings", "--until-idle")
    stored = int(_one(database, "select count(*) from meetings_pages"))
    if stored != count:
        raise RunFailed(f"{stored:,} of {count:,} pages are stored. {measure.tail(ground.folder)}")
    written = _one(database, "select extract(epoch from max(created_at)) from meetings_pages")
    proven = _one(
        database,
        "select extract(epoch from verified_at) from streams"
        f" where source = '{_TOWN}:minutes' and mode = 'full'",
    )
    return Backfilled(
        written - started, proven - written, started + watch.seconds - proven, watch.peak_bytes
    )


def _incremental(ground: Ground, database: Postgres) -> float:
    _holdfast(ground, database, "meetings", "backfill", _TOWN, "--no-work")
    watch = _holdfast(ground, database, "work", "meetings", "--until-idle")
    state = "select count(*) from jobs where mode = 'incremental' and state = 'DONE'"
    if _one(database, state) != 2:
        raise RunFailed(f"the incremental pass did not end well. {measure.tail(ground.folder)}")
    return watch.seconds


def _one(database: Postgres, query: str) -> float:
    with psycopg.connect(database.url) as connection:
        found = connection.execute(whole_names(database.url, query)).fetchone()
    return float(found[0] or 0) if found else 0.0


def _order_times(database: Postgres) -> tuple[float, float]:
    """Returns the median seconds of one decision, with one municipality and with a thousand
    more."""
    return asyncio.run(_decide(database.url))


async def _decide(url: str) -> tuple[float, float]:
    configure("error")
    store = await open_store(url)
    try:
        control = Control(store, "bench", structlog.get_logger())
        pipeline = Meetings()
        few = await _middle(control, pipeline)
        for number in range(_OTHERS):
            report = {"subdomain": f"town-{number}.ca", "name": f"Town {number}", "pages": number}
            await control.request(pipeline, {"webhook": report})
        # What autovacuum does within a minute: until then plans are those for empty tables.
        await store.database.fetch("analyze")
        return few, await _middle(control, pipeline)
    finally:
        await store.close()


async def _middle(control: Control, pipeline: Meetings) -> float:
    seconds = []
    request: dict[str, Any] = {"backfill": _TOWN, "dry_run": True}
    for _ in range(_ORDERS):
        started = time.monotonic()
        await control.request(pipeline, request)
        seconds.append(time.monotonic() - started)
    return statistics.median(seconds)


def _tell(
    result: Result,
    count: int,
    seconds: dict[str, float],
    own: Backfilled | None,
    again: float | None,
    orders: tuple[float, float] | None,
) -> None:
    rates = {name: count / taken for name, taken in seconds.items()}
    if own is not None:
        rates["Holdfast"] = count / own.pages
        result.figures |= {"proof seconds": own.proof, "index seconds": own.index}
    result.figures |= rates
    table = Table(f"A site of {count:,} pages into PostgreSQL", ("way", "rows/s", "seconds"))
    for name, rate in rates.items():
        table.add(name, per_second(rate), f"{count / rate:.1f}")
    if own is not None:
        table.notes.append(
            f"Then {own.proof:.1f} s for the proof that nothing is missing, and {own.index:.1f} s "
            "until all words are indexed."
        )
    result.tables.append(table)
    bare, mine = rates.get("bare download"), rates.get("Holdfast")
    peak = None if own is None else own.peak_bytes / _MEGABYTE
    slower = None if orders is None else orders[1] / orders[0]
    result.targets += [
        at_most("meetings, full", ratio(bare, mine), 2, "times the bare download"),
        at_least("meetings, full", ratio(mine, rates.get("bulk_create")), 2, "bulk_create's rate"),
        at_least("meetings, full", ratio(mine, rates.get("dlt")), 5, "dlt's rate"),
        at_most("meetings, memory of the worker", peak, 250, "MB"),
        at_most("meetings, incremental", again, 60, "s"),
        at_most("meetings, a decision among 1,001 towns", slower, 2, "times one among one"),
    ]
