"""Ingest batches, claims, leases and retry spacing against simulated databases."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kernel.pace.controllers import (
    ClaimPace,
    Decisions,
    IngestPace,
    RetrySpacing,
    duration,
)
from tests.engine.bounds import claim_bounds, ingest_bounds, spacing_bounds

Latency = Callable[[int], float]


def ingest(
    pace: IngestPace,
    latency: Latency,
    batches: int,
    row_bytes: int = 200,
) -> list[int]:
    """Writes full batches to a database with this latency; the sizes that were asked for."""
    sizes = []
    for _ in range(batches):
        rows = pace.rows
        pace.observe(rows, rows * row_bytes, latency(rows))
        sizes.append(rows)
    return sizes


def linear(rows_per_second: float, fixed: float = 0.002) -> Latency:
    return lambda rows: fixed + rows / rows_per_second


class TestIngest:
    def test_doubles_from_the_least_to_the_most_while_nothing_trips(self) -> None:
        sizes = ingest(IngestPace(ingest_bounds(max_rows=1024)), linear(1e9), 8)
        assert sizes == [64, 128, 256, 512, 1024, 1024, 1024, 1024]

    def test_settles_where_the_median_latency_meets_its_target(self) -> None:
        sizes = ingest(IngestPace(ingest_bounds()), linear(20_000), 200)
        assert len(set(sizes[20:])) == 1  # neither grows nor shrinks
        assert 0.08 <= linear(20_000)(sizes[-1]) <= 0.1

    def test_does_not_swing_when_latency_is_noisy(self) -> None:
        rng = random.Random(3)
        noisy: Latency = lambda rows: linear(20_000)(rows) * rng.lognormvariate(0, 0.3)  # noqa: E731
        sizes = ingest(IngestPace(ingest_bounds()), noisy, 600)
        assert min(sizes[50:]) >= 800 and max(sizes[50:]) <= 2600

    def test_one_cold_batch_does_not_end_the_doubling(self) -> None:
        pace = IngestPace(ingest_bounds(max_rows=4096))
        pace.observe(64, 64 * 200, 0.5)
        assert max(ingest(pace, linear(1e9), 10)) == 4096

    def test_a_slow_commit_does_not_drive_batches_to_the_least(self) -> None:
        for fixed in (0.15, 1.0):
            sizes = ingest(IngestPace(ingest_bounds()), linear(50_000, fixed), 30)
            assert sizes[-1] >= 4096

    def test_slow_batches_halve_the_size_and_it_grows_by_steps(self) -> None:
        pace = IngestPace(ingest_bounds())
        assert ingest(pace, linear(20_000), 10)[-5:] == [2048, 2048, 2048, 2048, 1024]
        step = 10_000 // 64 + 1
        assert ingest(pace, linear(1e6), 3) == [1024 + step * n for n in (1, 2, 3)]

    def test_recovers_fully_when_the_database_was_busy_for_a_while(self) -> None:
        pace = IngestPace(ingest_bounds())
        before = ingest(pace, linear(50_000), 50)[-1]
        during = ingest(pace, linear(5_000), 50)[-1]
        after = ingest(pace, linear(50_000), 120)[-1]
        assert during < before / 4
        assert after >= before * 0.8

    def test_slow_batches_now_and_then_are_seen_by_p95(self) -> None:
        pace = IngestPace(ingest_bounds(max_rows=4096))
        slow: Latency = lambda rows: 1.0  # noqa: E731
        sizes = [
            ingest(pace, slow if batch % 10 == 9 else linear(1e9), 1)[0] for batch in range(100)
        ]
        assert 2048 in sizes[10:]
        assert any(decision.why.startswith("p95 of") for decision in pace.decisions())

    def test_a_rare_slow_batch_costs_little(self) -> None:
        pace = IngestPace(ingest_bounds(max_rows=4096))
        slow: Latency = lambda rows: 1.0  # noqa: E731
        sizes = [
            ingest(pace, slow if batch % 50 == 49 else linear(1e9), 1)[0] for batch in range(400)
        ]
        assert sum(sizes[10:]) / len(sizes[10:]) >= 3500

    def test_bytes_win_over_rows_even_below_the_least(self) -> None:
        pace = IngestPace(ingest_bounds(min_rows=64, max_bytes=8_000_000))
        ingest(pace, linear(1e9), 20, row_bytes=10_000)
        assert pace.rows == 800
        ingest(pace, linear(1e9), 200, row_bytes=1_000_000)
        assert pace.rows == 8

    def test_batches_that_are_not_full_do_not_raise_the_size(self) -> None:
        pace = IngestPace(ingest_bounds())
        for _ in range(50):
            pace.observe(100, 20_000, 0.003)
        assert pace.rows == 256

    def test_a_failure_halves_the_size(self) -> None:
        pace = IngestPace(ingest_bounds())
        ingest(pace, linear(1e9), 6)
        assert pace.rows == 4096
        pace.failed()
        assert pace.rows == 2048

    @given(
        st.lists(
            st.tuples(
                st.integers(0, 20_000), st.integers(0, 10**9), st.floats(0, 100), st.booleans()
            ),
            max_size=100,
        )
    )
    def test_bounds_hold_and_a_failure_never_raises(
        self, batches: list[tuple[int, int, float, bool]]
    ) -> None:
        bounds = ingest_bounds(min_rows=10, max_rows=5000, max_bytes=10**6)
        pace = IngestPace(bounds)
        for rows, size_bytes, seconds, fails in batches:
            before = pace.rows
            if fails:
                pace.failed()
                assert pace.rows <= before
            else:
                pace.observe(rows, size_bytes, seconds)
            assert 1 <= pace.rows <= bounds.max_rows

    def test_decisions_say_why(self) -> None:
        pace = IngestPace(ingest_bounds())
        ingest(pace, linear(20_000), 30)
        pace.failed()
        decisions = pace.decisions()
        assert [(d.was, d.now) for d in decisions[:2]] == [(64, 128), (128, 256)]
        reasons = {d.why for d in decisions}
        assert "p50 of 106 ms is over the target of 100 ms" in reasons
        assert decisions[-1].why == "a batch failed"
        assert pace.decisions() == []


class TestClaim:
    def test_warm_up_is_a_modest_constant(self) -> None:
        assert ClaimPace(claim_bounds(warmup_items=50)).size(concurrency=100) == 50

    def test_fills_the_slice(self) -> None:
        pace = ClaimPace(claim_bounds())
        pace.observe([0.5] * 400)
        assert pace.size(concurrency=20) == 140  # 5 s ÷ 0.5 s × 20 × 0.7

    def test_items_that_take_no_time_get_the_most(self) -> None:
        pace = ClaimPace(claim_bounds(max_items=5000))
        for _ in range(5):
            pace.observe([0.0] * pace.size(concurrency=1))
        assert pace.size(concurrency=1) == 5000

    def test_a_first_lucky_item_does_not_make_a_huge_claim(self) -> None:
        pace = ClaimPace(claim_bounds(warmup_items=20, max_items=5000))
        pace.observe([1e-6])
        assert pace.size(concurrency=50) == 80

    def test_pressure_over_its_threshold_shrinks_in_proportion(self) -> None:
        sizes = []
        for level in (0.0, 0.8, 0.85, 0.9, 0.95, 1.0):
            pace = ClaimPace(claim_bounds(max_items=1000))
            pace.observe([0.0] * 2000)
            sizes.append(pace.size(1, pressure=level))
        assert sizes == pytest.approx([1000, 1000, 750, 500, 250, 100], abs=1)

    def test_shrinks_while_errors_spike_and_recovers(self) -> None:
        pace, spacing = ClaimPace(claim_bounds(max_items=1000)), RetrySpacing(spacing_bounds())
        pace.observe([0.0] * 2000)
        spacing.observe(1000, 1000)
        assert pace.size(8, spacing=spacing.multiplier) == 125
        spacing.observe(1000, 0)
        assert pace.size(8, spacing=spacing.multiplier) == 1000

    def test_small_changes_are_not_made(self) -> None:
        pace = ClaimPace(claim_bounds())
        pace.observe([0.10] * 1000)
        first = pace.size(concurrency=10)
        pace.observe([0.104] * 10_000)
        assert pace.size(concurrency=10) == first

    @given(
        st.lists(st.lists(st.floats(0, 1000), max_size=20), max_size=20),
        st.integers(0, 1000),
        st.floats(0, 1),
        st.floats(1, 8),
    )
    def test_bounds_hold(
        self, flushes: list[list[float]], concurrency: int, level: float, spacing: float
    ) -> None:
        bounds = claim_bounds(min_items=3, max_items=700)
        pace = ClaimPace(bounds)
        for flush in flushes:
            pace.observe(flush)
            size = pace.size(concurrency, level, spacing)
            assert bounds.min_items <= size <= bounds.max_items

    @given(st.lists(st.floats(2e-5, 1000), min_size=1, max_size=200))
    def test_silent_worker_has_twice_the_p95_within_the_bounds(self, seconds: list[float]) -> None:
        bounds = claim_bounds()
        pace = ClaimPace(bounds)
        pace.observe(seconds)
        patience = pace.lost_after_seconds()
        p95 = sorted(seconds)[-(len(seconds) * 5 // 100) - 1]
        assert patience >= 0.97 * min(2 * p95, bounds.lock_cap_seconds)  # of a histogram
        assert bounds.lock_floor_seconds <= patience <= bounds.lock_cap_seconds

    def test_silent_worker_has_the_least_patience_before_anything_is_measured(self) -> None:
        bounds = claim_bounds(lock_floor_seconds=5.0)
        assert ClaimPace(bounds).lost_after_seconds() == 5.0

    def test_decisions_say_why(self) -> None:
        pace = ClaimPace(claim_bounds())
        pace.observe([0.5] * 400)
        pace.size(concurrency=100)
        pace.size(concurrency=100, pressure=1.0)
        assert [d.why for d in pace.decisions()] == [
            "an item takes 500 ms on average, 100 at a time",
            "an item takes 500 ms on average, 100 at a time; reduced, because "
            "100% of the memory is in use",
        ]


class TestRetrySpacing:
    def test_stays_one_below_the_share_of_a_spike(self) -> None:
        spacing = RetrySpacing(spacing_bounds())
        for _ in range(100):
            spacing.observe(100, 15)
        assert spacing.multiplier == 1.0

    def test_a_few_failures_at_the_start_are_not_a_spike(self) -> None:
        spacing = RetrySpacing(spacing_bounds())
        spacing.observe(2, 2)
        assert spacing.multiplier == 1.0

    def test_grows_to_the_most_when_everything_fails_and_comes_back(self) -> None:
        spacing = RetrySpacing(spacing_bounds(max_multiplier=6.0))
        spacing.observe(500, 500)
        assert spacing.multiplier == pytest.approx(6.0)
        for _ in range(20):
            spacing.observe(50, 0)
        assert spacing.multiplier == 1.0
        whys = [decision.why for decision in spacing.decisions()]
        assert whys[0] == "100% of recent tries failed"

    @given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 600)), max_size=50))
    def test_stays_between_one_and_the_most(self, flushes: list[tuple[int, int]]) -> None:
        spacing = RetrySpacing(spacing_bounds(max_multiplier=5.0))
        for tries, failures in flushes:
            spacing.observe(tries, failures)
            assert 1.0 <= spacing.multiplier <= 5.0


class TestDecisions:
    def test_changes_under_a_tenth_are_not_recorded(self) -> None:
        decisions = Decisions("thing", 100)
        for value in (101, 105, 109, 95, 91):
            decisions.note(value, "noise")
        assert decisions.drain() == []

    def test_moderate_changes_wait_for_the_dwell_with_the_reason_they_had(self) -> None:
        decisions = Decisions("thing", 100, dwell=3)
        decisions.note(150, "first")
        decisions.note(120, "second")
        decisions.note(120, "nothing new")
        decisions.note(120, "nothing new")
        assert [(d.was, d.now, d.why) for d in decisions.drain()] == [
            (100, 150, "first"),
            (150, 120, "second"),
        ]

    def test_drastic_changes_do_not_wait(self) -> None:
        decisions = Decisions("thing", 100, dwell=100)
        decisions.note(200, "up")
        decisions.note(50, "down")
        assert [d.now for d in decisions.drain()] == [200, 50]

    def test_unfetched_decisions_do_not_pile_up(self) -> None:
        decisions = Decisions("thing", 1)
        for turn in range(1000):
            decisions.note(1 + 9 * (turn % 2), "swings")
        assert len(decisions.drain()) == 100


def test_durations_read_well() -> None:
    assert [duration(s) for s in (0.0, 0.00042, 0.48, 1.25, 1234.5)] == [
        *("0 ms", "0.42 ms", "480 ms", "1.2 s", "1,234.5 s")
    ]
