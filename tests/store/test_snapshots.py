"""What a backup reads: as `pg_dump`, it takes its snapshot first and reads the tables later."""

from __future__ import annotations

from holdfast.kernel import NewJob, Store
from holdfast.kernel.arrivals.enqueue import Addition
from holdfast.kernel.database.driver import Transaction
from holdfast.model import ItemStatus
from holdfast_client.records import new_item
from tests.store.checks import claim, settle, spelled, work_off

STANDING = NewJob("events", "events", [], standing=True)

#: Items that would never run: without an outcome, and in no range.
LOST = """
select i.seq
from   items i
where  not exists (select 1 from outcomes o where o.job_id = i.job_id and o.seq = i.seq)
       and not exists (select 1 from ranges r
                       where r.job_id = i.job_id and i.seq between r.lo and r.hi)
"""
COUNTS = "select sum(accepted), sum(coalesce(done, 0)) from counters"


async def _add(store: Store, count: int) -> None:
    for number in range(count):
        await store.additions.enqueue(Addition("events", "", [new_item({"n": number})]))


async def test_a_snapshot_has_every_record_whatever_comes_after_it(store: Store) -> None:
    job_id, _ = await store.jobs.open(STANDING, "ada")
    await _add(store, 5)
    await settle(store, (await claim(store, job_id, 1))[0], ItemStatus.DONE)
    await _add(store, 40)
    async with store.database.driver.reading() as backup:
        items = spelled(store, "select seq from items order by seq")
        before = await _seen(backup, items)
        for _ in range(3):
            await _add(store, 20)
            await work_off(store, job_id)
            await store.counter_rows.fold()
            await store.workers.free_left_behind()
        assert await _seen(backup, items) == before
        assert await _seen(backup, spelled(store, LOST)) == []
        assert await _seen(backup, spelled(store, COUNTS)) == [(45, 1)]
        assert len(await _seen(backup, spelled(store, "select id from ranges"))) == 44
    assert (await store.reads.counters(job_id)).done == 105


async def _seen(backup: Transaction, sql: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in await backup.fetch(sql)]
