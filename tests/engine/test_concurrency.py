"""The limit of items in flight, against simulated providers."""

from __future__ import annotations

import copy
import heapq
import random
from collections.abc import Callable
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kernel.pace.concurrency import ConcurrencyPace
from tests.engine.bounds import concurrency_bounds

#: (requests in flight, time) -> seconds that one takes
Provider = Callable[[int, float], float]


def drive(
    pace: ConcurrencyPace,
    provider: Provider,
    seconds: float,
    flush: float = 0.05,
    throttle_over: int = 10**9,
) -> list[int]:
    """Keeps as many requests in flight as the limit allows; the limit after every flush."""
    now, next_flush, peak = 0.0, flush, 0
    running: list[tuple[float, float, bool]] = []
    times: list[float] = []
    throttles = 0
    limits = []
    while now < seconds:
        while len(running) < pace.limit:
            accepted = len(running) < throttle_over
            takes = provider(len(running) + 1, now) if accepted else 0.01
            heapq.heappush(running, (now + takes, now, accepted))
        peak = max(peak, len(running))
        if running[0][0] <= next_flush:
            now, started, accepted = heapq.heappop(running)
            if accepted:
                times.append(now - started)
            else:
                throttles += 1
            continue
        now = next_flush
        pace.observe(len(times), mean(times) if times else 0.0, throttles, 0, 0, peak)
        limits.append(pace.limit)
        times, throttles, peak = [], 0, 0
        next_flush += flush
    return limits


def knee(capacity: int, seconds: float) -> Provider:
    """Serves this many at once; beyond that requests queue, and latency grows with the queue."""
    return lambda in_flight, now: seconds * max(1.0, in_flight / capacity)


def settled(limits: list[int]) -> list[int]:
    """The limits of the second half, without the short probes of the uncontended latency."""
    later = limits[len(limits) // 2 :]
    typical = sorted(later)[len(later) // 2]
    return [limit for limit in later if limit > typical / 2]


def test_items_that_only_wait_reach_the_most_within_a_second() -> None:
    limits = drive(ConcurrencyPace(concurrency_bounds()), lambda *_: 0.010, 1.0, flush=0.1)
    assert limits[-1] == 256
    assert limits.index(256) <= 5


def test_items_that_only_wait_reach_the_most_with_random_latency() -> None:
    rng = random.Random(1)
    pace = ConcurrencyPace(concurrency_bounds())
    limits = drive(pace, lambda *_: 0.1 * rng.uniform(0.5, 1.5), 20.0)
    assert min(limits[100:]) == 256


@pytest.mark.parametrize("capacity", [20, 60, 120])
def test_settles_a_little_over_the_knee_without_swinging(capacity: int) -> None:
    pace = ConcurrencyPace(concurrency_bounds(maximum=1000))
    limits = settled(drive(pace, knee(capacity, 0.05), 60.0))
    assert capacity <= min(limits) and max(limits) <= 2 * capacity
    assert max(limits) <= 1.1 * min(limits)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_stays_near_the_knee_when_latency_is_very_noisy(seed: int) -> None:
    rng = random.Random(seed)
    server = knee(40, 0.05)
    pace = ConcurrencyPace(concurrency_bounds(maximum=1000))
    limits = settled(drive(pace, lambda *at: server(*at) * rng.expovariate(1.0), 120.0))
    assert 30 <= mean(limits) <= 110


def test_stops_growing_when_the_event_loop_is_full() -> None:
    pace = ConcurrencyPace(concurrency_bounds(maximum=2000))
    limits = settled(drive(pace, lambda running, _: max(0.01, running * 1e-4), 30.0))
    assert min(limits) >= 100 and max(limits) <= 200


def test_starting_over_the_knee_comes_down_to_it() -> None:
    pace = ConcurrencyPace(concurrency_bounds(start=16))
    limits = settled(drive(pace, knee(5, 0.05), 200.0))
    assert 5 <= limits[-1] <= 12


def test_slow_first_connections_do_not_raise_the_yardstick() -> None:
    pace = ConcurrencyPace(concurrency_bounds(maximum=1000))
    server = knee(40, 0.05)
    limits = drive(pace, lambda n, now: 0.5 if now < 0.3 else server(n, now), 60.0)
    assert 40 <= limits[-1] <= 80


def test_a_provider_that_became_slower_for_all_gets_its_limit_back() -> None:
    pace = ConcurrencyPace(concurrency_bounds())
    limits = drive(pace, lambda _, now: 0.05 if now < 5 else 0.1, 60.0)
    assert min(limits[100:]) < 256
    assert limits[-1] == 256


def test_throttling_holds_the_limit_near_what_is_allowed() -> None:
    pace = ConcurrencyPace(concurrency_bounds())
    limits = settled(drive(pace, lambda *_: 0.05, 60.0, throttle_over=50))
    assert min(limits) >= 20 and max(limits) <= 60


def test_items_that_take_no_time_stay_at_the_start() -> None:
    rng = random.Random(4)
    pace = ConcurrencyPace(concurrency_bounds(start=16))
    for _ in range(2000):
        pace.observe(1000, rng.choice([1e-6, 3e-6, 5e-5, 2e-4]), 0, 0, 0, 16)
        assert 16 <= pace.limit <= 20
    assert pace.decisions()[1:] == []


def warm(limit: int = 64) -> ConcurrencyPace:
    """A controller that has seen calm rounds and is at `limit`."""
    pace = ConcurrencyPace(concurrency_bounds(maximum=limit, start=limit))
    for _ in range(5):
        pace.observe(limit, 0.1, 0, 0, 0, limit)
    assert pace.limit == limit
    return pace


def test_a_lone_throttle_cuts_a_little_and_many_cut_by_half() -> None:
    few, many = warm(100), warm(100)
    few.observe(99, 0.1, 1, 0, 0, 100)
    many.observe(50, 0.1, 50, 0, 0, 100)
    assert (few.limit, many.limit) == (90, 50)


def test_failures_and_timeouts_cut() -> None:
    for errors in ((0, 20, 0), (0, 0, 20), (0, 10, 10)):
        pace = warm(100)
        pace.observe(80, 0.1, *errors, 100)
        assert pace.limit == 60
        assert pace.decisions()[-1].why == "20 of 100 failed or timed out"


def test_a_background_of_errors_is_not_taken_for_overload() -> None:
    pace = ConcurrencyPace(concurrency_bounds(maximum=256, start=64))
    for _ in range(20):
        pace.observe(297, 0.1, 0, 3, 0, pace.limit)
    assert pace.limit == 256


def test_one_cut_answers_for_all_that_was_in_flight() -> None:
    pace = warm(64)
    pace.observe(0, 0.0, 8, 0, 0, 64)
    after_first = pace.limit
    for _ in range(8):
        pace.observe(0, 0.0, 8, 0, 0, 64)
    assert pace.limit == after_first
    pace.observe(0, 0.0, 8, 0, 0, 64)
    assert pace.limit < after_first


def test_a_throttle_cuts_from_what_was_in_flight_not_from_an_idle_limit() -> None:
    pace = warm(200)
    pace.observe(0, 0.0, 20, 0, 0, 20)
    assert pace.limit <= 18


def test_items_that_fail_fast_do_not_look_like_a_fast_provider() -> None:
    pace = ConcurrencyPace(concurrency_bounds(start=16))
    for _ in range(500):
        pace.observe(0, 0.0, 0, 200, 0, 16)
    assert pace.limit == 1


def test_no_growth_while_the_limit_is_not_the_bottleneck() -> None:
    pace = ConcurrencyPace(concurrency_bounds(start=16))
    for _ in range(100):
        pace.observe(100, 0.1, 0, 0, 0, 7)
    assert pace.limit == 16


def test_recovers_after_an_outage() -> None:
    pace = warm(128)
    for _ in range(50):
        pace.observe(0, 0.0, 0, 50, 50, pace.limit)
    assert pace.limit == 1
    limits = drive(pace, lambda *_: 0.05, 30.0)
    assert limits[-1] == 128


observations = st.tuples(
    st.integers(0, 500),
    st.floats(0, 20),
    st.integers(0, 20),
    st.integers(0, 50),
    st.integers(0, 50),
    st.integers(0, 300),
)


@given(st.lists(observations, max_size=60))
def test_bounds_hold(sequence: list[tuple[int, float, int, int, int, int]]) -> None:
    pace = ConcurrencyPace(concurrency_bounds(minimum=2, maximum=200, start=10))
    for observation in sequence:
        pace.observe(*observation)
        assert 2 <= pace.limit <= 200


@given(st.lists(observations, max_size=60), observations)
def test_errors_never_make_the_limit_higher_than_it_would_be_without_them(
    sequence: list[tuple[int, float, int, int, int, int]],
    last: tuple[int, float, int, int, int, int],
) -> None:
    pace = ConcurrencyPace(concurrency_bounds())
    for observation in sequence:
        pace.observe(*observation)
    spared = copy.deepcopy(pace)
    pace.observe(*last)
    spared.observe(last[0], last[1], 0, 0, 0, last[5])
    assert pace.limit <= spared.limit


@given(st.lists(observations, max_size=60))
def test_throttles_or_the_lack_of_successes_never_raise_the_limit(
    sequence: list[tuple[int, float, int, int, int, int]],
) -> None:
    pace = ConcurrencyPace(concurrency_bounds())
    for observation in sequence:
        before = pace.limit
        pace.observe(*observation)
        if observation[0] == 0 or observation[2] > 0:
            assert pace.limit <= before


@given(st.lists(observations, max_size=60))
def test_a_sequence_replays_to_the_same_decisions(
    sequence: list[tuple[int, float, int, int, int, int]],
) -> None:
    first, second = (ConcurrencyPace(concurrency_bounds()) for _ in range(2))
    for observation in sequence:
        first.observe(*observation)
        second.observe(*observation)
    assert first.limit == second.limit
    assert first.decisions() == second.decisions()


def test_decisions_say_why() -> None:
    pace = ConcurrencyPace(concurrency_bounds())
    drive(pace, knee(25, 0.05), 3.0)
    decisions = pace.decisions()
    assert decisions[0].why == "latency is steady at 50 ms"
    assert any(
        d.why.endswith("is over 1.5 times the uncontended 50 ms") and d.now < d.was
        for d in decisions
    )
