"""Expired leases: no attempt is charged at first, then what kills its worker is narrowed down."""

from __future__ import annotations

import pytest

from holdfast.errors import UserError
from holdfast.features.console import open_console
from holdfast.kernel import Store
from holdfast.kernel.database.chunks import NamedItems
from holdfast.model import ItemStatus, JobState
from tests.store.checks import (
    assert_sound,
    audit_of,
    claim,
    claim_one,
    crash,
    filled_job,
    lease_stream,
    lose,
    make_job,
    seqs_of,
    settle,
    statuses,
    work_off,
)

PENDING = ItemStatus.PENDING


async def test_first_expiry_charges_no_attempt(store: Store) -> None:
    job_id = await filled_job(store, 20)
    await claim_one(store, job_id)
    assert await lose(store) == [job_id]
    held = await claim_one(store, job_id)
    assert len(held.rows) == 20
    assert held.lease.expiries == 1 and not held.lease.alone


async def test_what_a_living_worker_holds_is_not_left_behind(store: Store) -> None:
    job_id = await filled_job(store, 2, 2)
    await store.workers.add_worker("one", "host", 1, [])
    held = await claim_one(store, job_id, 2, "one")
    other = await claim_one(store, job_id, 2, "unknown")
    assert await store.workers.free_left_behind() == [job_id]
    assert await settle(store, held) == []
    assert await settle(store, other) == [other.lease]


async def test_second_expiry_cuts_the_range_in_eighths_that_run_alone(store: Store) -> None:
    job_id = await filled_job(store, 20)
    for _ in range(2):
        assert await crash(store, job_id) == [list(range(1, 21))]
    pieces = []
    while claims := await claim(store, job_id):
        assert len(claims) == 1 and claims[0].lease.alone
        pieces.append(seqs_of(*claims))
    assert sorted(pieces) == [
        [1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12], [13, 14, 15], [16, 17, 18], [19, 20],
    ]  # fmt: skip


async def test_range_that_runs_alone_is_not_claimed_beside_others(store: Store) -> None:
    job_id = await filled_job(store, 1, 1)
    first, _ = await claim(store, job_id, worker="doomed")
    await store.workers.stop_worker("doomed")
    again = await claim_one(store, job_id, 1, worker="doomed")
    assert seqs_of(again) == seqs_of(first)
    await store.workers.stop_worker("doomed")
    claims = await claim(store, job_id)
    assert len(claims) == 1
    assert len(await claim(store, job_id)) == 1


async def test_finished_part_of_an_expired_range_is_not_cut_up(store: Store) -> None:
    job_id = await filled_job(store, 10)
    await crash(store, job_id)
    held = await claim_one(store, job_id)
    await settle(store, held, only=[1, 2, 3, 4, 5, 6, 7])
    await lose(store)
    pieces = []
    while claims := await claim(store, job_id):
        pieces.append(seqs_of(*claims))
    assert sorted(pieces) == [[8], [9], [10]]


async def test_expired_range_without_open_items_is_dropped(store: Store) -> None:
    job_id = await filled_job(store, 2)
    await crash(store, job_id)
    held = await claim_one(store, job_id)
    await settle(store, held, only=[1, 2])
    await lose(store)
    assert await open_console(store).ranges.count(job_id) == 0
    assert await store.outcomes.complete(job_id) is JobState.DONE


async def test_item_that_kills_its_worker_ends_as_a_dead_letter_and_harms_only_itself(
    store: Store,
) -> None:
    job_id = await filled_job(store, 50)
    killer, deaths = 23, 0
    for _ in range(100):
        claims = await claim(store, job_id)
        if not claims:
            break
        for claimed in claims:
            if killer in seqs_of(claimed):
                before = [seq for seq in seqs_of(claimed) if seq < killer]
                if before:
                    await settle(store, claimed, only=before)
                deaths += 1
            else:
                assert await settle(store, claimed) == []
        await store.workers.stop_worker("one")
    ended = await statuses(store, job_id)
    assert ended.pop(killer) is ItemStatus.ERROR
    assert set(ended.values()) == {ItemStatus.DONE}
    assert deaths <= 7
    letters = await open_console(store).dead_letters.oldest("OPEN", 10)
    assert [(letter["seq"], letter["code"]) for letter in letters] == [(killer, "CRASHED")]
    item = await open_console(store).items.item(job_id, killer)
    assert item is not None and item["error_code"] == "CRASHED"
    assert await store.outcomes.complete(job_id) is JobState.DONE


async def test_item_becomes_a_dead_letter_only_after_three_deaths_alone(store: Store) -> None:
    job_id = await filled_job(store, 1)
    for death in range(1, 6):
        assert await crash(store, job_id) == [[1]]
        letters = await open_console(store).dead_letters.oldest("OPEN", 10)
        assert len(letters) == (1 if death == 5 else 0)
    assert await claim(store, job_id) == []
    assert (await store.reads.counters(job_id)).error == 1


async def test_three_outages_make_no_dead_letter_of_an_innocent_item(store: Store) -> None:
    job_id = await filled_job(store, 1, 30, 1)
    for _ in range(3):
        while await claim(store, job_id):
            pass
        await lose(store)
    assert await work_off(store, job_id) == 32
    assert await open_console(store).dead_letters.oldest("OPEN", 10) == []


async def test_retried_items_that_crash_are_cut_up_and_quarantined_alike(store: Store) -> None:
    job_id = await filled_job(store, 4)
    await settle(store, await claim_one(store, job_id), PENDING)
    for _ in range(2):
        assert await crash(store, job_id) == [[1, 2, 3, 4]]
        await assert_sound(store, job_id)
    for _ in range(3):
        held = await claim_one(store, job_id)
        while seqs_of(held) != [3]:
            assert held.lease.alone and held.lease.again
            await settle(store, held)
            held = await claim_one(store, job_id)
        await store.workers.stop_worker("one")
        await assert_sound(store, job_id)
    await work_off(store, job_id)
    ended = await statuses(store, job_id)
    assert ended == dict.fromkeys((1, 2, 4), ItemStatus.DONE) | {3: ItemStatus.ERROR}
    item = await open_console(store).items.item(job_id, 3)
    assert item is not None and item["tries"] == 6 and item["range_id"] is None


async def test_release_between_crashes_is_not_charged(store: Store) -> None:
    job_id = await filled_job(store, 1)
    for _ in range(6):
        held = await claim_one(store, job_id)
        await store.leases.release([held.lease])
    for _ in range(4):
        await crash(store, job_id)
    assert await open_console(store).dead_letters.oldest("OPEN", 10) == []


async def test_supervisor_returns_only_what_its_worker_held(store: Store) -> None:
    job_id = await filled_job(store, 6)
    await claim_one(store, job_id, 2, worker="dead")
    alive = await claim_one(store, job_id, 2, worker="alive")
    assert await store.workers.stop_worker("dead") == [job_id]
    assert await store.workers.stop_worker("dead") == []
    assert await settle(store, alive) == []
    assert sorted(seqs_of(*await claim(store, job_id))) == [1, 2, 5, 6]


async def test_expired_stream_lease_is_free_for_the_next(store: Store) -> None:
    job_id = await make_job(store)
    await lease_stream(store, job_id, "dead")
    assert await store.reads.discovering_jobs(["demo"]) == []
    await lose(store)
    assert await store.reads.discovering_jobs(["demo"]) == [(job_id, "UPLOAD", "local")]
    await lease_stream(store, job_id, "next")


async def _dead_letter(store: Store) -> tuple[int, int]:
    job_id = await filled_job(store, 1)
    for _ in range(5):
        await crash(store, job_id)
    assert await store.outcomes.complete(job_id) is JobState.DONE
    return job_id, (await open_console(store).dead_letters.oldest("OPEN", 1))[0]["id"]


async def test_replayed_dead_letter_opens_its_item_again(store: Store) -> None:
    job_id, letter = await _dead_letter(store)
    await store.jobs.act_on_dead_letter(letter, True, "tester")
    assert await open_console(store).dead_letters.oldest("OPEN", 1) == []
    replayed = (await open_console(store).dead_letters.oldest("REPLAYED", 1))[0]
    assert (replayed["id"], replayed["actor"]) == (letter, "tester")
    held = await claim_one(store, job_id)
    assert seqs_of(held) == [1] and held.lease.expiries == 0
    await settle(store, held)
    assert await store.outcomes.complete(job_id) is JobState.DONE
    history = await open_console(store).items.attempts(job_id, 1)
    assert [one["error_code"] for one in history] == ["CRASHED"]
    assert "dead.replayed" in [entry["action"] for entry in await audit_of(store, job_id)]


async def test_dropped_dead_letter_stays_an_error(store: Store) -> None:
    job_id, letter = await _dead_letter(store)
    await store.jobs.act_on_dead_letter(letter, False, "tester")
    assert await open_console(store).dead_letters.oldest("DROPPED", 1) != []
    assert await statuses(store, job_id) == {1: ItemStatus.ERROR}
    with pytest.raises(UserError, match="no open dead letter"):
        await store.jobs.act_on_dead_letter(letter, True, "tester")


async def test_item_that_is_reprocessed_is_set_aside_no_longer(store: Store) -> None:
    job_id, letter = await _dead_letter(store)
    await store.jobs.reprocess(job_id, NamedItems([1]), "tester")
    assert await open_console(store).dead_letters.oldest("OPEN", 10) == []
    with pytest.raises(UserError, match="no open dead letter"):
        await store.jobs.act_on_dead_letter(letter, True, "tester")
    assert await work_off(store, job_id) == 1
