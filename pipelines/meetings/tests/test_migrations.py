"""The tables of meetings: a step back keeps their data, and pages are indexed in the background.

That they go and come back with data in them is in tests/extension/test_contract.py."""

from __future__ import annotations

import asyncio

from holdfast.store import Store, open_store
from holdfast.store.migrate import downgrade, upgrade
from holdfast.text_search import TextIndex
from pipelines.meetings.tests.sample_rows import ROWS
from tests.store.checks import execute, fetch, make_job


async def _fill(store: Store) -> None:
    await make_job(store)
    for table, row in ROWS.items():
        await execute(store, f"insert into {table} {row}")


async def _fill_database(url: str) -> None:
    store = await open_store(url)
    await _fill(store)
    await store.close()


def test_step_back_keeps_the_data(database_url: str) -> None:
    asyncio.run(_fill_database(database_url))
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
    for table in ("meetings_search", "meetings_search_queue"):
        await execute(store, f"delete from {table}")
    batch = {"municipality_id": 1, "document_type": "minutes", "upstream_ids": ["a"]}
    await store.database.write("test", lambda tx: index.enqueue(tx, batch))
    assert await store.plans.tend(index.index_some)
    assert not await store.plans.tend(index.index_some)
    assert len(await fetch(store, "select rowid from meetings_search")) == 1
