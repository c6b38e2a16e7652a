"""The tables of meetings: up, down and up again with data in each, and core is left alone."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.store import Store, open_store
from holdfast.store.migrate import downgrade, require_current, status, upgrade
from holdfast.text_search import TextIndex
from tests.store.checks import execute, fetch, make_job, tables_of

ROWS = {
    "meetings_municipalities": (
        "(subdomain, name, url, zone, created_at, updated_at)"
        " select 'a.ca', 'A', 'https://a.example', 'UTC', created_at, created_at from jobs limit 1"
    ),
    "meetings_documents": (
        "(municipality_id, document_type, meeting, date)"
        " values (1, 'minutes', 'Council', '2026-01-01')"
    ),
    "meetings_pages": (
        "(document_id, municipality_id, document_type, number, upstream_id, content_hash, text,"
        " job_id) values (1, 1, 'minutes', 1, 'a', 'h', 'words', 1)"
    ),
    "meetings_page_history": (
        "(municipality_id, document_type, upstream_id, page_id, state, content_hash, text, job_id)"
        " values (1, 'minutes', 'b', 1, 'SUPERSEDED', 'h', 'words', 1)"
    ),
    "meetings_rejects": (
        "(municipality_id, document_type, upstream_id, job_id, seq)"
        " values (1, 'minutes', 'c', 1, 1)"
    ),
    "meetings_counts": (
        "(job_id, documents_created, pages_created, pages_updated, pages_unchanged, pages_rejected)"
        " values (1, 1, 1, 0, 0, 1)"
    ),
    "meetings_differences": "(job_id, kind, upstream_id) values (1, 'MISSING', 'd')",
    "meetings_search_queue": "(batch) values ('{}')",
}
TABLES = {*ROWS, "meetings_search"}


async def _fill(store: Store) -> None:
    await make_job(store)
    for table, row in ROWS.items():
        await execute(store, f"insert into {table} {row}")
    await store.database.write("test", lambda tx: tx.take("meetings_search_add", {"ids": [1]}))
    for table in TABLES:
        assert await fetch(store, f"select 1 from {table} limit 1"), f"{table} has data"


async def _tables(url: str, *, fill: bool = False) -> tuple[set[str], int]:
    store = await open_store(url)
    if fill:
        await _fill(store)
    tables = await tables_of(store)
    jobs = await fetch(store, "select id from jobs")
    await store.close()
    return {table for table in tables if table.startswith("meetings_")}, len(jobs)


@pytest.mark.parametrize("steps", [["base"], ["-1", "-1"]])
def test_up_down_and_up_again_with_data_in_every_table(database_url: str, steps: list[str]) -> None:
    before = status(database_url)
    assert asyncio.run(_tables(database_url, fill=True)) == (TABLES, 1)
    for step in steps:
        downgrade(database_url, "meetings", step)
    found = status(database_url)
    assert found["meetings"].current is None and found["core"] == before["core"]
    assert asyncio.run(_tables(database_url)) == (set(), 1)
    upgrade(database_url, "meetings")
    require_current(database_url)
    assert asyncio.run(_tables(database_url, fill=True)) == (TABLES, 2)


def test_step_back_keeps_the_data(database_url: str) -> None:
    asyncio.run(_tables(database_url, fill=True))
    downgrade(database_url, "meetings", "meetings_0001")

    async def text() -> str:
        store = await open_store(database_url)
        (row,) = await fetch(store, "select text from meetings_pages")
        await store.close()
        return str(row[0])

    assert asyncio.run(text()) == "words"
    upgrade(database_url)
    assert asyncio.run(text()) == "words"


async def test_batches_are_indexed_until_none_is_left(store: Store) -> None:
    index = TextIndex("meetings_search")
    await _fill(store)
    await execute(store, "delete from meetings_search_queue")
    batch = {"municipality_id": 1, "document_type": "minutes", "upstream_ids": ["a"]}
    await store.database.write("test", lambda tx: index.enqueue(tx, batch))
    assert await store.plans.tend(index.index_some)
    assert not await store.plans.tend(index.index_some)
    assert len(await fetch(store, "select rowid from meetings_search")) == 1
