"""Reprocess: finished items are opened again, in chunks, each once."""

from __future__ import annotations

import pytest

from holdfast.errors import UserError
from holdfast.features.console import open_console
from holdfast.kernel import Store
from holdfast.kernel.database.chunks import FinishedItems, NamedItems
from holdfast.kernel.jobs.control import Control
from holdfast.model import ItemStatus, JobState
from holdfast.observe.log import get_logger
from tests.store.checks import (
    assert_sound,
    claim,
    claim_one,
    filled_job,
    finished_job,
    items_of,
    rows_written,
    seqs_of,
    settle,
    state_of,
    status_counts,
    work_off,
)

DONE, ERROR = ItemStatus.DONE, ItemStatus.ERROR


async def test_items_of_one_status_are_opened_and_the_job_runs_again(store: Store) -> None:
    job_id = await finished_job(store, DONE, ERROR, ItemStatus.NOT_FOUND, ERROR)
    assert (await store.jobs.reprocess(job_id, FinishedItems(ERROR), "tester")).opened == 2
    job = await store.reads.job(job_id)
    assert job.state is JobState.RUNNING and job.finished_at is None
    counters = await store.reads.counters(job_id)
    assert (counters.accepted, counters.error, counters.open) == (4, 0, 2)
    held = await claim_one(store, job_id)
    assert seqs_of(held) == [2, 4] and held.lease.again
    await settle(store, held)
    assert await store.outcomes.complete(job_id) is JobState.DONE
    assert await status_counts(store, job_id) == {"DONE": 3, "NOT_FOUND": 1}


async def test_chunks_are_opened_until_none_is_left(store: Store) -> None:
    job_id = await filled_job(store, 1200)
    await work_off(store, job_id, ERROR)
    items = FinishedItems(ERROR, until=await store.jobs.now())
    opened = []
    while count := (await store.jobs.reprocess(job_id, items, "tester")).opened:
        opened.append(count)
        await assert_sound(store, job_id)
    assert opened == [500, 500, 200]
    assert sorted(len(claimed.rows) for claimed in await claim(store, job_id)) == [200, 500, 500]


async def test_items_that_fail_again_in_between_are_not_taken_twice(store: Store) -> None:
    job_id = await filled_job(store, 1200)
    await work_off(store, job_id, ERROR)
    items = FinishedItems(ERROR, until=await store.jobs.now())
    total = 0
    while count := (await store.jobs.reprocess(job_id, items, "tester")).opened:
        total += count
        await work_off(store, job_id, ERROR)
    assert total == 1200


async def test_reprocess_resets_the_attempts_and_keeps_the_history(store: Store) -> None:
    job_id = await finished_job(store, ERROR)
    await store.jobs.reprocess(job_id, FinishedItems(ERROR), "tester")
    held = await claim_one(store, job_id)
    assert tuple(held.rows[0])[2:] == (1, 0, 0)
    await settle(store, held)
    history = await open_console(store).items.attempts(job_id, 1)
    assert [(one["number"], one["error_code"]) for one in history] == [(1, "TIMEOUT")]


async def test_reprocess_without_reset_keeps_counting_attempts(store: Store) -> None:
    job_id = await finished_job(store, ERROR)
    before = await store.jobs.now()
    await store.jobs.reprocess(job_id, FinishedItems(ERROR, until=before), "tester", reset=False)
    assert tuple((await claim_one(store, job_id)).rows[0])[2:] == (1, 1, 0)


async def test_replaced_result_is_kept_as_history(store: Store) -> None:
    job_id = await finished_job(store, DONE)
    await store.jobs.reprocess(job_id, NamedItems([1]), "tester")
    assert (await open_console(store).items.attempts(job_id, 1))[0]["result"] == '{"seq":1}'
    item = await open_console(store).items.item(job_id, 1)
    assert item is not None and item["result"] is None


async def test_named_items_are_opened(store: Store) -> None:
    job_id = await finished_job(store, DONE, ERROR, DONE)
    assert (await store.jobs.reprocess(job_id, NamedItems([3, 1, 3]), "tester")).opened == 2
    assert seqs_of(await claim_one(store, job_id)) == [1, 3]


@pytest.mark.parametrize("seqs", [[99], [2], [2, 99]])
async def test_without_a_finished_item_nothing_is_opened(store: Store, seqs: list[int]) -> None:
    job_id = await filled_job(store, 2)
    held = await claim_one(store, job_id)
    await settle(store, held, only=[1])
    before = await rows_written(store, job_id)
    with pytest.raises(UserError, match="still open, or does not exist"):
        await Control(store, "tester", get_logger()).reprocess_items(job_id, seqs)
    assert await rows_written(store, job_id) == before


async def test_items_still_open_are_left_alone_when_others_are_opened(store: Store) -> None:
    job_id = await filled_job(store, 3)
    held = await claim_one(store, job_id)
    await settle(store, held, only=[1, 3])
    assert (await store.jobs.reprocess(job_id, NamedItems([1, 2, 3, 99]), "tester")).opened == 2
    await assert_sound(store, job_id)


async def test_paused_job_stays_paused_when_items_are_opened(store: Store) -> None:
    job_id = await filled_job(store, 2)
    await settle(store, await claim_one(store, job_id, 1), ERROR)
    await store.jobs.pause(job_id, "tester")
    assert (await store.jobs.reprocess(job_id, FinishedItems(ERROR), "tester")).opened == 1
    assert await state_of(store, job_id) is JobState.PAUSED
    assert await claim(store, job_id) == []


async def test_nothing_to_reprocess_leaves_the_job_done(store: Store) -> None:
    job_id = await finished_job(store, DONE)
    assert (await store.jobs.reprocess(job_id, FinishedItems(ERROR), "tester")).opened == 0
    assert await state_of(store, job_id) is JobState.DONE


async def test_lists_by_status_are_ordered_by_when_it_was_reached(store: Store) -> None:
    job_id = await finished_job(store, DONE, ERROR, DONE)
    await store.jobs.reprocess(job_id, NamedItems([1]), "tester")
    await work_off(store, job_id)
    done = [item.seq for item in await items_of(store, job_id, [DONE])]
    assert done == [3, 1]
    both = [item.seq for item in await items_of(store, job_id, [ERROR, DONE])]
    assert both == [2, 3, 1]
    assert [item.seq for item in await items_of(store, job_id)] == [1, 2, 3]


async def test_lists_longer_than_a_page_are_whole(store: Store) -> None:
    job_id = await filled_job(store, 2300)
    half = await claim_one(store, job_id, 1150)
    await settle(store, half)
    everything = [item.seq for item in await items_of(store, job_id)]
    assert everything == list(range(1, 2301))
    done = [item.seq for item in await items_of(store, job_id, [DONE])]
    assert done == list(range(1, 1151))
    waiting = [ItemStatus.PENDING]
    pending = [item.seq for item in await items_of(store, job_id, waiting)]
    assert pending == list(range(1151, 2301))


async def test_items_that_wait_to_be_tried_again_count_as_backlog(store: Store) -> None:
    job_id = await filled_job(store, 5)
    await settle(store, await claim_one(store, job_id), DONE, only=[1, 3])
    await store.jobs.reprocess(job_id, NamedItems([1]), "tester")
    ((pipeline, depth, age),) = await store.reads.queue_depth()
    assert (pipeline, depth) == ("demo", 4) and age >= 0
