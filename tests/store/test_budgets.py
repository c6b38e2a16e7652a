"""Budgets, replayed: never more than allowed in a period, most of it used, lower when throttled."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from holdfast.kernel.gates.budgets import Budget


def budget(requests: int = 0, units: float = 0.0, period: float = 60.0) -> Budget:
    return Budget(requests, units, period, 1.0, 0.0, 0.0).full()


def spent(
    start: Budget, costs: list[float], seconds: float, step: float
) -> list[tuple[float, float]]:
    """When each request passed, and its cost, for callers that always have another one."""
    now, passed, left = 0.0, [], list(costs)
    while now < seconds:
        start, count = start.take(left[:10])
        passed += [(now, cost) for cost in left[:count]]
        left = left[count:]
        start, now = start.later(step), now + step
    return passed


@pytest.mark.parametrize("requests", [1, 3, 7, 60, 600])
def test_no_period_has_more_requests_than_the_budget_and_most_of_it_is_used(requests: int) -> None:
    passed = [at for at, _ in spent(budget(requests), [0.0] * 5000, 300, 0.05)]
    for at in passed:
        assert sum(at <= other < at + 59.9 for other in passed) <= requests
    assert len(passed) >= 0.85 * requests * 5


def test_no_period_has_more_units_than_the_budget() -> None:
    rng = random.Random(3)
    costs = [rng.uniform(1, 90) for _ in range(2000)]
    passed = spent(budget(units=1000), costs, 300, 0.1)
    for at, _ in passed:
        assert sum(cost for other, cost in passed if at <= other < at + 59.9) <= 1000
    assert sum(cost for _, cost in passed) >= 0.8 * 5000


def test_request_larger_than_a_bucket_passes_and_the_next_wait_for_it() -> None:
    start, count = budget(units=1000).take([500.0, 1.0])
    assert count == 1
    assert start.wait_seconds(1.0) == pytest.approx((500 - 100 + 1) / (900 / 60))


def test_request_larger_than_the_whole_budget_uses_all_of_it_and_no_more() -> None:
    start, count = budget(units=1000).take([1e15, 1.0])
    assert count == 1
    assert start.wait_seconds(1.0) == pytest.approx((1000 - 100 + 1) / (900 / 60))


def test_throttle_lowers_the_budget_once_and_it_grows_back() -> None:
    full = budget(requests=100, units=1000)
    lowered = full.throttled(None)
    assert (lowered.requests_now, lowered.units_now) == (80, 800)
    assert lowered.take([1.0])[1] == 0
    assert lowered.throttled(3.0).share == lowered.share
    assert lowered.throttled(30.0).share == pytest.approx(0.64)
    assert lowered.later(60).share == pytest.approx(0.85)
    assert lowered.later(3600).share == 1.0
    for _ in range(50):
        lowered = lowered.throttled(None)
    assert lowered.share == pytest.approx(0.1)


def test_budget_without_limits_lets_everything_pass() -> None:
    free = replace(budget(), requests_left=0.0)
    assert not free.limited
    assert free.take([1e9] * 100)[1] == 100
