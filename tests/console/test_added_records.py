"""Lists, quotas and counts of jobs whose records an application added."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import psycopg

import holdfast
from holdfast.features.console import open_console
from holdfast.kernel import NewJob, Store
from tests.store.checks import work_off

STANDING = NewJob("events", "events", [], standing=True, owner_id="ada")


def _added(url: str, count: int) -> int:
    rows = [{"id": number} for number in range(count)]
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection, connection:
            return holdfast.enqueue(connection, "events", rows).accepted
    with psycopg.connect(url) as application:
        return holdfast.enqueue(application, "events", rows).accepted


async def test_records_of_applications_count_as_open_until_they_are_processed(
    store: Store, database_url: str
) -> None:
    job_id, _ = await store.jobs.open(STANDING, "ada")
    console = open_console(store)
    for open_items, finished in ((3, 0), (5, 3)):
        _added(database_url, open_items)
        (job,) = await console.jobs.page("ada", 10)
        assert (job.counters.open, job.counters.done) == (open_items, finished)
        assert await console.items.pending_count("ada", None, 0) == open_items
        assert (await console.quotas.used("ada")).items == open_items
        await work_off(store, job_id)
    assert await console.items.pending_count(None, None, 0) == 0
