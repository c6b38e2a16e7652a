"""Races that the design names: each interleaving loses or doubles something when done naively."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.errors import DatabaseGone, LeaseLost, UserError
from holdfast.features.console import open_console
from holdfast.features.deletion.job_rows import JobRows
from holdfast.kernel import NewJob, Store, StreamLease
from holdfast.kernel.arrivals.enqueue import Addition
from holdfast.kernel.arrivals.idempotency import MessageKey
from holdfast.kernel.database.chunks import FinishedItems
from holdfast.model import ItemStatus, JobState, StreamState
from holdfast.pipeline import Dedupe
from holdfast_client.records import new_item
from tests.store.checks import (
    assert_sound,
    audit_of,
    claim,
    claim_one,
    fetch,
    filled_job,
    finished_job,
    ingest,
    keyed,
    lease_stream,
    lose,
    make_job,
    records,
    seqs_of,
    settle,
    state_of,
    status_counts,
    work_off,
)
from tests.store.interleave import (
    Action,
    Stopped,
    is_anybody_blocked,
    stopped,
    until_blocked,
)

STANDING = NewJob("events", "events", [], standing=True)
DONE, ERROR, PENDING = ItemStatus.DONE, ItemStatus.ERROR, ItemStatus.PENDING


async def _cancel_during(store: Store, url: str, verb: str, job_id: int, action: Action) -> Any:
    """Cancels while the verb's transaction is written but not committed."""
    async with stopped(url, verb, "commit", action) as other:
        cancelling = asyncio.create_task(store.jobs.cancel(job_id, "tester"))
        await until_blocked(store, cancelling)
        result = await other.go_on()
        assert await cancelling is JobState.CANCELLED
    assert await open_console(store).ranges.count(job_id) == 0
    return result


async def test_split_that_is_not_committed_does_not_escape_a_cancel(
    store: Store, database_url: str
) -> None:
    job_id = await filled_job(store, 10)
    await _cancel_during(
        store, database_url, "claim", job_id, lambda other: claim(other, job_id, 3)
    )


async def test_retry_that_is_not_committed_does_not_escape_a_cancel(
    store: Store, database_url: str
) -> None:
    job_id = await filled_job(store, 3)
    held = await claim_one(store, job_id)
    lost = await _cancel_during(
        store, database_url, "settle", job_id, lambda other: settle(other, held, PENDING)
    )
    assert lost == []


async def test_pieces_that_are_not_committed_do_not_escape_a_cancel(
    store: Store, database_url: str
) -> None:
    job_id = await filled_job(store, 9)
    await claim_one(store, job_id)
    await lose(store)
    await claim_one(store, job_id)
    await _cancel_during(
        store, database_url, "stop_worker", job_id, lambda other: other.workers.stop_worker("one")
    )


async def test_page_that_is_not_committed_does_not_escape_a_cancel(
    store: Store, database_url: str
) -> None:
    job_id = await make_job(store)
    stream = await lease_stream(store, job_id)
    taken = await _cancel_during(
        store, database_url, "ingest", job_id, lambda other: ingest(other, stream, records(5))
    )
    assert taken.accepted == 5
    assert await status_counts(store, job_id) == {"SKIPPED": 5}


async def test_reprocess_that_is_not_committed_does_not_escape_a_cancel(
    store: Store, database_url: str
) -> None:
    job_id = await finished_job(store, ERROR, ERROR)
    before = await store.jobs.now()
    await _cancel_during(
        store,
        database_url,
        "reprocess",
        job_id,
        lambda other: other.jobs.reprocess(job_id, FinishedItems(ERROR, until=before), "other"),
    )


@pytest.mark.parametrize("point", ["committed", "commit"])
async def test_nothing_is_settled_or_ingested_once_a_cancel_is_committed(
    store: Store, database_url: str, point: str
) -> None:
    verb = "cancel" if point == "committed" else "drop_ranges"
    job_id = await make_job(store)
    stream = await lease_stream(store, job_id)
    await ingest(store, stream, records(5))
    held = await claim_one(store, job_id, 2)

    async def cancel(other: Store) -> JobState:
        return await other.jobs.cancel(job_id, "tester")

    async with stopped(database_url, verb, point, cancel) as other:
        settling = asyncio.create_task(settle(store, held))
        ingesting = asyncio.create_task(ingest(store, stream, records(5)))
        claiming = asyncio.create_task(claim(store, job_id))
        for task in (settling, ingesting, claiming):
            await until_blocked(store, task)
        await other.go_on()
        assert await settling == [held.lease]
        assert await claiming == []
        with pytest.raises(LeaseLost):
            await ingesting
    assert await status_counts(store, job_id) == {"SKIPPED": 5}


async def test_two_last_settlements_end_the_job_once_and_do_not_forget_it(
    store: Store, database_url: str
) -> None:
    job_id = await filled_job(store, 4)
    first, second = await claim_one(store, job_id, 2), await claim_one(store, job_id, 2)

    async def settle_and_complete(opened: Store, held: Any) -> JobState | None:
        await settle(opened, held)
        return await opened.outcomes.complete(job_id)

    async with stopped(
        database_url, "settle", "commit", lambda other: settle_and_complete(other, first)
    ) as other:
        mine = asyncio.create_task(settle_and_complete(store, second))
        await until_blocked(store, mine)
        ends = [await other.go_on(), await mine]
    assert ends.count(JobState.DONE) == 1 and ends.count(None) == 1
    assert await state_of(store, job_id) is JobState.DONE


async def test_two_completions_at_once_end_the_job_once(store: Store, database_url: str) -> None:
    job_id = await filled_job(store, 2)
    await work_off(store, job_id)
    async with stopped(
        database_url, "complete", "commit", lambda other: other.outcomes.complete(job_id)
    ) as other:
        mine = asyncio.create_task(store.outcomes.complete(job_id))
        await until_blocked(store, mine)
        assert [await other.go_on(), await mine] == [JobState.DONE, None]
    actions = [entry["action"] for entry in await audit_of(store, job_id)]
    assert actions.count("finish") == 1


async def test_job_does_not_end_under_a_reprocess(store: Store, database_url: str) -> None:
    job_id = await filled_job(store, 2)
    await work_off(store, job_id, ERROR)
    before = await store.jobs.now()

    async def reprocess(other: Store) -> int:
        items = FinishedItems(ERROR, until=before)
        return (await other.jobs.reprocess(job_id, items, "other")).opened

    async with stopped(database_url, "reprocess", "commit", reprocess) as other:
        completing = asyncio.create_task(store.outcomes.complete(job_id))
        await until_blocked(store, completing)
        assert await other.go_on() == 2
        assert await completing is None
    assert await state_of(store, job_id) is JobState.RUNNING


async def test_two_reprocesses_at_once_open_each_item_once(store: Store, database_url: str) -> None:
    job_id = await finished_job(store, ERROR, ERROR, DONE)
    before = await store.jobs.now()

    async def reprocess(other: Store) -> int:
        items = FinishedItems(ERROR, until=before)
        return (await other.jobs.reprocess(job_id, items, "other")).opened

    async with stopped(database_url, "reprocess", "commit", reprocess) as other:
        mine = asyncio.create_task(reprocess(store))
        await until_blocked(store, mine)
        assert [await other.go_on(), await mine] == [2, 0]


async def test_stream_is_leased_to_one_of_two(store: Store, database_url: str) -> None:
    job_id = await make_job(store)

    async def take(opened: Store) -> StreamLease | None:
        return await opened.ingest.lease_stream(job_id, "someone")

    async with stopped(database_url, "lease_stream", "commit", take) as other:
        mine = asyncio.create_task(take(store))
        await until_blocked(store, mine)
        assert await other.go_on() is not None
        assert await mine is None


async def test_two_claims_at_once_share_no_item(store: Store, database_url: str) -> None:
    job_id = await filled_job(store, 4, 4)
    async with stopped(
        database_url, "claim", "commit", lambda other: claim(other, job_id, 3)
    ) as other:
        mine = asyncio.create_task(claim(store, job_id, 3, "two"))
        await until_blocked(store, mine)
        theirs = seqs_of(*await other.go_on())
        assert theirs == [1, 2, 3]
        assert len(seqs_of(*await mine)) == 3 and not set(seqs_of(*await mine)) & set(theirs)


async def test_range_of_a_lost_worker_is_taken_over_by_one_of_two(
    store: Store, database_url: str
) -> None:
    job_id = await filled_job(store, 4)
    await claim_one(store, job_id)
    await lose(store)
    async with stopped(
        database_url, "claim", "commit", lambda other: claim(other, job_id)
    ) as other:
        mine = asyncio.create_task(claim(store, job_id, worker="two"))
        await until_blocked(store, mine)
        assert seqs_of(*await other.go_on()) == [1, 2, 3, 4]
        assert await mine == []


async def test_late_settlement_and_its_takeover_do_not_both_count(
    store: Store, database_url: str
) -> None:
    """The worker is taken for lost while its settlement is on its way."""
    job_id = await filled_job(store, 4)
    late = await claim_one(store, job_id)
    async with stopped(
        database_url, "settle", "commit", lambda other: settle(other, late)
    ) as other:
        losing = asyncio.create_task(lose(store, "one"))
        assert await other.go_on() == []
        await losing
        assert seqs_of(*await claim(store, job_id, worker="two")) == []
    assert await status_counts(store, job_id) == {"DONE": 4}


async def test_cap_is_exact_for_two_pages_at_once(store: Store, database_url: str) -> None:
    job_id = await make_job(store, "north", "south", max_items=5)
    north, south = await lease_stream(store, job_id), await lease_stream(store, job_id)
    async with stopped(
        database_url, "ingest", "commit", lambda other: ingest(other, north, records(4))
    ) as other:
        mine = asyncio.create_task(ingest(store, south, records(4)))
        await until_blocked(store, mine)
        assert (await other.go_on()).accepted == 4
        cut = await mine
        assert (cut.accepted, cut.state) == (1, StreamState.CAPPED)


async def test_new_key_goes_to_one_of_two_jobs(store: Store, database_url: str) -> None:
    dedupe = Dedupe("shop")
    one = await lease_stream(store, await make_job(store))
    two = await lease_stream(store, await make_job(store))
    async with stopped(
        database_url, "ingest", "commit", lambda other: ingest(other, one, keyed("a", "b"), dedupe)
    ) as other:
        mine = asyncio.create_task(ingest(store, two, keyed("b", "c"), dedupe))
        await until_blocked(store, mine)
        assert (await other.go_on()).accepted == 2
        taken = await mine
        assert (taken.accepted, taken.known) == (1, 1)


async def test_key_that_another_job_got_does_not_use_up_the_cap(
    store: Store, database_url: str
) -> None:
    dedupe = Dedupe("shop")
    one = await lease_stream(store, await make_job(store))
    two = await lease_stream(store, await make_job(store, max_items=2))
    async with stopped(
        database_url, "ingest", "commit", lambda other: ingest(other, one, keyed("a", "b"), dedupe)
    ) as other:
        mine = asyncio.create_task(ingest(store, two, keyed("a", "b", "c", "d", "e"), dedupe))
        await until_blocked(store, mine)
        await other.go_on()
        taken = await mine
        assert (taken.accepted, taken.known, taken.state) == (2, 2, StreamState.CAPPED)
        assert two.cursor == {"page": None, "skip": 4}


def _adding(text: str) -> Action:
    row = new_item({"text": text}, "a")
    return lambda other: other.additions.enqueue(Addition("events", "", [row]))


async def test_other_content_of_a_key_that_another_transaction_just_added_is_not_lost(
    store: Store, database_url: str
) -> None:
    job_id, _ = await store.jobs.open(STANDING, "ada")
    for first, second, accepted in ("old", "new", 1), ("newer", "newer", 0):
        async with stopped(database_url, "enqueue", "commit", _adding(first)) as other:
            mine = asyncio.ensure_future(_adding(second)(store))
            await until_blocked(store, mine)
            assert (await other.go_on()).accepted == 1
            assert (await mine)[1:] == (accepted, 1 - accepted)
    await assert_sound(store, job_id)
    assert await work_off(store, job_id) == 3


async def test_message_that_comes_to_two_workers_at_once_is_taken_by_one(
    store: Store, database_url: str
) -> None:
    job_id, _ = await store.jobs.open(STANDING, "ada")
    key = MessageKey("m-1", "items.add")

    def take(other: Store) -> Any:
        return other.additions.enqueue(Addition("events", "", [new_item({"n": 1})]), key)

    async with stopped(database_url, "enqueue", "commit", take) as other:
        mine = asyncio.ensure_future(take(store))
        await until_blocked(store, mine)
        assert await other.go_on() == (job_id, 1, 0)
        assert await mine is None
    assert (await store.reads.counters(job_id)).accepted == 1


async def test_message_of_a_worker_that_fails_is_taken_by_the_next(
    store: Store, database_url: str
) -> None:
    job_id, _ = await store.jobs.open(STANDING, "ada")
    key, addition = MessageKey("m-1", "items.add"), Addition("events", "", [new_item({"n": 1})])

    async def fail(tx: Any) -> Addition:
        raise UserError("no")

    with pytest.raises(UserError):
        await store.additions.enqueue(fail, key)
    assert await store.additions.enqueue(addition, key) == (job_id, 1, 0)


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
async def test_record_whose_key_is_deleted_with_its_job_meanwhile_is_not_lost(
    store: Store, database_url: str
) -> None:
    """On SQLite the deletion waits."""
    stream = await lease_stream(store, await make_job(store))
    await ingest(store, stream, keyed("a"), Dedupe("events of local"))
    await work_off(store, stream.job_id, ERROR)
    job_id, _ = await store.jobs.open(STANDING, "ada")
    async with stopped(database_url, "enqueue", "move_keys", _adding("new")) as other:
        await store.jobs.cancel(stream.job_id, "ada")
        await JobRows(store.database).mark(stream.job_id, "ada")
        while await JobRows(store.database).delete_chunk(stream.job_id):
            pass
        assert (await other.go_on())[1:] == (1, 0)
    assert await fetch(store, "select job_id from keys") == [(job_id,)]
    await assert_sound(store, job_id)


async def test_two_last_pages_at_once_say_that_discovery_ended(
    store: Store, database_url: str
) -> None:
    job_id = await make_job(store, "north", "south")
    north, south = await lease_stream(store, job_id), await lease_stream(store, job_id)

    async def last_page(other: Store) -> Any:
        return await ingest(other, north, records(1), worker="other", end=True)

    async with stopped(database_url, "ingest", "commit", last_page) as other:
        mine = asyncio.create_task(ingest(store, south, records(1), end=True))
        await until_blocked(store, mine)
        await other.go_on()
        await mine
    assert (await store.reads.job(job_id)).discovered_at is not None


@pytest.mark.parametrize("walked_before", [False, True])
async def test_source_goes_to_one_of_two_new_jobs(
    store: Store, database_url: str, walked_before: bool
) -> None:
    if walked_before:
        await store.jobs.cancel(await make_job(store, "site"), "tester")
    async with stopped(
        database_url, "create", "commit", lambda other: make_job(other, "site")
    ) as other:
        mine = asyncio.create_task(make_job(store, "site"))
        await until_blocked(store, mine)
        job_id = await other.go_on()
        with pytest.raises(UserError, match="another job is reading"):
            await mine
    assert [stream.source for stream in await store.streams.of_job(job_id)] == ["site"]


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
async def test_source_is_not_taken_from_a_job_that_took_it_a_moment_ago(
    store: Store, database_url: str
) -> None:
    """The one is about to take the source over while the other has, but did not commit."""
    await store.jobs.cancel(await make_job(store, "site"), "tester")

    async def make(other: Store) -> int | None:
        try:
            return await make_job(other, "site")
        except UserError:
            return None

    second = Stopped()
    try:
        async with stopped(database_url, "create", "take_over_stream", make) as first:
            second.start(database_url, make, ("create", "commit"))
            while not second.is_reached and not await is_anybody_blocked(store):
                await asyncio.sleep(0.002)
            made = first.let_go()
            await until_blocked(store, made)
            jobs = [await second.go_on(), await made]
    finally:
        second.close()
    winners = [job_id for job_id in jobs if job_id is not None]
    assert len(winners) == 1
    assert len(await store.streams.of_job(winners[0])) == 1


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
async def test_pages_of_two_streams_of_a_job_do_not_wait_for_each_other(
    store: Store, database_url: str
) -> None:
    job_id = await make_job(store, "north", "south")
    north, south = await lease_stream(store, job_id), await lease_stream(store, job_id)
    async with stopped(
        database_url,
        "ingest",
        "commit",
        lambda other: ingest(other, north, records(4), worker="other"),
    ) as other:
        mine = asyncio.create_task(ingest(store, south, records(4)))
        await until_blocked(store, mine)
        assert mine.done() and (await mine).accepted == 4
        await other.go_on()


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
async def test_settlements_of_two_workers_do_not_wait_for_each_other(
    store: Store, database_url: str
) -> None:
    job_id = await filled_job(store, 4)
    first, second = await claim_one(store, job_id, 2), await claim_one(store, job_id, 2)
    async with stopped(
        database_url, "settle", "commit", lambda other: settle(other, first, worker="other")
    ) as other:
        mine = asyncio.create_task(settle(store, second, worker="mine"))
        await until_blocked(store, mine)
        assert mine.done() and await mine == []
        await other.go_on()


async def test_workers_and_sweepers_at_once_finish_every_item_once(
    store: Store, other_store: Store
) -> None:
    """Deadlocks, if any, are retried within the store and never visible."""
    job_ids = [await filled_job(store, 40, 3, 3, 30) for _ in range(2)]

    async def work(opened: Store, worker: str, order: list[int]) -> None:
        for turn in range(200):
            busy = False
            for job_id in order:
                claims = await claim(opened, job_id, 5, worker)
                busy = busy or bool(claims)
                for number, claimed in enumerate(claims):
                    retry = (turn + number) % 3 == 0 and not claimed.lease.again
                    await settle(opened, claimed, PENDING if retry else DONE, worker=worker)
            if not busy:
                return

    async def sweep(opened: Store) -> None:
        for _ in range(10):
            await opened.workers.stop_worker("nobody")
            for job_id in job_ids:
                await opened.outcomes.complete(job_id)

    backwards = list(reversed(job_ids))
    await asyncio.gather(
        work(store, "one", job_ids),
        work(other_store, "two", backwards),
        work(other_store, "three", job_ids),
        sweep(store),
        sweep(other_store),
    )
    for job_id in job_ids:
        await work_off(store, job_id)
        await store.outcomes.complete(job_id)
        assert await status_counts(store, job_id) == {"DONE": 76}
        assert await state_of(store, job_id) is JobState.DONE


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
async def test_transaction_that_never_gets_through_says_so(store: Store) -> None:
    async def body(tx: Any) -> None:
        await tx.execute("do $$ begin raise serialization_failure; end $$")

    with pytest.raises(DatabaseGone, match="still in conflict"):
        await store.database.write("test", body)
    assert await fetch(store, "select 1") != []
