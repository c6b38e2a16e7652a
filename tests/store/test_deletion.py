"""Deleted jobs leave nothing but their audit, also while others work, and take no other rows."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from dataclasses import replace

import asyncpg
import pytest
import structlog

import holdfast
from holdfast.errors import LeaseLost, NotThere
from holdfast.features.console import open_console
from holdfast.features.deletion.deleter import Deleter
from holdfast.features.deletion.job_rows import JobRows
from holdfast.features.deletion.rules import DeletionRows
from holdfast.features.jobs.reads import Left
from holdfast.features.rulings.rules import NewRuling
from holdfast.kernel import NewJob, Store
from holdfast.kernel.arrivals.enqueue import Addition
from holdfast.model import ItemStatus, JobState
from holdfast.pipeline import Dedupe
from holdfast.rulings import Ruling, RulingKind
from holdfast_client.records import new_item
from tests.store.checks import (
    assert_all_sound,
    claim,
    claim_one,
    execute,
    fetch,
    filled_job,
    ingest,
    keyed,
    lease_stream,
    make_job,
    records,
    settle,
    state_of,
)
from tests.store.deletion_scenarios import KEYS, TABLES_OF_JOBS, delete_all, rich_job, traces_of
from tests.store.interleave import stopped, until_blocked


def deleter(store: Store, removed: list[str]) -> Deleter:
    async def remove(key: str) -> None:
        removed.append(key)

    return Deleter(store, remove, structlog.get_logger())


async def test_nothing_of_a_deleted_job_is_left_but_its_audit(store: Store) -> None:
    job_id, other = await rich_job(store), await rich_job(store, "another")
    before = await traces_of(store, other)
    # A table that `rich_job` leaves empty would not be noticed if its rows stayed.
    assert set(await traces_of(store, job_id)) >= {*TABLES_OF_JOBS}
    removed: list[str] = []
    await execute(store, "update exports set key = 'exports/1' where job_id = :j", j=job_id)
    deletion = deleter(store, removed)
    assert await deletion.begin(job_id, "ada") is JobState.DELETING
    await deletion.look()
    assert await traces_of(store, job_id) == {}
    assert await traces_of(store, other) == before
    assert removed == ["exports/1"]
    acts = await fetch(
        store, "select actor, action from audit where job_id = :j order by id", j=job_id
    )
    assert [tuple(act) for act in acts][-2:] == [("ada", "delete"), ("engine", "job.deleted")]
    with pytest.raises(NotThere):
        await deletion.begin(job_id, "ada")
    await assert_all_sound(store)


async def test_stream_histories_go_with_their_job(store: Store) -> None:
    job_id = await rich_job(store)
    await delete_all(store, job_id)
    assert await fetch(store, "select 1 from stream_pages") == []
    assert await fetch(store, "select 1 from stream_slices") == []


async def test_keys_of_a_deleted_job_are_new_again_and_those_of_others_are_not(
    store: Store,
) -> None:
    job_id = await rich_job(store)
    later = await make_job(store)
    stream = await lease_stream(store, later)
    changed = await ingest(store, stream, keyed("a", content="other"), Dedupe("demo"))
    assert changed.accepted == 1  # the key names an item of the later job now
    await delete_all(store, job_id)
    again = await ingest(store, stream, keyed(*KEYS), Dedupe("demo"), end=True)
    assert (again.accepted, again.known) == (4, 0)  # b, c, d; a has another content again
    assert {row[0] for row in await fetch(store, "select job_id from keys")} == {later}


async def test_worker_that_holds_a_range_writes_nothing_any_more(store: Store) -> None:
    job_id = await filled_job(store, 6)
    claimed = await claim_one(store, job_id)
    await JobRows(store.database).mark(job_id, "ada")
    assert await settle(store, claimed) == [claimed.lease]
    await delete_all(store, job_id)
    assert await settle(store, claimed) == [claimed.lease]
    assert await traces_of(store, job_id) == {}


async def test_discovery_of_a_deleted_job_adds_nothing(store: Store) -> None:
    job_id = await make_job(store)
    stream = await lease_stream(store, job_id)
    await JobRows(store.database).mark(job_id, "ada")
    with pytest.raises(LeaseLost):
        await ingest(store, stream, records(3))
    await delete_all(store, job_id)
    with pytest.raises(LeaseLost):
        await store.ingest._take_sequence(job_id, 1)
    assert await traces_of(store, job_id) == {}


async def test_what_an_application_commits_after_a_deletion_goes_too(
    store: Store, database_url: str
) -> None:
    """On SQLite a deletion waits for the process that writes."""
    new = NewJob("events", "events", [], standing=True)
    job_id, _ = await store.jobs.open(new, "ada")
    other, _ = await store.jobs.open(replace(new, pipeline="others"), "ada")
    await store.additions.enqueue(Addition("others", "", [new_item({"n": 1})]))
    deletion = deleter(store, [])
    if store.database.driver.dialect == "postgres":
        connection = await asyncpg.connect(database_url)
        async with connection.transaction(isolation="repeatable_read"):
            await holdfast.aenqueue(connection, "events", [{"n": n} for n in range(3)], key="n")
            await delete_all(store, job_id)
            await deletion.look()
            await holdfast.aenqueue(connection, "events", [{"n": 4}])
        await connection.close()
        assert set(await traces_of(store, job_id)) >= {"items", "keys", "ranges", "counters"}
        await deletion.look()
    else:
        await deletion.begin(job_id, "ada")
        with pytest.raises(NotThere, match="no standing job"):
            await store.additions.enqueue(Addition("events", "", [new_item({"n": 1})]))
        await deletion.look()
    assert await traces_of(store, job_id) == {}
    assert set(await traces_of(store, other)) >= {"items", "ranges", "counters", "jobs"}


async def test_job_that_is_being_deleted_accepts_no_records(store: Store) -> None:
    job_id, _ = await store.jobs.open(NewJob("events", "events", [], standing=True), "ada")
    await JobRows(store.database).mark(job_id, "ada")
    for key in (None, "a"):
        with pytest.raises(NotThere, match="no standing job"):
            await store.additions.enqueue(Addition("events", "", [new_item({"n": 1}, key)]))


async def test_deleting_job_takes_no_orders(store: Store) -> None:
    job_id = await filled_job(store, 2)
    await JobRows(store.database).mark(job_id, "ada")
    for order in (store.jobs.pause, store.jobs.resume, store.jobs.cancel):
        with suppress(Exception):
            await order(job_id, "ada")
        assert await state_of(store, job_id) is JobState.DELETING
    assert await store.outcomes.complete(job_id) is None
    assert await open_console(store).jobs.left_to_delete(job_id) == Left(2, 2)


async def test_what_is_left_of_a_standing_job_is_counted(store: Store) -> None:
    """Its items may have any numbers."""
    job_id, _ = await store.jobs.open(NewJob("events", "events", [], standing=True), "ada")
    other = NewJob("others", "others", [], standing=True)
    await store.jobs.open(other, "ada")
    for pipeline in ("events", "others", "events"):
        await store.additions.enqueue(Addition(pipeline, "", [new_item({"n": 1})] * 3))
    await JobRows(store.database).mark(job_id, "ada")
    assert await open_console(store).jobs.left_to_delete(job_id) == Left(6, 6)
    while await JobRows(store.database).delete_items(job_id):
        pass
    assert await open_console(store).jobs.left_to_delete(job_id) == Left(0, 6)


async def test_decision_that_is_not_committed_does_not_escape_a_deletion(
    store: Store, database_url: str
) -> None:
    job_id = await filled_job(store, 2)
    job = await store.reads.job(job_id)
    ruling = NewRuling(RulingKind.REJECT, None, "wrong", "ada", 0)

    async def decide(other: Store) -> Ruling:
        return await open_console(other).rulings.rule(job, 1, ruling)

    async def delete() -> None:
        await deleter(store, []).begin(job_id, "ada")
        await deleter(store, []).look()

    async with stopped(database_url, "rule", "add_ruling", decide) as other:
        deleting = asyncio.create_task(delete())
        await until_blocked(store, deleting)
        assert (await other.go_on()).version == 1
        await deleting
    assert await traces_of(store, job_id) == {}
    with pytest.raises(NotThere, match="has no item"):
        await decide(store)


@pytest.mark.parametrize("seed", range(3))
async def test_workers_race_a_deletion_and_lose_nothing_of_other_jobs(
    store: Store, seed: int
) -> None:
    rng = random.Random(seed)
    jobs = [await filled_job(store, 40, 40) for _ in range(3)]
    doomed = jobs[1]

    async def work(name: str) -> None:
        while True:
            rng.shuffle(jobs)
            claims = [c for job in list(jobs) for c in await claim(store, job, 7, name)]
            if not claims:
                return
            for claimed in claims:
                status = rng.choice([ItemStatus.DONE, ItemStatus.ERROR, ItemStatus.PENDING])
                await settle(store, claimed, status, worker=name)

    async def delete() -> None:
        for _ in range(rng.randrange(6)):
            await asyncio.sleep(0)
        await deleter(store, []).begin(doomed, "ada")
        await deleter(store, []).look()

    await asyncio.gather(work("one"), work("two"), delete(), delete_quietly(store, doomed))
    assert await traces_of(store, doomed) == {}
    for job_id in set(jobs) - {doomed}:
        assert (await store.reads.counters(job_id)).accepted == 80
    await assert_all_sound(store)


async def delete_quietly(store: Store, job_id: int) -> None:
    """A second process that looks for deletions, at the same time."""
    for _ in range(5):
        await deleter(store, []).look()


async def test_late_deletion_of_an_account_spares_a_new_one_of_the_same_name(store: Store) -> None:
    people, rows = open_console(store).people, DeletionRows(store.database)
    await people.add_user("ann", "operator", None, "tester")
    await rows.mark_user("ann", "tester")
    assert await rows.delete_user("ann", "tester")
    await people.add_user("ann", "operator", None, "tester")
    assert not await rows.delete_user("ann", "tester"), "another process, which is late"
    assert (await people.user("ann")).name == "ann"
