"""Old finished items of standing jobs go, whatever happens to them at the same moment."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
import pytest

import holdfast
from holdfast.errors import NotThere
from holdfast.features.console import open_console
from holdfast.features.deletion.retention_rows import RetentionRows
from holdfast.features.rulings.rules import NewRuling
from holdfast.kernel import NewJob, Store
from holdfast.kernel.arrivals.enqueue import Addition
from holdfast.kernel.database.chunks import NamedItems
from holdfast.model import ItemStatus
from holdfast.rulings import RulingKind
from holdfast_client.adding import Enqueued
from holdfast_client.records import new_item
from tests.store.checks import (
    assert_sound,
    claim_one,
    execute,
    fetch,
    items_of,
    seqs_of,
    settle,
    statuses,
    work_off,
)
from tests.store.deletion_scenarios import age, delete_all, remove_old, traces_of
from tests.store.interleave import stopped, until_blocked

STANDING = NewJob("events", "events", [], standing=True)
REJECT = NewRuling(RulingKind.REJECT, None, "wrong", "ada", 0)
DONE, ERROR = ItemStatus.DONE, ItemStatus.ERROR


async def add(store: Store, *keys: str | None, value: int = 0) -> Enqueued:
    items = [new_item({"value": value}, key) for key in keys]
    return await store.additions.enqueue(Addition("events", "", items))


async def worked(store: Store, *keys: str | None, status: ItemStatus = DONE) -> list[int]:
    """Adds records, works them off and makes everything that is finished old; their numbers."""
    job_id, _ = await store.jobs.open(STANDING, "ada")
    before = await seqs(store, job_id)
    await add(store, *keys)
    await work_off(store, job_id, status)
    await age(store, "outcomes", "updated_at", "status <> 'PENDING'")
    return [seq for seq in await seqs(store, job_id) if seq not in before]


async def seqs(store: Store, job_id: int) -> list[int]:
    return [item.seq for item in await items_of(store, job_id)]


async def the_job(store: Store) -> int:
    job_id: int = (await fetch(store, "select id from jobs"))[0][0]
    return job_id


async def test_only_old_finished_items_of_standing_jobs_go(store: Store) -> None:
    old = await worked(store, "a", "b", None)
    job_id = await the_job(store)
    await add(store, "young")
    await work_off(store, job_id, ERROR)
    await add(store, "open")
    assert await remove_old(store, days=30) == 0
    assert await remove_old(store) == 3
    kept = await statuses(store, job_id)
    assert sorted(kept.values()) == [ERROR, ItemStatus.PENDING] and not set(old) & set(kept)
    counters = await store.reads.counters(job_id)
    assert (counters.accepted, counters.done, counters.error, counters.open) == (5, 3, 1, 1)
    assert (await store.reads.job(job_id)).removed == {"DONE": 3}
    await assert_sound(store, job_id)
    assert await work_off(store, job_id) == 1
    await assert_sound(store, job_id)


async def test_counters_are_compared_with_what_was_removed(store: Store) -> None:
    await worked(store, "a", "b")
    job_id = await the_job(store)
    assert await remove_old(store) == 2
    await execute(store, """update jobs set removed = '{"DONE": 1}'""")
    problems = (await store.reads.verify(job_id)).problems
    assert problems == ["accepted: counted 2, found 1", "done: counted 2, found 1"]
    await execute(store, """update jobs set removed = '{"DONE": 2}'""")


async def test_cancelled_job_keeps_its_items_and_adds_up(store: Store) -> None:
    await worked(store, "a", "b")
    job_id = await the_job(store)
    assert await remove_old(store) == 2
    await worked(store, "c")
    await add(store, "open")
    await store.jobs.cancel(job_id, "ada")
    assert await remove_old(store) == 0
    counters = await store.reads.counters(job_id)
    assert (counters.accepted, counters.done, counters.skipped) == (4, 3, 1)
    await assert_sound(store, job_id)
    await delete_all(store, job_id)
    assert await traces_of(store, job_id) == {}


async def test_item_with_a_decision_stays_even_if_it_was_revoked(store: Store) -> None:
    ruled, revoked, _ = await worked(store, "a", "b", "c")
    job = await store.reads.job(await the_job(store))
    rulings = open_console(store).rulings
    for seq in (ruled, revoked):
        await rulings.rule(job, seq, REJECT)
    revoke = NewRuling(RulingKind.REVOKE, None, "", "ada", 1)
    await rulings.rule(job, revoked, revoke)
    assert await remove_old(store) == 1
    assert await seqs(store, job.id) == [ruled, revoked]
    await assert_sound(store, job.id)


async def test_many_items_go_chunk_by_chunk_past_those_that_stay(store: Store) -> None:
    ruled = (await worked(store, *[None] * 1200))[:1100]
    job_id = await the_job(store)
    await execute(
        store,
        "insert into rulings (job_id, seq, version, kind, value, changes, reason, author, at)"
        " select job_id, seq, 1, 'reject', 'null', '{}', '', 'ada', @now from items"
        " where job_id = :j and seq <= :last",
        j=job_id,
        last=ruled[-1],
    )
    await worked(store, *[None] * 2000)
    (start,) = await RetentionRows(store.database).old_items(1.0)
    counts, old = [], start
    while old is not None:
        count, old = await RetentionRows(store.database).remove_items(old)
        counts.append(count)
    assert counts == [1000, 1000, 100]
    assert await seqs(store, job_id) == ruled
    await assert_sound(store, job_id)


async def test_repeated_key_is_new_after_its_item_was_removed(store: Store) -> None:
    await worked(store, "a")
    job_id = await the_job(store)
    assert (await add(store, "a")).known == 1
    assert await remove_old(store) == 1
    assert (await add(store, "a")).accepted == 1
    assert (await add(store, "a")).known == 1  # it is open again
    await assert_sound(store, job_id)


async def test_key_that_passed_to_a_later_item_stays_with_it(store: Store) -> None:
    (failed,) = await worked(store, "a", status=ERROR)
    job_id = await the_job(store)
    assert (await add(store, "a")).accepted == 1
    assert await remove_old(store) == 1
    (later,) = await seqs(store, job_id)
    assert later != failed
    assert await fetch(store, "select seq from keys") == [(later,)]
    assert (await add(store, "a")).known == 1


async def test_range_that_is_being_worked_loses_only_what_is_settled(store: Store) -> None:
    job_id, _ = await store.jobs.open(STANDING, "ada")
    await add(store, *[None] * 4)
    claimed = await claim_one(store, job_id)
    first, *rest = seqs_of(claimed)
    await settle(store, claimed, only=[first])
    await age(store, "outcomes", "updated_at", "true")
    assert await remove_old(store) == 1
    await assert_sound(store, job_id)
    await store.workers.stop_worker("one")  # the worker dies
    again = await claim_one(store, job_id)
    assert seqs_of(again) == rest
    await settle(store, again)
    await assert_sound(store, job_id)
    assert (await store.reads.counters(job_id)).done == 4


async def test_reprocess_that_comes_first_keeps_the_item(store: Store, database_url: str) -> None:
    seq, _ = await worked(store, "a", "b")
    job_id = await the_job(store)

    async def reprocess(other: Store) -> Any:
        return await other.jobs.reprocess(job_id, NamedItems([seq]), "ada")

    async with stopped(database_url, "reprocess", "commit", reprocess) as other:
        removing = asyncio.create_task(remove_old(store))
        await until_blocked(store, removing)
        assert (await other.go_on()).opened == 1
        assert await removing == 1
    assert await statuses(store, job_id) == {seq: ItemStatus.PENDING}
    await assert_sound(store, job_id)
    assert await work_off(store, job_id) == 1


async def test_reprocess_that_comes_second_finds_the_item_gone(
    store: Store, database_url: str
) -> None:
    seq, _ = await worked(store, "a", "b")
    job_id = await the_job(store)
    async with stopped(database_url, "remove_items", "commit", remove_old) as other:
        opening = asyncio.create_task(store.jobs.reprocess(job_id, NamedItems([seq]), "ada"))
        await until_blocked(store, opening)
        assert await other.go_on() == 2
        assert (await opening)[:2] == (0, 1)
    assert not {"items", "outcomes", "ranges", "keys"} & set(await traces_of(store, job_id))
    await assert_sound(store, job_id)


async def test_decision_that_comes_first_keeps_the_item(store: Store, database_url: str) -> None:
    seq, _ = await worked(store, "a", "b")
    job = await store.reads.job(await the_job(store))

    async def rule(other: Store) -> Any:
        return await open_console(other).rulings.rule(job, seq, REJECT)

    async with stopped(database_url, "rule", "commit", rule) as other:
        removing = asyncio.create_task(remove_old(store))
        await until_blocked(store, removing)
        await other.go_on()
        assert await removing == 1
    assert await seqs(store, job.id) == [seq]
    await assert_sound(store, job.id)


async def test_decision_that_comes_second_finds_the_item_gone(
    store: Store, database_url: str
) -> None:
    seq, _ = await worked(store, "a", "b")
    job = await store.reads.job(await the_job(store))
    async with stopped(database_url, "remove_items", "commit", remove_old) as other:
        ruling = asyncio.create_task(open_console(store).rulings.rule(job, seq, REJECT))
        await until_blocked(store, ruling)
        await other.go_on()
        with pytest.raises(NotThere, match=f"no item {seq}"):
            await ruling
    assert "rulings" not in await traces_of(store, job.id)


async def test_changed_record_that_comes_during_a_removal_is_not_lost(
    store: Store, database_url: str
) -> None:
    await worked(store, "a")
    job_id = await the_job(store)
    async with stopped(database_url, "remove_items", "commit", remove_old) as other:
        adding = asyncio.create_task(add(store, "a", value=1))
        await until_blocked(store, adding)
        assert await other.go_on() == 1
        assert (await adding).accepted == 1
    (later,) = await seqs(store, job_id)
    assert await fetch(store, "select seq from keys") == [(later,)]
    await assert_sound(store, job_id)


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
async def test_open_transaction_of_an_application_is_not_waited_for(
    store: Store, database_url: str
) -> None:
    """It is about to give the key of an old item to another; on SQLite there is one writer."""
    failed, _ = await worked(store, "a", "b", status=ERROR)
    job_id = await the_job(store)
    connection = await asyncpg.connect(database_url)
    transaction = connection.transaction()
    await transaction.start()
    added = await holdfast.aenqueue(connection, "events", [{"value": 0}], key=lambda _: "a")
    assert added.accepted == 1
    assert await remove_old(store) == 1
    assert await seqs(store, job_id) == [failed]
    await transaction.rollback()
    assert await fetch(store, "select seq from keys") == [(failed,)]
    await connection.close()
    assert await remove_old(store) == 1
    await assert_sound(store, job_id)


async def test_two_processes_remove_each_item_once(store: Store, database_url: str) -> None:
    await worked(store, *"abc")
    job_id = await the_job(store)
    async with stopped(database_url, "remove_items", "commit", remove_old) as other:
        removing = asyncio.create_task(remove_old(store))
        await until_blocked(store, removing)
        assert await other.go_on() == 3
        assert await removing == 0
    assert (await store.reads.job(job_id)).removed == {"DONE": 3}
    await assert_sound(store, job_id)
