"""The shared side of gates: spacing, closing and places in flight, across workers."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from itertools import pairwise

import pytest

from holdfast.features.console import open_console
from holdfast.kernel import DecisionRow, Store, open_store
from holdfast.kernel.database.instants import seconds_between
from holdfast.kernel.gates.table import Passes, Reservation, Want
from holdfast.pipeline import Gate
from tests.store.checks import execute, fetch, make_job


@pytest.fixture
async def other_worker(database_url: str) -> AsyncIterator[Store]:
    opened = await open_store(
        database_url, rng=random.Random(7), default_gate=Gate("", spacing=2, concurrency=3)
    )
    yield opened
    await opened.close()


async def _reserve(store: Store, worker: str, want: int = 5, horizon: float = 60) -> Reservation:
    return await store.gates.reserve("api", worker, Want(want, want, horizon, 0.1))


async def _now(store: Store) -> object:
    return (await fetch(store, "select @now"))[0][0]


async def test_starts_of_two_workers_keep_the_spacing(store: Store, other_worker: Store) -> None:
    await store.gates.declare(Gate("api", spacing=1.5, jitter=0.5))
    began = await _now(store)
    starts: list[float] = []
    for turn in range(6):
        opened, worker = (store, "one") if turn % 2 else (other_worker, "two")
        # Read before the reservation, so that the sum is at most the true start.
        passed = seconds_between(began, await _now(store))
        reservation = await _reserve(opened, worker, want=2)
        assert reservation.starts is not None and reservation.slots is None
        starts += [passed + start for start in reservation.starts]
    assert len(starts) == 12
    gaps = [later - earlier for earlier, later in pairwise(starts)]
    # A reservation is made a moment after its `passed` was read: less than the slack.
    assert min(gaps) >= 1.5
    assert max(gaps[1::2]) < 1.5 + 0.5 + 0.1 + 1.0


async def test_starts_beyond_the_horizon_are_left_to_others(store: Store) -> None:
    await store.gates.declare(Gate("api", spacing=1.0))
    first = await _reserve(store, "one", want=100, horizon=2.5)
    assert first.starts is not None and len(first.starts) == 3
    second = await _reserve(store, "two", want=1, horizon=2.5)
    assert second.starts is None
    assert 2.5 < second.wait <= 3.4 and "spacing" in second.reason


async def test_gate_passes_requests_after_the_clock_was_set_back(store: Store) -> None:
    await store.gates.declare(Gate("api", spacing=1.0))
    await _reserve(store, "one", want=2)
    await execute(store, "update gates set next_at = @after(86400.0)")
    reservation = await _reserve(store, "one", want=2)
    assert reservation.starts is not None
    assert [round(start) for start in reservation.starts] == [1, 2]


async def test_start_times_that_a_slow_gate_reserved_are_kept(store: Store) -> None:
    await store.gates.declare(Gate("api", spacing=1000.0))
    assert (await _reserve(store, "one", want=1, horizon=2.5)).starts == [0.0]
    assert (await _reserve(store, "two", want=1, horizon=2.5)).wait > 999


async def test_closed_gate_blocks_everything_and_says_why(store: Store) -> None:
    await store.gates.declare(Gate("api", spacing=1.0))
    await store.gates.close("api", 100, "429 with Retry-After")
    for worker in ("one", "two"):
        refused = await _reserve(store, worker)
        assert refused.starts is None and refused.slots is None
        assert 90 < refused.wait <= 100 and refused.reason == "429 with Retry-After"
    assert [(gate["name"], gate["closed"]) for gate in await store.gates.all()] == [("api", 1)]


async def test_later_closing_wins_over_a_shorter_one(store: Store) -> None:
    await store.gates.close("api", 100, "long")
    await store.gates.close("api", 5, "short")
    assert (await _reserve(store, "one")).wait > 90


async def test_gate_opens_when_its_time_is_over(store: Store) -> None:
    await store.gates.close("api", 100, "busy")
    await execute(store, "update gates set closed_until = @after(-0.1)")
    assert (await _reserve(store, "one")).wait == 0


async def test_kill_switch_closes_the_gate(store: Store) -> None:
    await store.gates.declare(Gate("api"))
    await store.jobs.switch("source:api", True, "tester")
    refused = await _reserve(store, "one", horizon=5)
    assert (refused.wait, refused.reason) == (5, "kill switch source:api")
    await store.jobs.switch("source:api", False, "tester")
    assert (await _reserve(store, "one")).wait == 0


async def test_gate_without_limits_allows_everything(store: Store) -> None:
    await store.gates.declare(Gate("api"))
    assert await _reserve(store, "one") == Reservation()


async def test_places_of_all_workers_together_stay_within_the_concurrency(store: Store) -> None:
    await store.gates.declare(Gate("api", concurrency=4))
    held: dict[str, int] = {}
    for turn in range(12):
        worker = ("one", "two", "three")[turn % 3]
        held[worker] = (await _reserve(store, worker, want=4)).slots or 0
        assert sum(held.values()) <= 4
    assert min(held.values()) >= 1


async def test_worker_that_finds_no_place_gets_a_share_soon(store: Store) -> None:
    await store.gates.declare(Gate("api", concurrency=4))
    assert (await _reserve(store, "one", want=8)).slots == 4
    full = await _reserve(store, "two", want=8)
    assert full.slots is None and full.wait > 0 and "taken" in full.reason
    assert (await _reserve(store, "one", want=8)).slots == 2
    assert (await _reserve(store, "two", want=8)).slots == 2


async def test_places_of_a_worker_that_stopped_or_vanished_are_free(store: Store) -> None:
    await store.gates.declare(Gate("api", concurrency=4))
    await _reserve(store, "one", want=4)
    await store.workers.stop_worker("one")
    assert (await _reserve(store, "two", want=4)).slots == 4
    await store.gates.leave_gate("api", "two")
    assert (await _reserve(store, "three", want=4)).slots == 4
    await store.workers.stop_worker("three")
    assert await fetch(store, "select 1 from gate_holds where worker = 'three'") == []


async def test_undeclared_gate_gets_the_default_limits(store: Store, other_worker: Store) -> None:
    reservation = await _reserve(other_worker, "one", want=5, horizon=3)
    assert reservation.slots == 3
    assert reservation.starts is not None and len(reservation.starts) == 2


async def test_declaring_a_gate_again_changes_its_limits(store: Store) -> None:
    await store.gates.declare(Gate("api", concurrency=1))
    await store.gates.declare(Gate("api", concurrency=2))
    assert (await _reserve(store, "one", want=5)).slots == 2


async def test_host_may_only_slow_a_gate_down(store: Store) -> None:
    await store.gates.declare(Gate("api", spacing=1.0))
    await store.gates.slow_down("api", 3.0)
    await store.gates.slow_down("api", 2.0)
    assert [gate["spacing"] for gate in await store.gates.all()] == [3.0]


async def _costing(store: Store, worker: str, *costs: float) -> Reservation:
    return await store.gates.reserve("api", worker, Want(5, 5, 60, 0.1, costs=costs))


async def test_budget_is_shared_by_two_workers(store: Store, other_worker: Store) -> None:
    await store.gates.declare(Gate("api", requests=40, units=1000, period=600))
    first = await _costing(store, "one", 30.0, 30.0, 30.0)
    assert first.covered == 3
    second = await _costing(other_worker, "two", 5.0, 30.0)
    assert second.covered == 1, "a tenth of the budget at once"
    refused = await _costing(store, "one", 30.0)
    assert refused.covered is None and 0 < refused.wait <= 60
    assert refused.reason == "budget of 40 requests and 1000 units in 600 s"


async def test_gate_without_a_budget_asks_nothing_of_one(store: Store) -> None:
    await store.gates.declare(Gate("api"))
    assert (await _costing(store, "one", 1e9)).covered is None


async def test_throttles_lower_the_budget_and_the_list_shows_it(store: Store) -> None:
    await store.gates.declare(Gate("api", requests=100, period=60))
    await store.gates.close("api", 5, "HTTP 429")
    await store.gates.close("api", 5, "HTTP 429")
    (gate,) = await store.gates.all()
    assert (gate["requests"], gate["throttled_at"] is None) == (100, False)
    assert 0.8 <= gate["share"] < 0.81
    assert 80 <= gate["requests_now"] < 81
    await store.gates.declare(Gate("api", requests=100, period=60))
    assert (await store.gates.all())[0]["share"] < 0.81, "a worker that starts forgets nothing"


async def test_passes_of_all_workers_are_added_up(store: Store, other_worker: Store) -> None:
    await store.gates.declare(Gate("api"))
    await store.gates.count_passes({("api", 0): Passes(3, 30.0, 2, 1.5, 1, 0)})
    job_id = await make_job(store)
    decisions = {job_id: [DecisionRow("concurrency at api", 4, 2, "throttled")]}
    use = {("api", job_id): Passes(4, 10.0, 0, 0.0, 0, 2)}
    await other_worker.gates.count_passes(use, "two", decisions)
    await execute(store, "insert into gate_minutes select 'api', 1, 9, 9, 9, 9, 9, 9")
    (gate,) = await store.gates.all()
    names = ("passed", "passed_units", "waits", "wait_seconds", "throttles", "failures")
    assert [gate[name] for name in names] == [7, 40.0, 2, 1.5, 1, 2]
    (used,) = await store.gates.of_job(job_id, 10)
    assert (used["gate"], used["passed"], used["failures"]) == ("api", 4, 2)
    (decision,) = await open_console(store).jobs.decisions(job_id, 10)
    assert (decision["what"], decision["became"]) == ("concurrency at api", 2)
    await store.gates.count_passes({("b", 999): Passes(1)}, "two", {999: decisions[job_id]})
    assert await store.gates.of_job(999, 10) == []  # deleted meanwhile
    await store.gates.forget_passes()
    assert len(await fetch(store, "select minute from gate_minutes")) <= 2
    assert (await store.gates.all())[0]["passed"] == 7


async def test_places_are_shared_by_the_weight_of_the_work(store: Store) -> None:
    await store.gates.declare(Gate("api", concurrency=9))
    urgent, patient = Want(9, 9, 60, 0.1, weight=8), Want(9, 9, 60, 0.1, weight=1)
    assert (await store.gates.reserve("api", "patient", patient)).slots == 9
    assert (await store.gates.reserve("api", "urgent", urgent)).wait > 0
    assert (await store.gates.reserve("api", "patient", patient)).slots == 1
    assert (await store.gates.reserve("api", "urgent", urgent)).slots == 8


async def _times_given_way(store: Store, holder: int, waiter: int) -> int:
    """In how many of 90 reservations the only place of a gate goes to the one that waits."""
    await store.gates.declare(Gate("one", concurrency=1))
    times = 0
    for number in range(90):
        holds, waits = f"holder {number}", f"waiter {number}"
        want = [Want(1, 1, 60, 0.1, weight=weight) for weight in (holder, waiter)]
        assert (await store.gates.reserve("one", holds, want[0])).slots == 1
        assert (await store.gates.reserve("one", waits, want[1])).wait > 0
        times += (await store.gates.reserve("one", holds, want[0])).wait > 0
        for worker in (holds, waits):
            await store.gates.leave_gate("one", worker)
    return times


async def test_only_place_goes_to_the_urgent_lane_first_and_starves_no_other(store: Store) -> None:
    assert await _times_given_way(store, holder=1, waiter=8) > 60
    assert 0 < await _times_given_way(store, holder=8, waiter=1) < 30
    assert await _times_given_way(store, holder=1, waiter=1) == 0
