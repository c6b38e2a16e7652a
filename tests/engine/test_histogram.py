"""The latency histogram and the moving mean."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kernel.pace.histogram import Ewma, LatencyHistogram

latencies = st.floats(min_value=2e-5, max_value=9e3)


@given(st.lists(latencies, min_size=1, max_size=300), st.sampled_from([0.5, 0.95]))
def test_quantile_is_within_a_bucket_of_the_true_one(values: list[float], fraction: float) -> None:
    histogram = LatencyHistogram()
    histogram.observe_many(values)
    true = sorted(values)[math.ceil(fraction * len(values)) - 1]
    assert true / 1.14 <= histogram.quantile(fraction) <= true * 1.14


@given(st.lists(latencies, max_size=200))
def test_one_by_one_and_many_at_once_count_the_same(values: list[float]) -> None:
    single, many = LatencyHistogram(), LatencyHistogram()
    for value in values:
        single.observe(value)
    many.observe_many(values)
    for fraction in (0.01, 0.5, 0.95, 1.0):
        assert single.quantile(fraction) == many.quantile(fraction)


def test_percentiles_forget_what_is_long_past() -> None:
    histogram = LatencyHistogram(window=100)
    histogram.observe_many([1.0] * 100)
    for _ in range(8):
        histogram.observe_many([0.01] * 100)
    assert histogram.p95 < 0.012


def test_forgetting_starts_percentiles_afresh() -> None:
    histogram = LatencyHistogram()
    histogram.observe(2.0)
    histogram.forget()
    assert histogram.p95 == 0.0
    histogram.observe(0.01)
    assert histogram.p95 < 0.012


def test_latencies_outside_the_buckets_are_kept_at_their_ends() -> None:
    histogram = LatencyHistogram()
    histogram.observe(0.0)
    assert 0.0 < histogram.p95 <= 1e-5
    histogram.observe_many([1e9] * 100)
    assert histogram.p95 == 1e4


def test_percentiles_survive_very_many_turns_of_the_window() -> None:
    histogram = LatencyHistogram(window=3)
    rng = random.Random(5)
    for _ in range(5000):
        histogram.observe(rng.uniform(0.1, 0.2))
    assert 0.1 <= histogram.p50 <= histogram.p95 <= histogram.quantile(1.0) <= 0.225


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=10))
def test_mean_warms_up_as_the_plain_mean(values: list[float]) -> None:
    mean = Ewma(window=20)
    for value in values:
        mean.observe(value)
    assert mean.mean == pytest.approx(sum(values) / len(values))


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=100), st.integers(1, 50))
def test_mean_never_leaves_the_range_of_its_values(values: list[float], weight: int) -> None:
    mean = Ewma(window=10)
    for value in values:
        mean.observe(value, weight)
    slack = 1e-9 * max(1.0, *values)
    assert min(values) - slack <= mean.mean <= max(values) + slack


def test_mean_follows_a_change() -> None:
    mean = Ewma(window=10)
    mean.observe(1.0, 1000)
    mean.observe(2.0, 50)
    assert mean.mean == pytest.approx(2.0, abs=0.01)


def test_mean_of_nothing_is_not_moved() -> None:
    mean = Ewma(window=10)
    mean.observe(5.0, 0)
    assert (mean.mean, mean.count) == (0.0, 0)
