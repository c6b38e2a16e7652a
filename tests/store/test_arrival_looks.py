"""How far back claims look, while records come fast."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from holdfast.clock import SystemClock
from holdfast.store import NewJob, Store, open_store
from holdfast.store.arrival_looks import ArrivalLooks
from holdfast.store.enqueue import Addition, new_item
from tests.store.checks import MEGABYTES, execute, settle


class HandClock(SystemClock):
    def __init__(self) -> None:
        self.at = 100.0

    def monotonic(self) -> float:
        return self.at


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
async def store(postgres_url: str, clock: HandClock) -> AsyncIterator[Store]:
    opened = await open_store(postgres_url, clock=clock)
    yield opened
    await opened.close()


def test_looks_at_the_newest_only_for_a_moment_after_a_claim_of_many(clock: HandClock) -> None:
    looks = ArrivalLooks(clock)
    looks.note(1, ranges=7, limit=256)
    assert looks.seconds_back(1) == 5.0
    looks.note(1, ranges=8, limit=256)
    assert looks.seconds_back(1) == 0.05
    assert looks.seconds_back(2) == 5.0
    clock.at += 0.04
    looks.note(1, ranges=200, limit=256)
    clock.at += 0.02
    assert looks.seconds_back(1) == 5.0


def test_looks_at_all_after_a_full_claim(clock: HandClock) -> None:
    looks = ArrivalLooks(clock)
    looks.note(1, ranges=256, limit=256)
    assert looks.seconds_back(1) == 5.0
    looks.note(1, ranges=100, limit=256)
    looks.note(1, ranges=256, limit=256)
    assert looks.seconds_back(1) == 5.0


async def test_record_that_was_committed_late_among_many_waits_for_a_moment(
    store: Store, clock: HandClock
) -> None:
    job_id, _ = await store.jobs.open(NewJob("demo", "demo", [], standing=True), "ada")

    async def add(count: int) -> None:
        for number in range(count):
            await store.additions.enqueue(Addition("demo", "", [new_item({"n": number})]))

    async def take() -> int:
        claims = await store.leases.claim(
            job_id, "one", 100, MEGABYTES, 3600, standing=True, brief=True
        )
        for claimed in claims:
            await settle(store, claimed)
        return sum(len(claimed.rows) for claimed in claims)

    await add(1)
    assert await take() == 1
    assert await take() == 0  # looks at all ranges, so that the next looks are at new ones
    await add(10)
    assert await take() == 10
    await add(1)
    await execute(store, "update ranges set since = @after(-1.0), available_at = @after(-1.0)")
    assert await take() == 0
    clock.at += 0.06
    assert await take() == 1
