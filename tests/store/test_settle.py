"""Settle: what came of items, under the fence, once, with everything that belongs to it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from holdfast.errors import UserError
from holdfast.features.console import open_console
from holdfast.kernel import DecisionRow, SaveFailed, Settlement, Store
from holdfast.kernel.database.chunks import FinishedItems
from holdfast.kernel.database.driver import Transaction
from holdfast.model import ItemStatus, JobState
from tests.store.checks import (
    claim,
    claim_one,
    execute,
    fetch,
    filled_job,
    lose,
    outcome_of,
    rows_written,
    seqs_of,
    settle,
    settlement_of,
    status_counts,
    work_off,
)

DONE, ERROR, PENDING = ItemStatus.DONE, ItemStatus.ERROR, ItemStatus.PENDING


async def test_every_kind_of_outcome_is_written_and_counted(store: Store) -> None:
    job_id = await filled_job(store, 5)
    held = await claim_one(store, job_id)
    kinds = [DONE, ERROR, ItemStatus.NOT_FOUND, ItemStatus.SKIPPED, PENDING]
    outcomes = [outcome_of(row, kind) for row, kind in zip(held.rows, kinds, strict=True)]
    assert (
        await store.outcomes.settle(job_id, "one", [Settlement(held.lease, outcomes, True)]) == []
    )
    counters = await store.reads.counters(job_id)
    assert (counters.done, counters.error, counters.not_found, counters.skipped) == (1, 1, 1, 1)
    assert (counters.open, counters.retried, counters.throttled) == (1, 1, 0)
    item = await open_console(store).items.item(job_id, 2)
    assert item is not None
    assert (item["status"], item["error_code"], item["tries"]) == ("ERROR", "TIMEOUT", 1)
    assert (await open_console(store).items.item(job_id, 1) or {})["result"] == '{"seq":1}'
    assert await open_console(store).jobs.errors_by_code(job_id) != []


async def test_part_is_settled_and_only_the_rest_comes_back(store: Store) -> None:
    job_id = await filled_job(store, 6)
    held = await claim_one(store, job_id)
    assert await settle(store, held, only=[1, 4]) == []
    assert await settle(store, held, PENDING, only=[2], delay=3600.0) == []
    await store.leases.release([held.lease])
    again = await claim_one(store, job_id, worker="two")
    assert seqs_of(again) == [3, 5, 6]
    assert await settle(store, again) == []
    assert await status_counts(store, job_id) == {"DONE": 5, "PENDING": 1}


async def test_rest_of_a_partly_settled_range_can_be_split(store: Store) -> None:
    job_id = await filled_job(store, 6)
    held = await claim_one(store, job_id)
    await settle(store, held, only=[1, 4])
    await store.leases.release([held.lease])
    assert seqs_of(*await claim(store, job_id, 3)) == [2, 3]
    assert seqs_of(*await claim(store, job_id, 3)) == [5, 6]


async def test_part_of_an_again_range_is_settled_and_the_rest_comes_back(store: Store) -> None:
    job_id = await filled_job(store, 4)
    await settle(store, await claim_one(store, job_id), PENDING)
    held = await claim_one(store, job_id)
    await settle(store, held, only=[1, 3])
    await settle(store, held, PENDING, only=[2], delay=3600.0)
    await store.leases.release([held.lease])
    assert seqs_of(*await claim(store, job_id)) == [4]


async def test_worker_that_lost_its_lease_writes_nothing(store: Store) -> None:
    job_id = await filled_job(store, 3)
    late = await claim_one(store, job_id)
    await lose(store)
    await claim_one(store, job_id, worker="two")
    before = await rows_written(store, job_id)
    assert await settle(store, late) == [late.lease]
    assert await settle(store, late, only=[1]) == [late.lease]
    assert await rows_written(store, job_id) == before


async def test_lost_lease_beside_a_held_one_loses_only_its_own(store: Store) -> None:
    job_id = await filled_job(store, 2, 2)
    lost, held = await claim(store, job_id)
    await store.leases.release([lost.lease])
    both = [settlement_of(lost), settlement_of(held)]
    assert await store.outcomes.settle(job_id, "one", both) == [lost.lease]
    assert await status_counts(store, job_id) == {"DONE": 2, "PENDING": 2}


@pytest.mark.parametrize("status", [DONE, PENDING])
async def test_part_sent_again_after_a_lost_reply_changes_nothing(
    store: Store, status: ItemStatus
) -> None:
    job_id = await filled_job(store, 4)
    held = await claim_one(store, job_id)
    part = settlement_of(held, status, only=[1, 2])
    assert await store.outcomes.settle(job_id, "one", [part]) == []
    before = await rows_written(store, job_id)
    assert await store.outcomes.settle(job_id, "one", [part]) == []
    after = await rows_written(store, job_id)
    assert _without_times(after) == _without_times(before)


async def test_last_settlement_sent_again_changes_nothing(store: Store) -> None:
    job_id = await filled_job(store, 4)
    held = await claim_one(store, job_id)
    rest = settlement_of(held)
    assert await store.outcomes.settle(job_id, "one", [rest]) == []
    before = await rows_written(store, job_id)
    await store.outcomes.settle(job_id, "one", [rest])
    assert await rows_written(store, job_id) == before


def _without_times(written: tuple[list[str], ...]) -> tuple[list[str], ...]:
    """The counters' row of the worker says when it was last written, even if it added nothing."""
    return tuple(rows for place, rows in enumerate(written) if place != 4)


async def test_retry_is_due_after_its_delay_and_not_before(store: Store) -> None:
    job_id = await filled_job(store, 3)
    held = await claim_one(store, job_id)
    delays = (0.0, 3600.0, 7200.0)
    outcomes = [
        outcome_of(row, PENDING, delay=delay) for row, delay in zip(held.rows, delays, strict=True)
    ]
    await store.outcomes.settle(job_id, "one", [Settlement(held.lease, outcomes, True)])
    assert seqs_of(*await claim(store, job_id)) == [1]
    await execute(store, "update ranges set available_at = @after(-1.0) where lo = 2")
    assert seqs_of(*await claim(store, job_id)) == [2]
    assert await claim(store, job_id) == []


async def test_retries_due_at_about_the_same_time_share_a_range_due_with_its_last(
    store: Store,
) -> None:
    job_id = await filled_job(store, 3)
    held = await claim_one(store, job_id)
    outcomes = [
        outcome_of(row, PENDING, delay=delay)
        for row, delay in zip(held.rows, (100.0, 90.0, 110.0), strict=True)
    ]
    await store.outcomes.settle(job_id, "one", [Settlement(held.lease, outcomes, True)])
    rows = await fetch(
        store,
        "select count(*), sum(case when available_at > @after(105.0) then 1 else 0 end) "
        "from ranges where job_id = :job_id",
        job_id=job_id,
    )
    assert tuple(rows[0]) == (1, 1)


async def test_many_retries_make_ranges_of_bounded_size(store: Store) -> None:
    job_id = await filled_job(store, 1100)
    await settle(store, await claim_one(store, job_id), PENDING)
    claims = await claim(store, job_id)
    assert sorted(len(claimed.rows) for claimed in claims) == [100, 500, 500]


async def test_retried_item_carries_its_tries_and_keeps_their_history(store: Store) -> None:
    job_id = await filled_job(store, 1)
    await settle(store, await claim_one(store, job_id), PENDING, error_code="TIMEOUT")
    second = await claim_one(store, job_id)
    assert tuple(second.rows[0])[2:] == (1, 1, 0)
    await settle(store, second, PENDING, error_code="NOT_FOUND")
    third = await claim_one(store, job_id)
    await settle(store, third, DONE)
    history = [
        (one["number"], one["status"])
        for one in await open_console(store).items.attempts(job_id, 1)
    ]
    assert history == [(1, "ERROR"), (2, "NOT_FOUND")]
    item = await open_console(store).items.item(job_id, 1)
    assert item is not None and (item["tries"], item["status"]) == (3, "DONE")
    assert item["error_code"] is None
    assert (await store.reads.counters(job_id)).retried == 2


async def test_throttled_try_is_counted_and_one_that_waited_for_a_gate_leaves_no_trace(
    store: Store,
) -> None:
    job_id = await filled_job(store, 2)
    held = await claim_one(store, job_id)
    throttled = outcome_of(held.rows[0], PENDING, charged=False, error_code="RATE_LIMITED")
    waits = outcome_of(
        held.rows[1], PENDING, charged=False, logged=False, error_message="api", delay=3600.0
    )
    await store.outcomes.settle(job_id, "one", [Settlement(held.lease, [throttled, waits], True)])
    counters = await store.reads.counters(job_id)
    assert (counters.retried, counters.throttled) == (0, 1), "a throttle is not a retry"
    assert await open_console(store).items.attempts(job_id, 2) == []
    assert [found.waiting_for for found in await open_console(store).ranges.of_job(job_id)] == [
        None,
        "api",
    ]


async def test_first_success_writes_no_history(store: Store) -> None:
    job_id = await filled_job(store, 1)
    await work_off(store, job_id)
    assert await open_console(store).items.attempts(job_id, 1) == []


async def test_save_writes_in_the_settling_transaction(store: Store) -> None:
    await store.jobs.prepare(["create table if not exists priced (seq integer, price integer)"])
    job_id = await filled_job(store, 3)
    held = await claim_one(store, job_id)

    async def save(tx: Transaction, settlements: Sequence[Settlement]) -> None:
        rows = [{"seq": outcome.seq} for part in settlements for outcome in part.outcomes]
        await tx.execute_many("insert into priced (seq, price) values (:seq, 7)", rows)

    await store.outcomes.settle(job_id, "one", [settlement_of(held)], save=save)
    assert [row[0] for row in await fetch(store, "select seq from priced order by seq")] == [
        1,
        2,
        3,
    ]


async def test_failed_save_rolls_everything_back(store: Store) -> None:
    await store.jobs.prepare(["create table if not exists priced (seq integer primary key)"])
    job_id = await filled_job(store, 3)
    held = await claim_one(store, job_id)
    before = await rows_written(store, job_id)

    async def save(tx: Transaction, settlements: Sequence[Settlement]) -> None:
        for _ in range(2):
            await tx.execute("insert into priced (seq) values (:seq)", {"seq": 1})

    with pytest.raises(SaveFailed, match=r"(?i)unique"):
        await store.outcomes.settle(job_id, "one", [settlement_of(held)], save=save)
    assert await rows_written(store, job_id) == before
    assert await fetch(store, "select seq from priced") == []
    assert await settle(store, held) == []


async def test_save_is_not_called_for_a_lost_lease(store: Store) -> None:
    job_id = await filled_job(store, 3)
    held = await claim_one(store, job_id)
    await store.leases.release([held.lease])
    called = []

    async def save(tx: Transaction, settlements: Sequence[Settlement]) -> None:
        called.append(settlements)

    await store.outcomes.settle(job_id, "one", [settlement_of(held)], save=save)
    assert called == []


async def test_decisions_are_written_with_the_settlement(store: Store) -> None:
    job_id = await filled_job(store, 1)
    held = await claim_one(store, job_id)
    decision = DecisionRow("claim", 10, 20, "items are fast")
    await store.outcomes.settle(job_id, "one", [settlement_of(held)], decisions=[decision])
    found = await open_console(store).jobs.decisions(job_id, 5)
    assert [(one["what"], one["was"], one["became"]) for one in found] == [("claim", 10, 20)]


async def test_job_with_open_ranges_or_a_walked_stream_is_not_completed(store: Store) -> None:
    job_id = await filled_job(store, 2, 2)
    first, second = await claim(store, job_id)
    await settle(store, first)
    assert await store.outcomes.complete(job_id) is None
    await settle(store, second)
    assert await store.outcomes.complete(job_id) is JobState.DONE
    assert await store.outcomes.complete(job_id) is None
    assert await store.outcomes.complete(4711) is None


async def test_outcome_that_the_database_refuses_harms_nothing_else(store: Store) -> None:
    job_id = await filled_job(store, 2)
    held = await claim_one(store, job_id)
    before = await rows_written(store, job_id)
    broken = [outcome_of(held.rows[0]), outcome_of(held.rows[1])._replace(status=None)]  # type: ignore[arg-type]
    with pytest.raises(Exception, match=r"(?i)null"):
        await store.outcomes.settle(job_id, "one", [Settlement(held.lease, broken, True)])
    assert await rows_written(store, job_id) == before
    assert await settle(store, held) == []


async def test_reprocess_of_an_open_status_is_refused(store: Store) -> None:
    job_id = await filled_job(store, 2)
    await settle(store, await claim_one(store, job_id), PENDING)
    await claim_one(store, job_id)
    with pytest.raises(UserError, match="not finished"):
        await store.jobs.reprocess(job_id, FinishedItems(PENDING), "tester")
