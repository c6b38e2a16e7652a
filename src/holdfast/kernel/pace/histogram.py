"""Cheap measures of a running stream: a mean and percentiles that forget."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

#: Twenty preferred numbers per decade, 12 % apart.
_STEPS = (
    *("1.0", "1.12", "1.25", "1.4", "1.6", "1.8", "2.0", "2.24", "2.5", "2.8"),
    *("3.15", "3.55", "4.0", "4.5", "5.0", "5.6", "6.3", "7.1", "8.0", "9.0"),
)
_BOUNDS = [float(f"{step}e{decade}") for decade in range(-5, 4) for step in _STEPS] + [1e4]


class Ewma:
    """A moving mean over about `window` observations; the plain mean until there are that many.

    It is a mean, not a percentile: those need the histogram.
    """

    __slots__ = ("_decay", "count", "mean")

    def __init__(self, window: int) -> None:
        self._decay = 1.0 - 2.0 / (window + 1)
        self.mean = 0.0
        self.count = 0

    def observe(self, value: float, weight: int = 1) -> None:
        """Takes one value, or the mean `value` of `weight` observations at once."""
        if weight <= 0:
            return
        self.count += weight
        gain = max(weight / self.count, 1.0 - self._decay**weight)
        self.mean += (value - self.mean) * gain


class LatencyHistogram:
    """Seconds in log-spaced buckets, 10 microseconds to almost three hours, 12 % apart.

    Percentiles forget: every `window` observations the older counts are halved. One observation
    is one increment.
    """

    __slots__ = ("_fresh", "_fresh_count", "_older", "_older_count", "_window")

    def __init__(self, window: int = 1000) -> None:
        self._window = window
        self._fresh = [0] * (len(_BOUNDS) + 1)
        self._fresh_count = 0
        self._older = [0.0] * (len(_BOUNDS) + 1)
        self._older_count = 0.0

    def observe(self, seconds: float) -> None:
        self._fresh[bisect_left(_BOUNDS, seconds)] += 1
        self._fresh_count += 1
        if self._fresh_count >= self._window:
            self._turn()

    def observe_many(self, values: Iterable[float]) -> None:
        fresh = self._fresh
        count = 0
        for seconds in values:
            fresh[bisect_left(_BOUNDS, seconds)] += 1
            count += 1
        self._fresh_count += count
        if self._fresh_count >= self._window:
            self._turn()

    @property
    def p50(self) -> float:
        return self.quantile(0.50)

    @property
    def p95(self) -> float:
        return self.quantile(0.95)

    def quantile(self, fraction: float) -> float:
        """Returns the latency that `fraction` of the recent observations did not exceed, or 0."""
        wanted = fraction * (self._older_count + self._fresh_count)
        if wanted <= 0.0:
            return 0.0
        below = 0.0
        highest = 0
        for position, (older, fresh) in enumerate(zip(self._older, self._fresh, strict=True)):
            here = older + fresh
            if here <= 0.0:
                continue
            if below + here >= wanted:
                return _within(position, (wanted - below) / here)
            below += here
            highest = position
        return _within(highest, 1.0)  # halved counts may add up to slightly less than their sum

    def forget(self) -> None:
        """Starts the percentiles again."""
        self._fresh = [0] * len(self._fresh)
        self._fresh_count = 0
        self._older = [0.0] * len(self._older)
        self._older_count = 0.0

    def _turn(self) -> None:
        self._older = [old / 2 + new for old, new in zip(self._older, self._fresh, strict=True)]
        self._older_count = self._older_count / 2 + self._fresh_count
        self._fresh = [0] * len(self._fresh)
        self._fresh_count = 0


def _within(position: int, share: float) -> float:
    """Returns a value between a bucket's bounds, as if its observations were evenly distributed."""
    if position >= len(_BOUNDS):
        return _BOUNDS[-1]
    lower = _BOUNDS[position - 1] if position else 0.0
    return lower + (_BOUNDS[position] - lower) * min(1.0, share)
