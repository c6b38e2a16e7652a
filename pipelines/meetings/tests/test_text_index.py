"""Pages of meetings are indexed in the background."""

from __future__ import annotations

from holdfast.kernel import Store
from holdfast.text_search import TextIndex
from pipelines.meetings.tests.sample_rows import ROWS
from tests.store.checks import execute, fetch, make_job


async def _fill(store: Store) -> None:
    await make_job(store)
    for table, row in ROWS.items():
        await execute(store, f"insert into {table} {row}")


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
