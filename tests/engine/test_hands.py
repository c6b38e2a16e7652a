"""What is in a worker's name and not in its hands goes back."""

from __future__ import annotations

from holdfast.kernel import Store
from holdfast.kernel.worker.hands import Hands
from tests.store.checks import claim, claim_one, filled_job, lease_stream, make_job


async def test_claim_that_nobody_has_goes_back_after_two_looks(store: Store) -> None:
    job_id = await filled_job(store, 3, 3)
    kept = await claim_one(store, job_id, 3, "one")
    await claim_one(store, job_id, 3, "one")
    hands = Hands(store, "one", lambda: {kept.lease.token})
    assert len(await hands.compare()) == 2
    assert await claim(store, job_id, worker="two") == [], "it may have been in flight"
    await hands.compare()
    assert await hands.compare() == {kept.lease.token}
    assert len(await claim(store, job_id, worker="two")) == 1


async def test_stream_that_nobody_reads_goes_back_after_two_looks(store: Store) -> None:
    job_id = await make_job(store)
    await lease_stream(store, job_id, "one")
    hands = Hands(store, "one", set)
    for _ in range(2):
        await hands.compare()
    assert await store.workers.tokens_of("one") == set()
    await lease_stream(store, job_id, "two")


async def test_claim_that_is_handed_on_between_two_looks_stays(store: Store) -> None:
    job_id = await filled_job(store, 3, 3)
    first = await claim_one(store, job_id, 3, "one")
    in_hand: set[str] = set()
    hands = Hands(store, "one", lambda: in_hand)
    await hands.compare()
    in_hand.add(first.lease.token)
    for _ in range(2):
        assert await hands.compare() == {first.lease.token}
