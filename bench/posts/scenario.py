"""Processes events to stored analytics: how many items per second at full load, how long a batch
takes at half load, and whether memory stays flat."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import quantiles
from subprocess import Popen

import psutil
import psycopg
from obstore.store import S3Store

from bench import fleet_runs, measure
from bench.measure import RunFailed, python
from bench.posts import crawler
from bench.report import Result, Table, Target, at_most
from bench.scenarios.ground import Ground
from tests.names import whole_names
from tests.seaweedfs import ACCESS_KEY, SECRET_KEY, S3Server

WORKERS = 2
LEAST_RATE = 1000.0
MOST_SECONDS = 0.5
FLAT = 1.3
_PATIENCE = 3600.0
#: When memory is read: everything is loaded at the first.
_SHARES = (0.1, 0.25, 0.5, 0.75, 1.0)
MIB = 1024 * 1024


def run(ground: Ground) -> Result:
    result = Result("posts")
    # The whole run has a million items.
    full = max(20, ground.sizes.noop_items * 2 // crawler.ITEMS)
    half = max(20, full // 50)
    with S3Server([crawler.BUCKET]) as s3:
        seen = ground.attempt(result, "posts", _one_run, ground, s3, full, half)
    if seen is None:
        return result
    rate, seconds, memory = seen
    growth = memory[-1] / memory[0]
    table = Table(f"{full:,} batches of {crawler.ITEMS} posts, {WORKERS} workers", ("", "seen"))
    table.add("items a second, full load", f"{rate:,.0f}")
    table.add("p95 of a batch at half load", f"{seconds * 1000:,.0f} ms")
    for share, used in zip(_SHARES, memory, strict=True):
        items = int(full * share) * crawler.ITEMS
        table.add(f"memory after {items:,} items", f"{used / MIB:,.0f} MiB")
    table.add("memory at the end beside the beginning", f"{growth:.2f} ×")
    table.notes.append("Everything shares the machine: crawler, RabbitMQ, S3, PostgreSQL, relay.")
    result.tables.append(table)
    result.figures = {"items_per_second": rate, "p95_seconds": seconds, "memory_growth": growth}
    result.targets += [
        Target("items a second", f"at least {LEAST_RATE:,.0f}", f"{rate:,.0f}", rate >= LEAST_RATE),
        at_most("p95 of a batch at half load", seconds, MOST_SECONDS, "s"),
        at_most("memory at the end", growth, FLAT, "× the beginning"),
    ]
    return result


def _one_run(
    ground: Ground, s3: S3Server, full: int, half: int
) -> tuple[float, float, list[float]]:
    fleet = fleet_runs.fresh_fleet(ground.servers, ground.folder, messages=True)
    exchange = f"{fleet.broker['HOLDFAST_QUEUE_PREFIX']}-events"
    extra = {
        **fleet.settings,
        "HOLDFAST_S3_ENDPOINT": s3.endpoint,
        "HOLDFAST_S3_REGION": "us-east-1",
        "HOLDFAST_S3_ACCESS_KEY_ID": ACCESS_KEY,
        "HOLDFAST_S3_SECRET_ACCESS_KEY": SECRET_KEY,
        "HOLDFAST_POSTS_EXCHANGE": exchange,
        "HOLDFAST_POSTS_QUEUE": f"{exchange}-collected",
        "HOLDFAST_POSTS_LEGACY_QUEUE": "",
        "HOLDFAST_LOG_LEVEL": "error",
    }
    store = S3Store(
        crawler.BUCKET, endpoint=s3.endpoint, region="us-east-1", access_key_id=ACCESS_KEY,
        secret_access_key=SECRET_KEY, client_options={"allow_http": True},
    )  # fmt: skip
    asyncio.run(crawler.put_batches(store, "full", range(full)))
    asyncio.run(crawler.put_batches(store, "half", range(half)))
    commands = [
        python("holdfast", "work", "posts", "--processes", WORKERS),
        python("holdfast", "relay"),
    ]
    with measure.processes(commands, fleet.folder, extra) as started:
        _await(fleet.database.url, fleet.folder, "select count(*) from workers", WORKERS, started)
        time.sleep(3)  # the queue is declared after the worker is known
        url = ground.servers.amqp_url
        asyncio.run(crawler.publish(url, exchange, "full", range(full), 0))
        done = "select count(*) from posts_batches where state = 'DONE'"
        memory = []
        for share in _SHARES:
            _await(fleet.database.url, fleet.folder, done, int(full * share), started)
            memory.append(_memory(started))
        rate = _rate(fleet.database.url)
        pace = rate / crawler.ITEMS / 2
        asyncio.run(crawler.publish(url, exchange, "half", range(half), pace))
        _await(fleet.database.url, fleet.folder, done, full + half, started)
    return rate, _p95(fleet.database.url), memory


def _await(dsn: str, folder: Path, query: str, count: int, started: Sequence[Popen[bytes]]) -> None:
    deadline = time.monotonic() + _PATIENCE
    with psycopg.connect(dsn, autocommit=True) as connection:
        while True:
            row = connection.execute(whole_names(dsn, query)).fetchone()
            if row is not None and row[0] >= count:
                return
            if time.monotonic() > deadline or any(each.poll() is not None for each in started):
                raise RunFailed(measure.tail(folder))
            time.sleep(0.2)


def _memory(started: Sequence[Popen[bytes]]) -> float:
    """Returns the memory of all processes and their children."""
    parents = [psutil.Process(each.pid) for each in started]
    every = [p for parent in parents for p in (parent, *parent.children(recursive=True))]
    return float(sum(process.memory_info().rss for process in every))


def _rate(dsn: str) -> float:
    """Returns the rate from the first complete batch to the last."""
    query = (
        "select sum(items_count) - max(items_count),"
        " extract(epoch from max(finished_at) - min(finished_at))"
        " from holdfast.posts_batches where batch_key like '%/full/%'"
    )
    with psycopg.connect(dsn) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return float(row[0]) / float(row[1])


def _p95(dsn: str) -> float:
    query = (
        "select extract(epoch from finished_at - sent_at) from holdfast.posts_batches"
        " where batch_key like '%/half/%'"
    )
    with psycopg.connect(dsn) as connection:
        seconds = [float(row[0]) for row in connection.execute(query)]
    return quantiles(seconds, n=20)[18]
