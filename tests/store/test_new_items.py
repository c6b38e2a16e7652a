"""New items reach the process that wrote them without being read back, and never wrongly."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.clock import FixedClock
from holdfast.store import Store
from holdfast.store.chunks import NamedItems
from holdfast.store.new_items import NewItemRows
from tests.store.checks import (
    claim,
    claim_one,
    execute,
    ingest,
    lease_stream,
    make_job,
    records,
    seqs_of,
    settle,
)

NEW = [(1, "a", 0, 0, 0), (2, "b", 0, 0, 0), (4, "c", 0, 0, 0)]


async def ingested(store: Store, count: int) -> int:
    """A job with new items, of which the store has no other copy: those in its table are spoilt."""
    job_id = await make_job(store)
    assert not await claim(store, job_id)
    await ingest(store, await lease_stream(store, job_id), records(count))
    await execute(store, "update items set input = '\"read\"'")
    return job_id


def inputs_of(claimed: Any) -> list[str]:
    return [row[1] for row in claimed.rows]


async def test_new_items_are_not_read_back(store: Store) -> None:
    job_id = await ingested(store, 2)
    held = await claim_one(store, job_id)
    assert [tuple(row) for row in held.rows] == [(1, '{"n": 0}', 0, 0, 0), (2, '{"n": 1}', 0, 0, 0)]


async def test_a_range_is_split_without_reading(store: Store) -> None:
    job_id = await ingested(store, 5)
    parts = [await claim_one(store, job_id, 2) for _ in range(3)]
    assert [seqs_of(part) for part in parts] == [[1, 2], [3, 4], [5]]
    assert '"read"' not in [text for part in parts for text in inputs_of(part)]


async def test_items_that_came_back_are_read(store: Store) -> None:
    job_id = await ingested(store, 2)
    held = await claim_one(store, job_id)
    await store.leases.release([held.lease])
    assert inputs_of(await claim_one(store, job_id)) == ['"read"'] * 2


async def test_what_another_process_left_of_a_range_is_read(
    store: Store, other_store: Store
) -> None:
    job_id = await ingested(store, 5)
    head = await claim_one(other_store, job_id, 2)
    assert inputs_of(head) == ['"read"'] * 2
    rest = await claim_one(store, job_id)
    assert seqs_of(rest) == [3, 4, 5] and inputs_of(rest) == ['"read"'] * 3


async def test_skipped_items_are_not_claimed(store: Store) -> None:
    job_id = await ingested(store, 3)
    await store.jobs.skip(job_id, NamedItems([2]), "tester", "not wanted")
    assert sorted(seqs_of(*await claim(store, job_id))) == [1, 3]


async def test_outcomes_of_new_items_are_settled(store: Store) -> None:
    job_id = await ingested(store, 3)
    held = await claim_one(store, job_id)
    assert not await settle(store, held)
    assert (await store.reads.counters(job_id)).done == 3
    assert not await claim(store, job_id)


def test_a_process_that_claims_nothing_keeps_nothing() -> None:
    kept = NewItemRows(FixedClock())
    kept.keep(7, 1, NEW)
    assert kept.take(7, 1, 1, 4) is None


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def kept(clock: FixedClock) -> NewItemRows:
    rows = NewItemRows(clock)
    rows.expect_claims()
    rows.keep(7, 1, NEW)
    return rows


def test_rows_are_taken_once(kept: NewItemRows) -> None:
    assert kept.take(7, 1, 1, 4) == NEW
    assert kept.take(7, 1, 1, 4) is None


@pytest.mark.parametrize(("job_id", "lo"), [(2, 1), (1, 2)])
def test_a_range_that_is_not_the_same_is_read(kept: NewItemRows, job_id: int, lo: int) -> None:
    assert kept.take(7, job_id, lo, 4) is None


def test_rows_that_nobody_claims_are_dropped(kept: NewItemRows, clock: FixedClock) -> None:
    clock.advance(60)
    assert kept.take(7, 1, 1, 4) is None


def test_rows_are_forgotten_with_the_database(kept: NewItemRows) -> None:
    kept.clear()
    assert kept.take(7, 1, 1, 4) is None


def test_only_so_much_is_kept(kept: NewItemRows) -> None:
    large = [(1, "x" * 9_000_000, 0, 0, 0)]
    kept.keep(8, 1, large)
    kept.keep(9, 1, large)
    assert kept.take(8, 1, 1, 1) == large
    assert kept.take(9, 1, 1, 1) is None
    kept.keep(9, 1, large)
    assert kept.take(9, 1, 1, 1) == large


def test_small_rows_count_as_more_than_their_text(kept: NewItemRows) -> None:
    small = [(seq, "{}", 0, 0, 0) for seq in range(200_000)]
    kept.keep(8, 1, small)
    assert kept.take(8, 1, 0, len(small)) is None
