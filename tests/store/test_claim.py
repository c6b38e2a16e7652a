"""Claim, renew, release: a worker's hold on ranges."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.clock import SystemClock
from holdfast.errors import DatabaseGone
from holdfast.features.console import open_console
from holdfast.kernel import NewJob, Store, open_store
from holdfast.kernel.arrivals.enqueue import Addition
from holdfast.model import ItemStatus, JobState
from holdfast_client.records import new_item
from tests.store.checks import (
    MANY,
    MEGABYTES,
    claim,
    claim_one,
    execute,
    fetch,
    filled_job,
    ingest,
    keyed,
    lease_stream,
    lose,
    make_job,
    records,
    seqs_of,
    settle,
    work_off,
)

PENDING = ItemStatus.PENDING


async def test_claim_splits_the_head_off_a_large_range(store: Store) -> None:
    job_id = await filled_job(store, 10)
    held = await claim_one(store, job_id, 3)
    assert seqs_of(held) == [1, 2, 3]
    assert (held.lease.lo, held.lease.hi, held.lease.again) == (1, 3, False)
    ranges = [
        (found.lo, found.hi, found.worker)
        for found in await open_console(store).ranges.of_job(job_id)
    ]
    assert sorted(ranges) == [(1, 3, "one"), (4, 10, None)]
    assert seqs_of(await claim_one(store, job_id)) == [4, 5, 6, 7, 8, 9, 10]


async def test_claim_gives_the_row_as_an_item(store: Store) -> None:
    job_id = await filled_job(store, 1)
    held = await claim_one(store, job_id)
    assert [tuple(row) for row in held.rows] == [(1, '{"n": 0}', 0, 0, 0)]


async def test_claim_takes_several_small_ranges_up_to_its_size(store: Store) -> None:
    job_id = await filled_job(store, 2, 2, 2, 5)
    claims = await claim(store, job_id, 7)
    assert [seqs_of(claimed) for claimed in claims] == [[1, 2], [3, 4], [5, 6], [7]]
    assert seqs_of(*await claim(store, job_id)) == [8, 9, 10, 11]


async def test_each_claim_has_a_token_of_its_own(store: Store) -> None:
    job_id = await filled_job(store, 2, 2)
    tokens = [claimed.lease.token for claimed in await claim(store, job_id)]
    await store.leases.release([claimed.lease for claimed in await claim(store, job_id)])
    await store.workers.stop_worker("one")
    tokens += [claimed.lease.token for claimed in await claim(store, job_id)]
    assert len(tokens) == 4 and len(set(tokens)) == 2


async def test_again_range_is_never_split(store: Store) -> None:
    job_id = await filled_job(store, 6)
    await settle(store, await claim_one(store, job_id), PENDING)
    held = await claim_one(store, job_id, 2)
    assert held.lease.again and seqs_of(held) == [1, 2, 3, 4, 5, 6]


async def test_claim_stays_within_its_bytes(store: Store) -> None:
    job_id = await make_job(store)
    stream = await lease_stream(store, job_id)
    await ingest(store, stream, [*records(1)] * 0 + [_large(100) for _ in range(10)])
    claims = await claim(store, job_id, MANY, max_bytes=350)
    assert len(seqs_of(*claims)) == 3


async def test_claim_of_several_ranges_stays_within_its_bytes(store: Store) -> None:
    job_id = await make_job(store)
    stream = await lease_stream(store, job_id)
    for _ in range(4):
        await ingest(store, stream, [_large(100) for _ in range(3)])
    claims = await claim(store, job_id, MANY, max_bytes=700)
    assert len(seqs_of(*claims)) == 7


async def test_item_larger_than_the_bytes_is_claimed_by_itself(store: Store) -> None:
    job_id = await make_job(store)
    stream = await lease_stream(store, job_id)
    await ingest(store, stream, [_large(5000), _large(5000)])
    assert len(seqs_of(*await claim(store, job_id, MANY, max_bytes=100))) == 1


def _large(size: int) -> object:
    return keyed("a")[0]._replace(input='"' + "x" * (size - 2) + '"', key=None)


async def test_claim_of_a_range_with_gaps_gives_the_items_that_are_there(store: Store) -> None:
    job_id = await make_job(store)
    stream = await lease_stream(store, job_id)
    await ingest(store, stream, records(9), end=True)
    await execute(store, "delete from items where job_id = :id and seq between 2 and 5", id=job_id)
    await execute(store, "update counters set accepted = 5 where job_id = :id", id=job_id)
    assert seqs_of(*await claim(store, job_id, 3)) == [1]
    held = await claim_one(store, job_id, 2)
    assert held.rows == []
    assert await settle(store, held) == []
    assert seqs_of(*await claim(store, job_id)) == [6, 7, 8, 9]


@pytest.mark.parametrize("how", ["paused", "cancelled", "all", "pipeline:demo", "unknown"])
async def test_job_that_may_not_run_gives_nothing(store: Store, how: str) -> None:
    job_id = await filled_job(store, 3)
    if how == "paused":
        await store.jobs.pause(job_id, "tester")
    elif how == "cancelled":
        await store.jobs.cancel(job_id, "tester")
    elif how != "unknown":
        await store.jobs.switch(how, True, "tester")
    assert await claim(store, 4711 if how == "unknown" else job_id) == []


async def test_live_lease_cannot_be_claimed(store: Store, other_store: Store) -> None:
    job_id = await filled_job(store, 3)
    await claim_one(store, job_id)
    assert await claim(other_store, job_id, worker="two") == []


async def test_claim_takes_an_expired_lease_over_by_itself(store: Store) -> None:
    job_id = await filled_job(store, 3)
    late = await claim_one(store, job_id)
    await lose(store)
    held = await claim_one(store, job_id, worker="two")
    assert seqs_of(held) == [1, 2, 3] and held.lease.expiries == 1
    assert await settle(store, late) == [late.lease]
    assert await settle(store, held) == []


async def test_released_items_come_back_uncharged(store: Store) -> None:
    job_id = await filled_job(store, 5)
    held = await claim_one(store, job_id)
    await store.leases.release([held.lease])
    again = await claim_one(store, job_id, worker="two")
    assert seqs_of(again) == [1, 2, 3, 4, 5]
    assert again.lease.expiries == 0
    assert await settle(store, held) == [held.lease]


async def test_released_range_is_due_after_its_delay_and_says_what_it_waits_for(
    store: Store,
) -> None:
    job_id = await filled_job(store, 5)
    held = await claim_one(store, job_id)
    await store.leases.release([held.lease], 3600, "api.example")
    assert await claim(store, job_id) == []
    due = await open_console(store).ranges.next_due(job_id)
    assert due is not None and not due.due and due.waiting_for == "api.example"
    assert await store.reads.runnable_jobs(["demo"]) == []


async def test_release_of_a_lost_lease_changes_nothing(store: Store) -> None:
    job_id = await filled_job(store, 5)
    late = await claim_one(store, job_id)
    await lose(store)
    held = await claim_one(store, job_id, worker="two")
    await store.leases.release([late.lease], 3600)
    assert await settle(store, held) == []


async def test_two_workers_never_hold_the_same_item(store: Store, other_store: Store) -> None:
    job_id = await filled_job(store, 60, 3, 3, 3, 40)

    async def take_all(opened: Store, worker: str) -> list[int]:
        taken: list[int] = []
        while claims := await claim(opened, job_id, 4, worker):
            taken += seqs_of(*claims)
        return taken

    one, two = await asyncio.gather(take_all(store, "one"), take_all(other_store, "two"))
    assert sorted(one + two) == list(range(1, 110))


async def test_claim_whose_answer_was_lost_is_freed_as_a_stray(
    store: Store, database_url: str
) -> None:
    job_id = await filled_job(store, 4)
    cut = ["committed"]

    def cut_once(verb: str, point: str) -> None:
        if verb == "claim" and point in cut:
            cut.remove(point)
            raise DatabaseGone("the connection was cut")

    worker = await open_store(database_url, fault=cut_once)
    await worker.workers.add_worker("one", "host", 1, [])
    try:
        with pytest.raises(DatabaseGone):
            await claim(worker, job_id, 3)
        assert seqs_of(*await claim(store, job_id, worker="two")) == [4]
        assert worker.leases.in_flight == set()
        strays = await worker.workers.tokens_of("one")
        assert len(strays) == 1
        await worker.workers.free_strays("one", strays)
        assert await worker.workers.tokens_of("one") == set()
        assert seqs_of(*await claim(worker, job_id)) == [1, 2, 3]
    finally:
        await worker.close()


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
async def test_new_records_whose_claim_was_not_answered_are_freed_as_strays(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id, _ = await store.jobs.open(NewJob("demo", "demo", [], standing=True), "ada")
    fetch_from_server = store.database.driver.fetch
    queries: list[str] = []

    async def fetch_and_lose(query: str, params: Any = None) -> Any:
        rows = await fetch_from_server(query, params)
        queries.append(query)
        if query == "claim_arrivals":
            raise DatabaseGone("the connection was cut")
        return rows

    held: set[str] = set()

    async def take() -> list[int]:
        await store.additions.enqueue(Addition("demo", "", [new_item({"n": 1})]))
        claims = await store.leases.claim(job_id, "one", MANY, MEGABYTES, standing=True)
        held.update(claimed.lease.token for claimed in claims)
        return seqs_of(*claims)

    # New records and then the old ranges were looked at: the next claims are of new records only.
    before = [*await take(), *await take()]
    with monkeypatch.context() as cut:
        cut.setattr(store.database.driver, "fetch", fetch_and_lose)
        with pytest.raises(DatabaseGone):
            await take()
    assert queries == ["claim_arrivals"]
    await store.workers.add_worker("one", "host", 1, [])
    (stray,) = await store.workers.tokens_of("one") - held
    await store.workers.free_strays("one", {stray})
    assert len({*before, *await take()}) == 4


async def test_lease_holders_and_ranges_tell_who_works(store: Store) -> None:
    job_id = await filled_job(store, 4)
    await claim(store, job_id, 1, "one")
    await claim(store, job_id, 1, "two")
    assert await open_console(store).ranges.lease_holders(job_id) == ["one", "two"]


async def test_job_is_runnable_while_something_of_it_is_due(store: Store) -> None:
    job_id = await filled_job(store, 2)
    assert await store.reads.runnable_jobs(["demo", "other"]) == [(job_id, "UPLOAD", "local")]
    assert await store.reads.runnable_jobs(["other"]) == []
    held = await claim_one(store, job_id)
    assert await store.reads.runnable_jobs(["demo"]) == []
    await lose(store)
    assert [row[0] for row in await store.reads.runnable_jobs(["demo"])] == [job_id]
    assert await settle(store, held) == [held.lease]
    assert await settle(store, await claim_one(store, job_id)) == []
    assert await store.reads.finishable_jobs() == [job_id]
    assert await store.outcomes.complete(job_id) is JobState.DONE
    assert await store.reads.finishable_jobs() == []


async def test_items_of_a_cancelled_job_never_come_to_another_one(store: Store) -> None:
    """SQLite gives the highest id out again once its row is gone."""
    cancelled = await filled_job(store, 3)
    await settle(store, await claim_one(store, cancelled), PENDING)
    await store.jobs.cancel(cancelled, "tester")
    job_id = await filled_job(store, 2)
    await settle(store, await claim_one(store, job_id), PENDING)
    held = await claim_one(store, job_id)
    assert seqs_of(held) == [1, 2]
    await settle(store, held)
    assert await work_off(store, job_id) == 0
    assert (await fetch(store, "select count(*) from outcomes where job_id = :j", j=job_id))[0][
        0
    ] == 2


class HandClock(SystemClock):
    def __init__(self) -> None:
        self.at = 100.0

    def monotonic(self) -> float:
        return self.at


NEW_FIRST = ['{"n":9}', '{"n":1}', '{"n":10}']
OLD_FIRST = ['{"n":1}', '{"n":9}', '{"n":10}']


async def test_old_ranges_of_a_standing_job_are_passed_over_only_for_a_moment(
    store: Store, database_url: str
) -> None:
    """Whatever comes in the meantime."""
    job_id, _ = await store.jobs.open(NewJob("demo", "demo", [], standing=True), "ada")
    clock = HandClock()
    worker = await open_store(database_url, clock=clock)

    async def add(number: int) -> None:
        addition = Addition("demo", "", [new_item({"n": number})])
        await store.additions.enqueue(addition)

    async def take() -> list[str]:
        claims = await worker.leases.claim(job_id, "one", 1, MEGABYTES, standing=True, brief=True)
        for claimed in claims:
            await settle(worker, claimed)
        return [row[1] for claimed in claims for row in claimed.rows]

    await add(0)
    assert await take() == ['{"n":0}']
    assert await take() == []
    await add(1)
    await execute(store, "update ranges set since = @after(-60.0)")
    for number in range(2, 9):
        await add(number)
        assert await take() == [f'{{"n":{number}}}']
    clock.at += 1.1
    await add(9)
    await add(10)
    taken = [*await take(), *await take()]
    assert '{"n":1}' in taken
    assert [*taken, *await take()] in (NEW_FIRST, OLD_FIRST)
    await worker.close()
