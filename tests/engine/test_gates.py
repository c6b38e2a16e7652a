"""Gates as workers pass them, two workers on one database."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest
import structlog

from holdfast.clock import SystemClock
from holdfast.errors import Failed, GateWait, ItemError, PipelineError
from holdfast.kernel import Store, open_store
from holdfast.kernel.gates.gates import GateLimits, Gates
from holdfast.kernel.pace.concurrency import ConcurrencyBounds
from holdfast.kernel.worker.chores import Chore, repeat
from holdfast.model import Lane
from holdfast.observe.metrics import Metrics
from holdfast.pipeline import Gate
from holdfast.tasks import end_tasks


def gates_of(store: Store, worker: str, max_wait: float = 2.0) -> Gates:
    limits = GateLimits(max_wait, ConcurrencyBounds(minimum=1, maximum=64, start=8))
    return Gates(store, worker, limits, SystemClock(), Metrics(), structlog.get_logger())


@pytest.fixture
async def second_store(database_url: str) -> AsyncIterator[Store]:
    opened = await open_store(database_url, rng=random.Random(1))
    yield opened
    await opened.close()


async def test_starts_of_two_workers_keep_the_minimum_distance(
    store: Store, second_store: Store
) -> None:
    await store.gates.declare(Gate("site", spacing=0.15, jitter=0.05))
    starts: list[float] = []
    clock = SystemClock()

    async def pass_three(gates: Gates) -> None:
        for _ in range(3):
            async with gates.passing("site"):
                starts.append(clock.monotonic())

    await asyncio.gather(
        pass_three(gates_of(store, "one")),
        pass_three(gates_of(second_store, "two")),
    )
    assert len(starts) == 6
    assert min(later - earlier for earlier, later in pairwise(sorted(starts))) >= 0.15


async def test_places_in_flight_are_shared_by_two_workers(
    store: Store, second_store: Store
) -> None:
    await store.gates.declare(Gate("site", concurrency=3))
    running = most = passed = 0

    async def one(gates: Gates) -> None:
        nonlocal running, most, passed
        while True:
            try:
                async with gates.passing("site"):
                    running += 1
                    most = max(most, running)
                    await asyncio.sleep(0.01)
                    running -= 1
                    passed += 1
                    return
            except GateWait:
                await asyncio.sleep(0.05)

    both = gates_of(store, "one"), gates_of(second_store, "two")
    keeping = [asyncio.create_task(_keep(gates)) for gates in both]
    await asyncio.gather(*(one(both[number % 2]) for number in range(24)))
    await end_tasks(keeping)
    assert passed == 24
    assert most <= 3


async def _keep(gates: Gates) -> None:
    """Gives back what is not used, as a worker does."""
    await repeat(Chore("gates", 0.1, gates.keep), SystemClock(), structlog.get_logger())


async def test_closed_gate_makes_items_of_every_worker_give_way(
    store: Store, second_store: Store
) -> None:
    one, two = gates_of(store, "one"), gates_of(second_store, "two")
    await one.close("site", 60, "429, Retry-After 60 s")
    for gates in (one, two):
        with pytest.raises(GateWait) as waiting:
            async with gates.passing("site"):
                raise AssertionError("passed a closed gate")
        assert 55 < waiting.value.seconds <= 60
        assert "429" in waiting.value.reason


async def test_item_that_would_wait_long_gives_its_place_up_at_once(store: Store) -> None:
    await store.gates.declare(Gate("slow", spacing=30))
    gates = gates_of(store, "one", max_wait=0.5)
    async with gates.passing("slow"):
        pass
    with pytest.raises(GateWait) as waiting:
        async with gates.passing("slow"):
            raise AssertionError("passed too early")
    assert 25 < waiting.value.seconds < 31


async def test_many_that_wait_for_few_starts_pass_or_give_way_and_none_is_stuck(
    store: Store,
) -> None:
    await store.gates.declare(Gate("site", spacing=0.2))
    gates = gates_of(store, "one", max_wait=3.0)
    outcomes: list[str] = []

    async def one() -> None:
        try:
            async with gates.passing("site"):
                outcomes.append("passed")
        except GateWait:
            outcomes.append("gave way")

    async with asyncio.timeout(60):
        await asyncio.gather(*(one() for _ in range(30)))
    assert len(outcomes) == 30
    assert 1 <= outcomes.count("passed") < 30


async def test_cancelled_while_waiting_holds_no_place(store: Store) -> None:
    await store.gates.declare(Gate("site", spacing=0.3, concurrency=1))
    gates = gates_of(store, "one")
    async with gates.passing("site"):
        pass
    waiting = asyncio.create_task(_pass(gates))
    await asyncio.sleep(0.1)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    async with asyncio.timeout(5):
        await _pass(gates)


async def test_kill_switch_of_a_host_closes_its_gate(store: Store) -> None:
    await store.jobs.switch("source:site", True, "tester")
    with pytest.raises(GateWait, match="kill switch"):
        await _pass(gates_of(store, "one", max_wait=0.2))


async def _pass(gates: Gates) -> None:
    async with gates.passing("site"):
        pass


async def test_urgent_lanes_pass_first_and_the_last_is_not_left_out(store: Store) -> None:
    await store.gates.declare(Gate("site", concurrency=1))
    gates = gates_of(store, "one", max_wait=60)
    order: list[Lane] = []
    waiting: list[asyncio.Task[None]] = []

    async def one(lane: Lane) -> None:
        async with gates.of(lane).passing("site"):
            order.append(lane)
            await asyncio.sleep(0.002)

    async with gates.passing("site"):
        for lane in (Lane.BACKFILL, Lane.UPLOAD, Lane.SENTINEL):
            waiting += [asyncio.create_task(one(lane)) for _ in range(13)]
        await asyncio.wait(waiting, timeout=0.5)
    await asyncio.gather(*waiting)
    assert order[0] is Lane.SENTINEL
    first = order[:13]
    assert [first.count(lane) for lane in (Lane.SENTINEL, Lane.UPLOAD, Lane.BACKFILL)] == [8, 4, 1]


async def test_cost_uses_the_budget_up_and_the_next_gives_way(store: Store) -> None:
    await store.gates.declare(Gate("provider", units=1000, period=3600))
    gates = gates_of(store, "one")
    async with gates.passing("provider", 60.0), gates.passing("provider", 40.0):
        pass
    with pytest.raises(GateWait, match="budget of 1000 units in 3600 s") as waiting:
        async with gates.passing("provider", 10.0):
            pass
    assert 30 <= waiting.value.seconds <= 41
    await gates.keep()
    (gate,) = await store.gates.all()
    assert (gate["passed"], gate["passed_units"]) == (2, 100.0)


@pytest.mark.parametrize("cost", [float("nan"), float("inf"), 1e308, -1.0, "12", None])
async def test_cost_that_is_not_a_number_of_units_leaves_the_budget_alone(
    store: Store, cost: Any
) -> None:
    await store.gates.declare(Gate("provider", units=1000, period=3600))
    gates = gates_of(store, "one")
    with pytest.raises(PipelineError, match="invalid cost"):
        async with gates.passing("provider", cost):
            pass
    async with gates.passing("provider", 100.0):
        pass
    with pytest.raises(GateWait, match="budget of 1000 units in 3600 s"):
        async with gates.passing("provider", 10.0):
            pass


@pytest.mark.parametrize("name", ["spacing", "units", "period"])
@pytest.mark.parametrize("limit", [float("nan"), float("inf"), -1.0])
def test_limits_of_a_gate_are_numbers(name: str, limit: float) -> None:
    with pytest.raises(PipelineError, match="is not a gate"):
        Gate("provider", **{name: limit})


async def test_gate_with_limits_is_declared_by_its_first_use(store: Store) -> None:
    gates = gates_of(store, "one")
    for requests in (1000, 1000, 2000):
        async with gates.of(Lane.UPLOAD).passing(Gate("mine", requests=requests, period=60)):
            (gate,) = await store.gates.all()
            assert (gate["name"], gate["requests"]) == ("mine", requests)


@pytest.mark.parametrize("error", [ItemError("RATE_LIMITED", "slow"), Failed("RATE_LIMITED")])
async def test_throttle_in_a_gate_closes_it_for_all_and_lowers_its_budget(
    store: Store, second_store: Store, error: Exception
) -> None:
    await store.gates.declare(Gate("provider", requests=1000, period=60))
    with pytest.raises(type(error)):
        async with gates_of(store, "one", max_wait=0.1).passing("provider"):
            raise error
    with pytest.raises(GateWait):
        async with gates_of(second_store, "two", max_wait=0.1).passing("provider"):
            pass
    assert (await store.gates.all())[0]["share"] < 0.9


async def test_places_in_flight_shrink_when_the_provider_throttles(store: Store) -> None:
    await store.gates.declare(Gate("provider", concurrency=8))
    gates = gates_of(store, "one")

    async def throttled() -> None:
        async with gates.passing("provider") as passage:
            await asyncio.sleep(0)
            passage.throttled()

    for _ in range(6):
        await asyncio.gather(*(throttled() for _ in range(8)))
    async with gates.passing("provider"):
        await gates.keep()
    (gate,) = await store.gates.all()
    assert gate["most"] < 8
    assert gate["throttles"] == 48


async def test_items_that_fail_otherwise_say_nothing_about_the_provider(store: Store) -> None:
    await store.gates.declare(Gate("provider", concurrency=8))
    gates = gates_of(store, "one")
    for _ in range(20):
        with pytest.raises(ItemError):
            async with gates.passing("provider"):
                raise ItemError("PARSE_ERROR", "not our page")
    async with gates.passing("provider"):
        await gates.keep()
    (gate,) = await store.gates.all()
    assert (gate["most"], gate["failures"]) == (8, 0)


async def test_starts_that_were_reserved_are_given_up_when_another_worker_closes_the_gate(
    store: Store, second_store: Store
) -> None:
    await store.gates.declare(Gate("site", spacing=0.1))
    one, two = gates_of(store, "one"), gates_of(second_store, "two")
    clock, starts, gave_way = SystemClock(), list[float](), list[float]()
    first = asyncio.Event()

    async def ask() -> None:
        try:
            async with two.passing("site"):
                starts.append(clock.monotonic())
                first.set()
        except GateWait as wait:
            gave_way.append(wait.seconds)

    asking = [asyncio.create_task(ask()) for _ in range(12)]
    await first.wait()
    await one.close("site", 30, "429, Retry-After 30 s")
    closed_at = clock.monotonic()
    await asyncio.gather(*asking)
    assert [start for start in starts if start > closed_at + 0.05] == []
    assert len(gave_way) >= 8
    assert min(gave_way) > 25


async def test_gate_that_a_person_opens_again_is_open_for_every_worker(
    store: Store, second_store: Store
) -> None:
    gates = gates_of(second_store, "two")
    await store.gates.declare(Gate("site"))
    await store.gates.order("site", 3600.0, "maintenance", "root")
    with pytest.raises(GateWait):
        async with gates.passing("site"):
            pass
    await store.gates.order("site", 0.0, "", "root")
    async with asyncio.timeout(10):
        while True:
            with suppress(GateWait):
                async with gates.passing("site"):
                    return
            await asyncio.sleep(0.05)
