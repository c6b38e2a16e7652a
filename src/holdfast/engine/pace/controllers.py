"""Pure: measurements → the next ingest batch, claim, lease and retry spacing.

No controller reads a clock, a setting or the machine: everything is passed in, so that a sequence
of observations can be replayed. The controller of concurrency is in `concurrency.py`. Dwell is
counted in observations.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.engine.pace.histogram import Ewma, LatencyHistogram
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
        "Batches stop doubling when the median takes longer.",
        1,
        _HOUR_MS,
        name="DB_P50_MS",
        unit="ms",
        aliased=True,
    )
    p95_seconds: float = setting(
        0.6,
        "Batches shrink when the 95th percentile takes longer.",
        1,
        _HOUR_MS,
        name="DB_P95_MS",
        unit="ms",
        aliased=True,
    )
    pool_wait_seconds: float = 0.05  # batches stop doubling when a connection is waited for longer


_CONFIRMING = 2  # one slow batch is a cold connection or a checkpoint; two are a trend
_DWELL = 4
_CALM = 0.8  # grow only below this share of a target: between it and the target, hold


class IngestPace:
    """How many rows the next ingest batch should have.

    Doubles from the minimum until p50, p95, pool wait or bytes trip a soft limit; then loses a
    quarter and grows by a fixed step. Reaching twice the size that tripped shows that the trip
    was temporary, and doubling is allowed again. A failed batch divides the size by four.

    Where even the smallest batches miss the target (a slow disk, a distant database), smaller
    ones would only be slower: the targets are stretched to twice that fixed cost.
    """

    def __init__(self, bounds: IngestBounds) -> None:
        self._bounds = bounds
        self._rows = min(bounds.min_rows, bounds.max_rows)
        self._tripped_at: int | None = None
        self._latency = LatencyHistogram(window=32)
        self._samples = 0
        self._pool_wait = Ewma(_DWELL)
        self._row_bytes = Ewma(8)
        self._fixed_cost = 0.0
        self._decisions = Decisions("ingest batch", self._rows)

    @property
    def rows(self) -> int:
        """The next batch's rows; bytes win over INGEST_MIN_ROWS, because memory is finite."""
        return max(1, min(self._rows, self._rows_by_bytes()))

    def observe(self, rows: int, size_bytes: int, seconds: float, pool_wait_seconds: float) -> None:
        """Takes one written batch: its rows and bytes, how long its transaction took, and how
        long it waited for a connection first."""
        if rows <= 0:
            return
        self._measure(rows, size_bytes, seconds, pool_wait_seconds)
        trip = self._trip()
        if trip:
            self._tripped_at = self._rows
            self._resize(self._rows * 3 // 4)
        elif rows * 2 >= self.rows and self._may_grow(seconds):
            self._grow()
        self._note(trip or "latency and pool wait are well within their targets")

    def failed(self) -> None:
        """Takes one batch that the database refused or did not confirm."""
        self._tripped_at = self._rows
        self._resize(self._rows // 4)
        self._note("a batch failed")

    def decisions(self) -> list[Decision]:
        return self._decisions.drain()

    def _measure(self, rows: int, size_bytes: int, seconds: float, pool_wait: float) -> None:
        self._samples += 1
        self._latency.observe(seconds)
        self._pool_wait.observe(pool_wait)
        self._row_bytes.observe(size_bytes / rows)
        if rows <= 2 * self._bounds.min_rows:
            gain = 1.0 if seconds < self._fixed_cost or self._fixed_cost == 0.0 else 0.1
            self._fixed_cost += gain * (seconds - self._fixed_cost)

    def _trip(self) -> str | None:
        if self._samples < _CONFIRMING:
            return None
        stretch = self._stretch()
        p50, p95 = self._latency.p50, self._latency.p95
        p50_target = self._bounds.p50_seconds * stretch
        p95_target = self._bounds.p95_seconds * stretch
        if p50 > p50_target:
            return f"p50 of {duration(p50)} is over the target of {duration(p50_target)}"
        if p95 > p95_target and self._samples >= _DWELL:
            return f"p95 of {duration(p95)} is over the target of {duration(p95_target)}"
        wait, allowed = self._pool_wait.mean, self._bounds.pool_wait_seconds
        if wait > allowed:
            return f"waits of {duration(wait)} for a connection are over {duration(allowed)}"
        return None

    def _may_grow(self, seconds: float) -> bool:
        stretch = self._stretch() * _CALM
        quiet_pool = self._pool_wait.mean <= self._bounds.pool_wait_seconds / 2
        if self._tripped_at is None:
            return quiet_pool and seconds <= self._bounds.p50_seconds * stretch
        return (
            quiet_pool
            and self._samples >= _DWELL
            and self._latency.p50 <= self._bounds.p50_seconds * stretch
            and self._latency.p95 <= self._bounds.p95_seconds * stretch
        )

    def _grow(self) -> None:
        if self._tripped_at is None:
            return self._resize(self._rows * 2)
        grown = self._rows + max(self._bounds.min_rows, self._tripped_at // 8)
        if grown >= 2 * self._tripped_at:
            self._tripped_at = None
        return self._resize(grown)

    def _resize(self, rows: int) -> None:
        ceiling = min(self._bounds.max_rows, self._rows_by_bytes())
        resized = max(min(self._bounds.min_rows, self._bounds.max_rows), min(rows, ceiling))
        if resized != self._rows:
            self._rows = resized
            self._samples = 0
            self._latency.forget()  # those latencies belong to another size
            self._pool_wait.clear()

    def _rows_by_bytes(self) -> int:
        if self._row_bytes.mean <= 0.0:
            return self._bounds.max_rows
        return int(self._bounds.max_bytes / self._row_bytes.mean)

    def _stretch(self) -> float:
        return max(1.0, 2.0 * self._fixed_cost / self._bounds.p50_seconds)

    def _note(self, why: str) -> None:
        if self._rows_by_bytes() <= self.rows:
            row_bytes, most = self._row_bytes.mean, self._bounds.max_bytes
            why = f"at {row_bytes:,.0f} bytes a row a batch may not pass {most:,} bytes"
        self._decisions.note(self.rows, why)


@dataclass(frozen=True, slots=True)
class ClaimBounds:
    target_slice_seconds: float = setting(
        5.0,
        "Target duration of a slice of work.",
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
        "Share of the target slice that a claim should fill.",
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
    warmup_items: int = 64  # before anything is measured
    pressure_threshold: float = 0.8


_LEAST_ITEM_SECONDS = 1e-5  # no item costs the engine less; also keeps the division defined
_TRUST = 4  # a claim is at most this many times what was measured: one fast item proves little
_LEAST_SHRINK = 0.1
_LOST_ITEMS = 2.0


class ClaimPace:
    """How many items to claim, and for how long the worker may be silent meanwhile.

    claim = target slice ÷ mean item time × concurrency × safety, within its bounds, then less
    under pressure and while errors spike. Times of failed tries count too: they hold a place.
    """

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
        """Items for the next claim. `pressure` comes from `pressure()`, `spacing` from
        `RetrySpacing.multiplier`. Changes under 10 % are not made, except to reach a bound."""
        shrink = self._pressure_shrink(pressure) / max(1.0, spacing)
        size = self._clamp(self._clamp(self._ideal(concurrency)) * shrink)
        at_bound = size in (self._bounds.min_items, self._bounds.max_items)
        if at_bound or abs(size - self._size) >= 0.1 * self._size:
            self._size = size
        self._decisions.note(self._size, self._reason(concurrency, pressure, spacing))
        return self._size

    def lost_after_seconds(self) -> float:
        """After how long without a sign of life the worker counts as lost: an item may hold it up
        for twice the p95."""
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
            return f"{why}; reduced, because pressure on processor or memory is {pressure:.0%}"
        if spacing > 1.0:
            return f"{why}; reduced, because errors spike"
        return why


def pressure(cpu_fraction: float, memory_fraction: float) -> float:
    """The load of the machine, 0..1.

    A busy processor is work getting done and counts up to 0.85: at the default threshold of 0.8
    it takes a quarter off the claims. Full memory gets the process killed and counts in full.
    """
    return min(1.0, max(0.0, 0.85 * cpu_fraction, memory_fraction))


@dataclass(frozen=True, slots=True)
class SpacingBounds:
    """Above `spike_share` of failing tries, delays grow up to `max_multiplier` times."""

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
    """Seconds as a person reads them: 480 ms, 1.2 s."""
    if seconds >= 1.0:
        return f"{seconds:,.1f} s"
    return f"{seconds * 1000:.3g} ms"
