"""Uploads against real databases: the controller of ingest batches sees what they measure."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
import structlog

from holdfast.cli.composition import discover_limits
from holdfast.clock import SystemClock
from holdfast.configuration import load_settings
from holdfast.errors import DatabaseGone
from holdfast.features.console import open_console
from holdfast.kernel import Store, open_store
from holdfast.kernel.jobs.control import Control, JobFile, JobRequest
from holdfast.kernel.record.discover import WalkParts
from holdfast.kernel.worker.own_walk import OwnWalk
from holdfast.observe.metrics import Metrics
from holdfast.pipeline import pipeline
from holdfast.tables.files import TableFile, content_key
from tests.proxy import Proxy
from tests.store.checks import assert_all_sound, fetch

PATIENCE_SECONDS = 180.0
#: Nothing but what a test is about makes batches smaller.
CALM = {
    "HOLDFAST_DB_P50_MS": "1000000",
    "HOLDFAST_DB_P95_MS": "1000000",
    "HOLDFAST_INGEST_MIN_ROWS": "8",
    "HOLDFAST_INGEST_MAX_ROWS": "64",
}


@pipeline(name="demo")
async def demo(row: dict[str, Any], ctx: Any) -> dict[str, Any]:
    return {}


async def upload(store: Store, path: Path, **settings_of_test: str) -> int:
    """Ingests the file as a job."""
    log, settings = structlog.get_logger(), load_settings(CALM | settings_of_test)
    key = content_key(path)
    request = JobRequest(demo, file=JobFile(path.name, str(path), key))
    job_id = await Control(store, "tester", log).start(request)
    clock, rng = SystemClock(), random.Random(1)
    walk = WalkParts(store, discover_limits(settings), clock, rng, Metrics(), log)
    with TableFile(path) as file:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await OwnWalk(walk, "one", file, asyncio.Event()).run(demo, job_id)
    return job_id


def table(folder: Path, rows: int) -> Path:
    path = folder / "rows.csv"
    path.write_text("title\n" + "".join(f"row {number}\n" for number in range(rows)))
    return path


async def ingest_decisions(store: Store, job_id: int) -> list[dict[str, Any]]:
    """The oldest first."""
    decisions = await open_console(store).jobs.decisions(job_id, 100)
    return [row for row in reversed(decisions) if row["what"] == "ingest batch"]


async def test_decisions_about_ingest_batches_are_recorded_with_the_job(
    store: Store, tmp_path: Path
) -> None:
    job_id = await upload(store, table(tmp_path, 500))
    decisions = await ingest_decisions(store, job_id)
    assert [(row["was"], row["became"]) for row in decisions[:3]] == [(8, 16), (16, 32), (32, 64)]
    assert all(row["why"] and row["worker"] == "one" for row in decisions)


@pytest.mark.exhaustive
@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
async def test_batches_follow_how_fast_the_database_is(database_url: str, tmp_path: Path) -> None:
    """Through a proxy: fast, they grow to the bound and stay there; slow, they stay between what it
    takes within the target and half of that."""
    bounds = {
        "HOLDFAST_INGEST_MIN_ROWS": "50",
        "HOLDFAST_INGEST_MAX_ROWS": "1600",
        "HOLDFAST_DB_P50_MS": "250",
        "HOLDFAST_DB_P95_MS": "2000",
    }
    async with Proxy(database_url) as proxy:
        store = await open_store(proxy.url)
        try:
            fast = await upload(store, table(tmp_path, 20_000), **bounds)
            proxy.bytes_per_second = 40_000
            slow = await upload(store, table(tmp_path, 8_000), **bounds)
        finally:
            await store.close()
    sizes = [decision["became"] for decision in await ingest_decisions_at(database_url, fast)]
    assert sizes == sorted(sizes) and sizes[-1] == 1600
    sizes = [decision["became"] for decision in await ingest_decisions_at(database_url, slow)]
    assert max(sizes) < 1600
    settled = sizes[len(sizes) // 2 :]
    assert max(settled) <= 3 * min(settled), sizes


async def ingest_decisions_at(url: str, job_id: int) -> list[dict[str, Any]]:
    store = await open_store(url)
    try:
        return await ingest_decisions(store, job_id)
    finally:
        await store.close()


async def test_page_that_the_database_did_not_confirm_is_sent_again_in_smaller_batches(
    database_url: str, tmp_path: Path
) -> None:
    store = await open_store(database_url, fault=failing(("ingest", "commit"), after=5, times=3))
    job_id = await upload(store, table(tmp_path, 500))
    assert (await store.reads.counters(job_id)).accepted == 500
    decisions = await ingest_decisions(store, job_id)
    failed = [row for row in decisions if row["why"] == "a batch failed"]
    assert failed and failed[0]["became"] <= failed[0]["was"] / 2
    await assert_all_sound(store)
    await store.close()


async def test_unreadable_rows_are_stored_exactly_once_whatever_fails(
    database_url: str, tmp_path: Path
) -> None:
    path = tmp_path / "rows.jsonl"
    good, bad = "".join(f'{{"a":{n}}}\n' for n in range(30)), "{broken\n"
    path.write_text((good + bad) * 12)
    with TableFile(path) as file:
        expected = [text for page in file.pages(0, lambda: 50, 10**6) for text in page.inputs]
    store = await open_store(database_url, fault=failing(("ingest", "commit"), after=3, times=4))
    job_id = await upload(store, path)
    rows = await fetch(store, "select input from items order by seq")
    assert [row[0] for row in rows] == expected
    assert len(expected) == 372
    assert sum("_bad_row" in text for text in expected) == 12
    (stream,) = await store.streams.of_job(job_id)
    assert orjson.loads(stream.cursor)["page"] == {"row": 372, "bad": 12}
    await assert_all_sound(store)
    await store.close()


def failing(point: tuple[str, str], *, after: int, times: int) -> Callable[[str, str], None]:
    """The database is gone at this point, several times in a row."""
    calls = 0

    def fault(verb: str, query: str) -> None:
        nonlocal calls
        if (verb, query) == point:
            calls += 1
            if after < calls <= after + times:
                raise DatabaseGone("restarting")

    return fault
