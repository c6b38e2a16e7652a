"""Ingest: rows, their range and the cursor together, once, and never more than the caps."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from holdfast.errors import DiscoveryError, LeaseLost
from holdfast.features.console import open_console
from holdfast.kernel import Store
from holdfast.model import JobState, StreamState
from tests.store.checks import (
    assert_takes_no_page,
    claim_one,
    fetch,
    filled_job,
    ingest,
    items_of,
    lease_stream,
    lose,
    make_job,
    page_of,
    records,
    rows_written,
    seqs_of,
    statuses,
    work_off,
)


async def test_page_becomes_items_a_range_and_a_cursor(store: Store) -> None:
    job_id = await make_job(store)
    stream = await lease_stream(store, job_id)
    ingested = await ingest(store, stream, records(3), next_cursor="page 2", expected_count=9)
    assert (ingested.accepted, ingested.known, ingested.state) == (3, 0, StreamState.RUNNING)
    view = (await store.streams.of_job(job_id))[0]
    assert (view.pages_count, view.records_count, view.items_count) == (1, 3, 3)
    assert stream.cursor == {"page": "page 2", "skip": 0}
    assert view.expected_count == 9
    ranges = await open_console(store).ranges.of_job(job_id)
    assert [(found.lo, found.hi, found.again) for found in ranges] == [(1, 3, False)]
    assert (await store.reads.counters(job_id)).accepted == 3
    listed = await items_of(store, job_id)
    assert [(item.seq, item.input) for item in listed] == [
        (1, '{"n": 0}'), (2, '{"n": 1}'), (3, '{"n": 2}'),
    ]  # fmt: skip


async def test_page_without_records_moves_only_the_cursor(store: Store) -> None:
    job_id = await make_job(store)
    stream = await lease_stream(store, job_id)
    ingested = await ingest(store, stream, [])
    assert ingested.accepted == 0 and stream.pages_count == 1
    assert await open_console(store).ranges.count(job_id) == 0


async def test_gaps_in_the_sequence_are_harmless(store: Store) -> None:
    job_id = await make_job(store)
    stream = await lease_stream(store, job_id)
    await ingest(store, stream, records(2), next_cursor="same")
    with pytest.raises(DiscoveryError):
        await ingest(store, stream, records(5), next_cursor="same")
    await ingest(store, stream, records(2), end=True)
    assert list(await statuses(store, job_id)) == [1, 2, 8, 9]
    assert await work_off(store, job_id) == 4
    assert await store.outcomes.complete(job_id) is JobState.DONE


async def test_repeated_cursor_rolls_the_whole_page_back(store: Store) -> None:
    job_id = await make_job(store)
    stream = await lease_stream(store, job_id)
    await ingest(store, stream, records(2), next_cursor={"a": 1, "b": 2})
    await ingest(store, stream, records(2), next_cursor={"a": 2})
    before = await rows_written(store, job_id), await store.streams.of_job(job_id)
    with pytest.raises(DiscoveryError, match="same cursor twice"):
        await ingest(store, stream, records(2), next_cursor={"b": 2, "a": 1})
    assert (await rows_written(store, job_id), await store.streams.of_job(job_id)) == before


async def test_page_sent_again_after_a_lost_reply_changes_nothing(store: Store) -> None:
    job_id = await make_job(store)
    stream = await lease_stream(store, job_id)
    page = page_of(stream, records(3))
    await store.ingest.ingest(stream, page, "walker")
    before = await rows_written(store, job_id)
    again = await store.ingest.ingest(stream, page, "walker")
    assert (again.accepted, again.state) == (0, StreamState.RUNNING)
    assert await rows_written(store, job_id) == before


async def test_last_page_sent_again_says_that_the_stream_is_complete(store: Store) -> None:
    job_id = await make_job(store)
    stream = await lease_stream(store, job_id)
    page = page_of(stream, records(3), end=True)
    await store.ingest.ingest(stream, page, "walker")
    again = await store.ingest.ingest(stream, page, "walker")
    assert (again.accepted, again.state) == (0, StreamState.COMPLETE)


async def test_worker_that_lost_its_stream_writes_nothing(store: Store) -> None:
    job_id = await make_job(store)
    late = await lease_stream(store, job_id, "late")
    await ingest(store, late, records(2))
    await lose(store)
    holder = await lease_stream(store, job_id, "holder")
    await assert_takes_no_page(store, late)
    await ingest(store, holder, records(2))
    await assert_takes_no_page(store, late)


async def test_held_stream_is_not_leased_again(store: Store) -> None:
    job_id = await make_job(store, "north", "south")
    first = await lease_stream(store, job_id, "one")
    second = await lease_stream(store, job_id, "two")
    assert {first.source, second.source} == {"north", "south"}
    assert await store.ingest.lease_stream(job_id, "three") is None
    await store.ingest.release_stream(first)
    assert (await lease_stream(store, job_id, "three")).source == first.source


async def test_released_stream_waits_for_its_delay_and_keeps_its_failure(store: Store) -> None:
    job_id = await make_job(store)
    stream = await lease_stream(store, job_id)
    await ingest(store, stream, records(1))
    await store.ingest.release_stream(stream, 3600, "502 from the source")
    view = (await store.streams.of_job(job_id))[0]
    assert (view.state, view.failures, view.error) == ("RUNNING", 1, "502 from the source")
    assert not view.due
    assert await store.ingest.lease_stream(job_id, "walker") is None


async def test_page_taken_forgets_earlier_failures(store: Store) -> None:
    job_id = await make_job(store)
    stream = await lease_stream(store, job_id)
    await store.ingest.release_stream(stream, 0, "502 from the source")
    stream = await lease_stream(store, job_id)
    assert stream.failures == 1
    await ingest(store, stream, records(1))
    assert (await store.streams.of_job(job_id))[0].failures == 0


async def test_release_by_a_worker_that_lost_the_stream_changes_nothing(store: Store) -> None:
    job_id = await make_job(store)
    late = await lease_stream(store, job_id, "late")
    await lose(store)
    await lease_stream(store, job_id, "holder")
    await store.ingest.release_stream(late, 3600, "late")
    await store.ingest.fail_stream(late, "late")
    view = (await store.streams.of_job(job_id))[0]
    assert (view.state, view.worker, view.error) == ("RUNNING", "holder", None)


async def test_discovery_ends_with_the_last_page_of_the_last_stream(store: Store) -> None:
    job_id = await make_job(store, "north", "south")
    north = await lease_stream(store, job_id)
    south = await lease_stream(store, job_id)
    await ingest(store, north, records(1), end=True)
    assert (await store.reads.job(job_id)).discovered_at is None
    await ingest(store, south, records(1), end=True)
    assert (await store.reads.job(job_id)).discovered_at is not None


async def test_fewer_records_than_the_source_has_fail_the_job(store: Store) -> None:
    job_id = await make_job(store)
    stream = await lease_stream(store, job_id)
    await ingest(store, stream, records(2), expected_count=5)
    ingested = await ingest(store, stream, records(2, 2), expected_count=5, end=True)
    assert ingested.state is StreamState.FAILED
    assert await work_off(store, job_id) == 4
    assert await store.outcomes.complete(job_id) is JobState.FAILED
    assert "5 records, but its pages gave 4" in str((await store.reads.job(job_id)).error)


async def test_resume_after_a_short_count_takes_no_record_twice(store: Store) -> None:
    job_id = await make_job(store)
    stream = await lease_stream(store, job_id)
    await ingest(store, stream, records(2), next_cursor="page 2")
    await ingest(store, stream, records(2, 2), expected_count=5, end=True, next_cursor=None)
    await work_off(store, job_id)
    await store.outcomes.complete(job_id)
    await store.jobs.resume(job_id, "tester")
    stream = await lease_stream(store, job_id)
    assert stream.cursor == {"page": "page 2", "skip": 2}
    ingested = await ingest(store, stream, records(1, 4), expected_count=5, end=True)
    assert ingested.state is StreamState.COMPLETE


async def test_as_many_records_as_the_source_has_complete_the_stream(store: Store) -> None:
    job_id = await make_job(store)
    stream = await lease_stream(store, job_id)
    await ingest(store, stream, records(2), expected_count=4)
    ingested = await ingest(store, stream, records(2), expected_count=4, end=True)
    assert ingested.state is StreamState.COMPLETE


async def test_cap_cuts_a_page_and_the_rest_is_found_when_it_is_raised(store: Store) -> None:
    job_id = await make_job(store, max_items=5)
    stream = await lease_stream(store, job_id)
    await ingest(store, stream, records(3), next_cursor="page 2")
    page = records(4, 3)
    cut = await ingest(store, stream, page, next_cursor="page 3")
    assert (cut.accepted, cut.state) == (2, StreamState.CAPPED)
    assert stream.cursor == {"page": "page 2", "skip": 2}
    assert (await store.reads.job(job_id)).discovered_at is not None
    await work_off(store, job_id)
    assert await store.outcomes.complete(job_id) is JobState.DONE
    await store.jobs.resume(job_id, "tester", max_items=6)
    stream = await lease_stream(store, job_id)
    cut = await ingest(store, stream, page[stream.cursor["skip"] :], next_cursor="page 3")
    assert (cut.accepted, cut.state) == (1, StreamState.CAPPED)
    assert stream.cursor == {"page": "page 2", "skip": 3}
    await work_off(store, job_id)
    await store.outcomes.complete(job_id)
    await store.jobs.resume(job_id, "tester", max_items=100)
    stream = await lease_stream(store, job_id)
    rest = await ingest(store, stream, page[stream.cursor["skip"] :], end=True)
    assert (rest.accepted, rest.state) == (1, StreamState.COMPLETE)
    inputs = [item.input for item in await items_of(store, job_id)]
    assert inputs == [item.input for item in records(7)]


async def test_page_that_fills_the_cap_exactly_is_not_cut(store: Store) -> None:
    job_id = await make_job(store, max_items=3)
    stream = await lease_stream(store, job_id)
    full = await ingest(store, stream, records(3), end=True)
    assert (full.accepted, full.state) == (3, StreamState.COMPLETE)


async def test_page_after_a_full_cap_is_left_whole(store: Store) -> None:
    job_id = await make_job(store, max_items=3)
    stream = await lease_stream(store, job_id)
    await ingest(store, stream, records(3), next_cursor="page 2")
    over = await ingest(store, stream, records(3), next_cursor="page 3")
    assert (over.accepted, over.state) == (0, StreamState.CAPPED)
    assert stream.cursor == {"page": "page 2", "skip": 0}


async def test_cap_of_a_source_holds_for_each_of_them(store: Store) -> None:
    job_id = await make_job(store, "north", "south", source_cap=3)
    for _ in range(2):
        stream = await lease_stream(store, job_id)
        cut = await ingest(store, stream, records(5))
        assert (cut.accepted, cut.state) == (3, StreamState.CAPPED)
    assert (await store.reads.counters(job_id)).accepted == 6


async def test_cap_of_the_job_is_exact_while_two_streams_race(
    store: Store, other_store: Store
) -> None:
    job_id = await make_job(store, "north", "south", max_items=17)
    north = await lease_stream(store, job_id)
    south = await lease_stream(other_store, job_id)

    async def walk(opened: Store, stream: object, worker: str) -> None:
        while True:
            taken = await ingest(opened, stream, records(2), worker=worker)  # type: ignore[arg-type]
            if taken.state is StreamState.CAPPED:
                return

    await asyncio.gather(walk(store, north, "one"), walk(other_store, south, "two"))
    assert (await store.reads.counters(job_id)).accepted == 17
    assert len(await statuses(store, job_id)) == 17


async def test_page_that_cannot_be_written_leaves_no_trace(store: Store) -> None:
    job_id = await make_job(store)
    stream = await lease_stream(store, job_id)
    await ingest(store, stream, records(2))
    before = await rows_written(store, job_id), await store.streams.of_job(job_id)
    broken = [*records(2), records(1)[0]._replace(input=None)]  # type: ignore[arg-type]
    with pytest.raises(Exception, match=r"(?i)null|none"):
        await store.ingest.ingest(stream, page_of(stream, broken), "walker")
    assert (await rows_written(store, job_id), await store.streams.of_job(job_id)) == before


async def test_dead_workers_streams_are_free_at_once(store: Store) -> None:
    job_id = await make_job(store)
    dead = await lease_stream(store, job_id, "dead")
    await store.workers.stop_worker("dead")
    await lease_stream(store, job_id, "next")
    await assert_takes_no_page(store, dead)


async def test_pages_of_a_stream_are_its_history(store: Store) -> None:
    job_id = await filled_job(store, 2, 3, 1)
    rows = await fetch(
        store, "select number, records_count, items_count from stream_pages order by number"
    )
    assert [tuple(row) for row in rows] == [(1, 2, 2), (2, 3, 3)]
    assert seqs_of(await claim_one(store, job_id, 2)) == [1, 2]


async def test_stale_copy_of_a_stream_lease_cannot_advance_it(store: Store) -> None:
    job_id = await make_job(store)
    stream = await lease_stream(store, job_id)
    stale = replace(stream)
    for _ in range(2):
        await ingest(store, stream, records(1))
    with pytest.raises(LeaseLost):
        await store.ingest.ingest(stale, page_of(stale, records(1)), "walker")
