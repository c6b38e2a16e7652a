"""Standing jobs: one for each pipeline and owner, and they do not end."""

from __future__ import annotations

import asyncio

from holdfast.features.deletion.job_rows import JobRows
from holdfast.kernel import NewJob, NewStream, Store
from holdfast.model import JobState
from tests.store.checks import (
    fetch,
    ingest,
    lease_stream,
    records,
    state_of,
    work_off,
)
from tests.store.deletion_scenarios import delete_all

STANDING = NewJob("events", "events", [], standing=True)


async def test_a_pipeline_has_one_standing_job_for_each_owner(
    store: Store, other_store: Store
) -> None:
    both = await asyncio.gather(
        store.jobs.open(STANDING, "ada"), other_store.jobs.open(STANDING, "ada")
    )
    assert sorted(is_new for _, is_new in both) == [False, True]
    assert len({job_id for job_id, _ in both}) == 1
    of_bob = NewJob("events", "events", [], owner_id="bob", standing=True)
    assert (await store.jobs.open(of_bob, "bob"))[1]


async def test_a_cancelled_standing_job_makes_room_for_another(store: Store) -> None:
    job_id, _ = await store.jobs.open(STANDING, "ada")
    await store.jobs.cancel(job_id, "ada")
    again, is_new = await store.jobs.open(STANDING, "ada")
    assert is_new and again != job_id


async def test_a_cancelled_standing_job_is_deleted_though_there_is_another(store: Store) -> None:
    job_id, _ = await store.jobs.open(STANDING, "ada")
    await store.jobs.cancel(job_id, "ada")
    again, _ = await store.jobs.open(STANDING, "ada")
    await delete_all(store, job_id)
    assert await fetch(store, "select id from jobs") == [(again,)]
    assert (await JobRows(store.database).mark(again, "ada")) is JobState.DELETING
    assert (await store.jobs.open(STANDING, "ada"))[1]


async def test_a_standing_job_without_open_items_does_not_end(store: Store) -> None:
    new = NewJob("events", "events", [NewStream("rows {job}", "v1")], standing=True)
    job_id, _ = await store.jobs.open(new, "ada")
    stream = await lease_stream(store, job_id)
    await ingest(store, stream, records(3), end=True)
    assert await store.reads.unfinished_jobs(["events"]) == [job_id]
    assert await work_off(store, job_id) == 3
    assert await store.outcomes.complete(job_id) is None
    assert await store.reads.finishable_jobs() == []
    assert await store.reads.unfinished_jobs(["events"]) == []
    assert await state_of(store, job_id) is JobState.RUNNING


async def test_folding_keeps_the_sums_and_the_time_of_the_last_change(store: Store) -> None:
    job_id, _ = await store.jobs.open(
        NewJob("events", "events", [NewStream("rows {job}", "v1")], standing=True), "ada"
    )
    stream = await lease_stream(store, job_id)
    for _ in range(40):
        await ingest(store, stream, records(1))
    latest = "select max(updated_at) from counters where job_id = :j"
    before = await fetch(store, latest, j=job_id)
    await store.counter_rows.fold()
    assert await fetch(store, latest, j=job_id) == before
    rows = await fetch(store, "select accepted from counters where job_id = :j", j=job_id)
    assert rows == [(40,)]
