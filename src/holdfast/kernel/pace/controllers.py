"""Pure: computes the next ingest batch, claim, lease and retry spacing from measurements.

No controller reads a clock, a setting or the machine: everything is passed in, so that a sequence
of observations can be replayed. The controller of concurrency is in `concurrency.py`. Dwell is
counted in observations.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.kernel.pace.histogram import Ewma, LatencyHistogram
from holdfast.settings import setting


@dataclass(frozen=True, slots=True)
class Decision:
    """A controller changed its value: recorded with the job and shown on its page."""

    what: str
    was: float
    now: float
    why: str


class Decisions:
    """Collects the changes worth showing: of 10 % after a dwell, or of a factor of two at once."""

    __slots__ = ("_changes", "_dwell", "_shown", "_since", "_value", "_what", "_why")

    def __init__(self, what: str, value: float, dwell: int = 4) -> None:
        self._what = what
        self._shown = value
        self._value = value
        self._why = ""
        self._dwell = dwell
        self._since = dwell
        self._changes: deque[Decision] = deque(maxlen=100)

    def note(self, value: float, why: str) -> None:
        """Takes the current value at every observation; `why` explains a change of it."""
        self._since += 1
        if value != self._value:
            self._value, self._why = value, why
        change = max(value, 1e-9) / max(self._shown, 1e-9)
        drastic = change >= 2.0 or change <= 0.5
        noticeable = change >= 1.1 or change <= 0.9
        if drastic or (noticeable and self._since >= self._dwell):
            self._changes.append(Decision(self._what, self._shown, value, self._why))
            self._shown = value
            self._since = 0

    def drain(self) -> list[Decision]:
        changes = list(self._changes)
        self._changes.clear()
        return changes


_HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class IngestBounds:
    min_rows: int = setting(
        256,
        "Rows in the first batch of an ingest, and the minimum.",
        1,
        1_000_000,
        name="INGEST_MIN_ROWS",
        aliased=True,
    )
    max_rows: int = setting(
        20_000,
        "Maximum number of rows in a batch.",
        1,
        1_000_000,
        name="INGEST_MAX_ROWS",
        aliased=True,
    )
    max_bytes: int = setting(
        8 * 1024**2,
        "Maximum number of bytes in a batch.",
        1024,
        1024**3,
        name="INGEST_MAX_BATCH_BYTES",
        aliased=True,
    )
    p50_seconds: float = setting(
        0.15,
        "Batches are halved when their median time is longer.",
        1,
        _HOUR_MS,
        name="DB_P50_MS",
        unit="ms",
        aliased=True,
    )
    p95_seconds: float = setting(
        0.6,
        "Batches are halved when the 95th percentile of their times is longer.",
        1,
        _HOUR_MS,
        name="DB_P95_MS",
        unit="ms",
        aliased=True,
    )


_CALM = 0.8  # grow only below this share of the target; hold between it and the target
_FEW, _MANY = 4, 20  # batches of one size that show a slow median, and a slow p95


class IngestPace:
    """How many rows the next ingest batch should have.

    The size doubles from the minimum until batches are slow for the first time, then grows by a
    64th of the maximum. Slow or failed batches halve it.

    If even the smallest batches miss the target (a slow disk, a distant database), smaller ones
    would only be slower: the targets are stretched to twice that fixed cost."""

    def __init__(self, bounds: IngestBounds) -> None:
        self._bounds = bounds
        self._rows = min(bounds.min_rows, bounds.max_rows)
        self._was_cut = False
        self._latency = LatencyHistogram(window=32)
        self._batches = 0  # of this size
        self._fixed_cost = math.inf
        self._row_bytes = Ewma(8)
        self._decisions = Decisions("ingest batch", self._rows)

    @property
    def rows(self) -> int:
        """The next batch's rows; bytes take precedence over INGEST_MIN_ROWS, because memory is
        finite."""
        return max(1, min(self._rows, self._rows_by_bytes()))

    def observe(self, rows: int, size_bytes: int, seconds: float) -> None:
        """Takes one written batch: its rows and bytes, and how long its transaction took."""
        if rows <= 0:
            return
        self._row_bytes.observe(size_bytes / rows)
        self._latency.observe(seconds)
        self._batches += 1
        if rows <= 2 * self._bounds.min_rows:
            self._fixed_cost = min(seconds, self._fixed_cost + 0.1 * seconds)
        stretch = max(1.0, 2.0 * self._fixed_cost / self._bounds.p50_seconds)
        slow = self._slow(stretch)
        if slow:
            self._halve(slow)
        elif rows * 2 >= self.rows and seconds <= _CALM * stretch * self._bounds.p50_seconds:
            step = self._bounds.max_rows // 64 + 1 if self._was_cut else self._rows
            self._resize(self._rows + step, "batches are quick")

    def failed(self) -> None:
        """Takes one batch that the database refused or did not confirm."""
        self._halve("a batch failed")

    def decisions(self) -> list[Decision]:
        return self._decisions.drain()

    def _slow(self, stretch: float) -> str | None:
        for name, quantile, target, fewest in (
            ("p50", self._latency.p50, stretch * self._bounds.p50_seconds, _FEW),
            ("p95", self._latency.p95, stretch * self._bounds.p95_seconds, _MANY),
        ):
            if quantile > target and self._batches >= fewest:
                return f"{name} of {duration(quantile)} is over the target of {duration(target)}"
        return None

    def _halve(self, why: str) -> None:
        self._was_cut = True
        self._resize(self._rows // 2, why)

    def _resize(self, rows: int, why: str) -> None:
        bounds, by_bytes = self._bounds, self._rows_by_bytes()
        least = min(bounds.min_rows, bounds.max_rows)
        resized = max(least, min(rows, bounds.max_rows, by_bytes))
        if resized != self._rows:
            self._rows, self._batches = resized, 0
            self._latency.forget()  # those latencies belong to another size
        if by_bytes <= self.rows:
            mean, most = self._row_bytes.mean, bounds.max_bytes
            why = f"at {mean:,.0f} bytes a row a batch may not pass {most:,} bytes"
        self._decisions.note(self.rows, why)

    def _rows_by_bytes(self) -> int:
        if self._row_bytes.mean <= 0.0:
            return self._bounds.max_rows
        return int(self._bounds.max_bytes / self._row_bytes.mean)


@dataclass(frozen=True, slots=True)
class ClaimBounds:
    target_slice_seconds: float = setting(
        5.0,
        "How long the items of one claim should take, and how long a source is read at a time while"
        " others wait.",
        10,
        _HOUR_MS,
        name="WORKER_TARGET_SLICE_MS",
        unit="ms",
        aliased=True,
    )
    min_items: int = setting(
        1, "Minimum number of items in a claim.", 1, 1_000_000, name="CLAIM_MIN", aliased=True
    )
    max_items: int = setting(
        2000, "Maximum number of items in a claim.", 1, 1_000_000, name="CLAIM_MAX", aliased=True
    )
    safety: float = setting(
        0.7,
        "Share of that time that the items of a claim should fill.",
        0.01,
        1,
        name="SAFETY_FACTOR",
        aliased=True,
    )
    lock_floor_seconds: float = setting(
        20.0,
        "A worker without a sign of life counts as lost after twice its p95 item time, but not"
        " before this time.",
        100,
        24 * _HOUR_MS,
        name="LOCK_FLOOR_MS",
        unit="ms",
        aliased=True,
    )
    lock_cap_seconds: float = setting(
        120.0,
        "A worker that is silent for this long counts as lost, however long its items take.",
        100,
        24 * _HOUR_MS,
        name="LOCK_CAP_MS",
        unit="ms",
        aliased=True,
    )
    warmup_items: int = 64  # until this many items are measured
    pressure_threshold: float = 0.8  # share of memory in use above which claims shrink


_LEAST_ITEM_SECONDS = 1e-5  # no item costs the engine less; also keeps the division defined
_TRUST = 4  # a claim is at most this many times what was measured: one fast item proves little
_LEAST_SHRINK = 0.1
_LOST_ITEMS = 2.0


class ClaimPace:
    """How many items to claim, and for how long the worker may be silent while it runs them.

    claim = target time ÷ mean item time × concurrency × safety, within its bounds, then less under
    pressure and while errors spike. Times of failed tries count too: they hold a place."""

    def __init__(self, bounds: ClaimBounds) -> None:
        self._bounds = bounds
        self._mean = Ewma(500)
        self._latency = LatencyHistogram(window=2000)
        self._size = self._clamp(bounds.warmup_items)
        self._decisions = Decisions("claim size", self._size)

    def observe(self, seconds: Sequence[float]) -> None:
        """Takes the run time of each finished try, once per flush."""
        if seconds:
            self._latency.observe_many(seconds)
            self._mean.observe(sum(seconds) / len(seconds), len(seconds))

    def size(self, concurrency: int, pressure: float = 0.0, spacing: float = 1.0) -> int:
        """Returns the items for the next claim.

        `pressure` is the share of the machine's memory that is in use, `spacing` comes from
        `RetrySpacing.multiplier`. Changes under 10 % are not made, except to reach a bound."""
        shrink = self._pressure_shrink(pressure) / max(1.0, spacing)
        size = self._clamp(self._clamp(self._ideal(concurrency)) * shrink)
        at_bound = size in (self._bounds.min_items, self._bounds.max_items)
        if at_bound or abs(size - self._size) >= 0.1 * self._size:
            self._size = size
        self._decisions.note(self._size, self._reason(concurrency, pressure, spacing))
        return self._size

    def lost_after_seconds(self) -> float:
        """Returns after how long without a sign of life the worker counts as lost: an item may hold
        it up for twice the p95."""
        bounds = self._bounds
        wanted = _LOST_ITEMS * self._latency.p95 if self._mean.count else 0.0
        return min(bounds.lock_cap_seconds, max(bounds.lock_floor_seconds, wanted))

    def decisions(self) -> list[Decision]:
        return self._decisions.drain()

    def _ideal(self, concurrency: int) -> float:
        bounds = self._bounds
        if not self._mean.count:
            return bounds.warmup_items
        item_seconds = max(self._mean.mean, _LEAST_ITEM_SECONDS)
        ideal = bounds.target_slice_seconds / item_seconds * max(1, concurrency) * bounds.safety
        return min(ideal, _TRUST * max(bounds.warmup_items, self._mean.count))

    def _pressure_shrink(self, pressure: float) -> float:
        threshold = self._bounds.pressure_threshold
        if pressure <= threshold:
            return 1.0
        return max(_LEAST_SHRINK, (1.0 - pressure) / (1.0 - threshold))

    def _clamp(self, size: float) -> int:
        return max(self._bounds.min_items, min(self._bounds.max_items, int(size)))

    def _reason(self, concurrency: int, pressure: float, spacing: float) -> str:
        why = f"an item takes {duration(self._mean.mean)} on average, {concurrency} at a time"
        if pressure > self._bounds.pressure_threshold:
            return f"{why}; reduced, because {pressure:.0%} of the memory is in use"
        if spacing > 1.0:
            return f"{why}; reduced, because errors spike"
        return why


@dataclass(frozen=True, slots=True)
class SpacingBounds:
    """How much delays grow, up to `max_multiplier` times, when more than `spike_share` of the tries
    fail."""

    spike_share: float = 0.2
    max_multiplier: float = 8.0
    window: int = 200


class RetrySpacing:
    """Stretches retry delays and shrinks claims while more tries fail than usual.

    The multiplier follows the share of failures among recent tries: 1 up to the spike share, the
    maximum when all fail. It recovers by itself as tries succeed again.
    """

    def __init__(self, bounds: SpacingBounds) -> None:
        self._bounds = bounds
        self._share = Ewma(bounds.window)
        self._decisions = Decisions("retry spacing", 1.0)

    @property
    def multiplier(self) -> float:
        bounds = self._bounds
        # A few tries do not prove a spike: missing ones count as successes.
        evidence = min(1.0, self._share.count / (bounds.window / 10))
        share = self._share.mean * evidence
        excess = max(0.0, share - bounds.spike_share) / (1.0 - bounds.spike_share)
        return 1.0 + (bounds.max_multiplier - 1.0) * min(1.0, excess)

    def observe(self, tries: int, failures: int) -> None:
        """Takes one flush; `failures` are the tries that failed and will be retried."""
        if tries <= 0:
            return
        self._share.observe(min(1.0, failures / tries), tries)
        self._decisions.note(self.multiplier, f"{self._share.mean:.0%} of recent tries failed")

    def decisions(self) -> list[Decision]:
        return self._decisions.drain()


def duration(seconds: float) -> str:
    """Formats seconds as a person reads them: 480 ms, 1.2 s."""
    if seconds >= 1.0:
        return f"{seconds:,.1f} s"
    return f"{seconds * 1000:.3g} ms"
