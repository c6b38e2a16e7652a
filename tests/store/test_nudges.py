"""Which jobs have a nudge out: those with work, one each, whatever is lost or comes twice."""

from __future__ import annotations

import asyncio

from holdfast.kernel import NewJob, NewStream, Store, open_store
from holdfast.kernel.outbox.nudges import Nudge
from holdfast.model import ItemStatus, Lane
from tests.store.checks import claim_one, execute, filled_job, lease_stream, settle
from tests.store.message_scenarios import nudge_of

LONG_AGO = "2020-01-01T00:00:00.000Z"


async def _add(store: Store) -> list[Nudge]:
    return await store.nudges.add_nudges(True)


async def _discovery(store: Store, lane: Lane = Lane.BACKFILL) -> int:
    new = NewJob("walker", "walk", [NewStream("a site", "fingerprint")], lane=lane)
    return await store.jobs.create(new, "tester")


async def test_job_with_items_or_a_stream_to_read_has_one(store: Store) -> None:
    filled, walk = await filled_job(store, 2), await _discovery(store)
    added = {nudge.job_id: nudge for nudge in await _add(store)}
    assert {job_id: nudge.pipeline for job_id, nudge in added.items()} == {
        filled: "demo", walk: "walker",
    }  # fmt: skip
    assert await _add(store) == []
    assert await store.nudges.counts() == {"demo": 1, "walker": 1}


async def test_work_in_hands_is_work(store: Store) -> None:
    filled, walk = await filled_job(store, 2), await _discovery(store)
    await claim_one(store, filled)
    await lease_stream(store, walk)
    assert {nudge.job_id for nudge in await _add(store)} == {filled, walk}


async def test_job_that_nobody_may_work_on_has_none(store: Store) -> None:
    paused, later, walk = [await filled_job(store, 1) for _ in range(2)] + [await _discovery(store)]
    await store.jobs.pause(paused, "tester")
    await settle(store, await claim_one(store, later), ItemStatus.PENDING, delay=3600)
    await store.jobs.switch("pipeline:walker", True, "tester")
    assert await _add(store) == []
    await store.jobs.switch("pipeline:walker", False, "tester")
    assert await store.nudges.add_nudges(backfill=False) == []
    assert [nudge.job_id for nudge in await _add(store)] == [walk]


async def test_worker_keeps_what_has_work_and_lets_go_of_the_rest(store: Store) -> None:
    busy, ended = await filled_job(store, 1), await filled_job(store, 1)
    nudges = {nudge.job_id: nudge for nudge in await _add(store)}
    await settle(store, await claim_one(store, ended))
    unknown = Nudge(busy, "demo", "another message")
    kept = await store.nudges.keep_nudges([*nudges.values(), unknown])
    assert kept == {nudges[busy].message_id}
    assert await nudge_of(store, ended) is None
    assert await nudge_of(store, busy) == nudges[busy].message_id


async def test_what_is_let_go_of_is_added_again_if_it_has_work(store: Store) -> None:
    job_id = await filled_job(store, 1)
    (first,) = await _add(store)
    assert await store.nudges.keep_nudges([], [first]) == set()
    (second,) = await _add(store)
    assert (second.job_id, second.message_id == first.message_id) == (job_id, False)


async def test_what_no_worker_has_seen_for_long_is_renewed_or_forgotten(store: Store) -> None:
    busy, ended = await filled_job(store, 1), await filled_job(store, 1)
    nudges = {nudge.job_id: nudge for nudge in await _add(store)}
    assert await store.nudges.unseen(60) == []
    await execute(store, f"update nudges set seen_at = '{LONG_AGO}'")
    await settle(store, await claim_one(store, ended))
    lost = await store.nudges.unseen(60)
    assert set(lost) == set(nudges.values())
    (renewed,) = await store.nudges.renew_nudges(lost)
    assert (renewed.job_id, renewed.message_id == nudges[busy].message_id) == (busy, False)
    assert await nudge_of(store, ended) is None
    assert await store.nudges.renew_nudges(lost) == []  # by another relay


async def test_of_several_relays_one_adds_it(store: Store, database_url: str) -> None:
    for _ in range(20):
        await filled_job(store, 1)
    others = [await open_store(database_url) for _ in range(3)]
    added = await asyncio.gather(*(_add(each) for each in (store, *others)))
    for other in others:
        await other.close()
    assert len([nudge for part in added for nudge in part]) == 20
    assert (await store.nudges.counts())["demo"] == 20
