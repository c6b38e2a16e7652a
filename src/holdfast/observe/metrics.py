"""Prometheus metrics of one process, in its own registry.

Labels are bounded: pipelines, states, categories, names of operations; never a job, a key, a
host or a code that a pipeline makes up. Extensions add metrics of their own.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import nan
from threading import Lock
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.metrics_core import HistogramMetricFamily

#: Upper bounds, inclusive, of the buckets of an item's seconds; one more bucket is above them.
ITEM_SECONDS_BOUNDS = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
)  # fmt: skip
WALK_SECONDS_BOUNDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 7.5, 10.0, 30.0, 60.0, 300.0)
DATABASE_SECONDS_BOUNDS = (
    0.0005,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.6,
    1.0,
    5.0,
)
WAIT_SECONDS_BOUNDS = (0.001, 0.01, 0.05, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 60.0, 600.0)
#: How many gates have their own series; the others are counted together.
_GATES_NAMED = 100
CLAIM_BOUNDS = (1.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 2000.0, 5000.0, 10000.0)


def item_bucket(seconds: float) -> int:
    """Returns the bucket of an item's duration, out of `len(ITEM_SECONDS_BOUNDS) + 1`."""
    return bisect_left(ITEM_SECONDS_BOUNDS, seconds)


@dataclass(frozen=True, slots=True)
class Described:
    """One metric, as it is documented."""

    name: str
    kind: str
    labels: tuple[str, ...]
    help: str


@dataclass(frozen=True, slots=True)
class QueueReading:
    """A periodic reading of the open items of one pipeline."""

    depth: int
    oldest_seconds: float


class ItemSeconds:
    """A histogram that accepts a whole batch: an item costs its worker one list increment instead
    of a lock and a search through the buckets."""

    def __init__(self, name: str, help: str) -> None:
        self._name = name
        self._help = help
        self._lock = Lock()
        self._counts: dict[str, list[int]] = {}
        self._seconds: dict[str, float] = {}

    def add(
        self, pipeline: str, counts_by_bucket: Sequence[int], seconds: float, count: int
    ) -> None:
        if len(counts_by_bucket) != len(ITEM_SECONDS_BOUNDS) + 1 or sum(counts_by_bucket) != count:
            raise ValueError(f"{counts_by_bucket} are not {count} items in the buckets")
        with self._lock:
            before = self._counts.get(pipeline, [0] * len(counts_by_bucket))
            self._counts[pipeline] = [a + b for a, b in zip(before, counts_by_bucket, strict=True)]
            self._seconds[pipeline] = self._seconds.get(pipeline, 0.0) + seconds

    def describe(self) -> Iterable[HistogramMetricFamily]:
        return [self._family()]

    def collect(self) -> Iterable[HistogramMetricFamily]:
        with self._lock:
            rows = [(name, counts, self._seconds[name]) for name, counts in self._counts.items()]
        family = self._family()
        bounds = [*map(str, ITEM_SECONDS_BOUNDS), "+Inf"]
        for pipeline, counts, seconds in rows:
            buckets = list(zip(bounds, accumulate(counts), strict=True))
            family.add_metric([pipeline], buckets, seconds)
        return [family]

    def _family(self) -> HistogramMetricFamily:
        return HistogramMetricFamily(self._name, self._help, labels=["pipeline"])


class Declaring:
    """Declares the metrics of one extension: holdfast_<extension>_<name>."""

    def __init__(self, metrics: Metrics, extension: str) -> None:
        self._metrics = metrics
        self._extension = extension

    def counter(self, name: str, help: str, *labels: str) -> Counter:
        return self._metrics.counter(f"{self._extension}_{name}", help, *labels)

    def gauge(self, name: str, help: str, *labels: str) -> Gauge:
        return self._metrics.gauge(f"{self._extension}_{name}", help, *labels)

    def histogram(self, name: str, help: str, bounds: Sequence[float], *labels: str) -> Histogram:
        return self._metrics.histogram(f"{self._extension}_{name}", help, bounds, *labels)


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.described: list[Described] = []
        self._queued: set[str] = set()
        self._set_aside: set[str] = set()
        self._work()
        self._queue()
        self._messages()
        self._health()
        self._waits()

    def _work(self) -> None:
        self.items = self.counter(
            "items", "Items that reached a final status.", "pipeline", "status"
        )
        self.item_seconds = self._item_seconds("item_seconds", "Time to process one item.")
        self.walk_seconds = self.histogram(
            "walk_seconds", "Time of one walk along a stream.", WALK_SECONDS_BOUNDS, "pipeline"
        )
        self.claim_items = self.histogram(
            "claim_items", "Items in one claim.", CLAIM_BOUNDS, "pipeline"
        )
        self.retries = self.counter(
            "retries",
            "Failed attempts that will be retried, without throttled ones.",
            "pipeline",
            "category",
        )
        self.throttles = self.counter(
            "throttles",
            "Attempts that a source throttled; they do not count as attempts.",
            "pipeline",
        )
        self.alerting_errors = self.counter(
            "alerting_errors",
            "Items that failed for a reason that a person has to look into.",
            "pipeline",
            "code",
        )
        self.dead_letters = self.gauge(
            "dead_letters", "Items set aside until a person acts.", "pipeline"
        )
        self.ingest_rows = self.counter("ingest_rows", "Records committed as items.", "pipeline")

    def _queue(self) -> None:
        self.queue_depth = self.gauge("queue_depth", "Open items of running jobs.", "pipeline")
        self.oldest_pending_age_seconds = self.gauge(
            "oldest_pending_age_seconds", "Age of the oldest pending item.", "pipeline"
        )

        self.pending_items = self.gauge(
            "pending_items", "Open items of all live jobs, as the pending list counts them."
        )

    def _messages(self) -> None:
        self.outbox_depth = self._reading("outbox_depth", "Messages waiting to be published.")
        self.outbox_oldest_seconds = self._reading(
            "outbox_oldest_seconds", "Waiting time of the oldest due message."
        )
        self.broker_queue_depth = self.gauge(
            "broker_queue_depth",
            "Messages in a queue of the broker; in `work.PIPELINE`, the pipeline's jobs with work.",
            "queue",
        )
        self.relay_published = self.counter(
            "relay_published", "Messages that the broker confirmed."
        )
        self.relay_failures = self.counter(
            "relay_failures", "Messages that could not be published and remain in the outbox."
        )
        self.messages = self.counter(
            "messages", "Messages received from the broker.", "type", "outcome"
        )

    def _health(self) -> None:
        self.sweeper_age_seconds = self._reading(
            "sweeper_age_seconds", "Time since a sweeper last acted."
        )
        self.oldest_transaction_seconds = self._reading(
            "oldest_transaction_seconds", "Age of PostgreSQL's oldest open transaction."
        )
        self.backpressure = self._reading(
            "backpressure", "1 while producers are asked to slow down, otherwise 0."
        )

    def _waits(self) -> None:
        self.page_seconds = self.histogram(
            "page_seconds", "Time to read one page of a list.", DATABASE_SECONDS_BOUNDS, "list"
        )
        self.database_seconds = self.histogram(
            "database_seconds", "Time of one transaction.", DATABASE_SECONDS_BOUNDS, "operation"
        )
        self.pool_wait_seconds = self.histogram(
            "pool_wait_seconds", "Wait for a database connection.", WAIT_SECONDS_BOUNDS
        )
        self.gate_wait_seconds = self.histogram(
            "gate_wait_seconds", "Wait at a gate.", WAIT_SECONDS_BOUNDS, "gate"
        )
        self.gate_throttles = self.counter(
            "gate_throttles", "Requests that the provider behind a gate throttled.", "gate"
        )
        self.gate_limit = self.gauge(
            "gate_limit", "Requests that this process may have in flight at a gate.", "gate"
        )
        self._gate_names: set[str] = set()

    def gate_passed(self, gate: str, waited: float) -> None:
        self.gate_wait_seconds.labels(self._gate_label(gate)).observe(waited)

    def gate_throttled(self, gate: str) -> None:
        self.gate_throttles.labels(self._gate_label(gate)).inc()

    def gate_limit_is(self, gate: str, limit: int) -> None:
        self.gate_limit.labels(self._gate_label(gate)).set(limit)

    def _gate_label(self, gate: str) -> str:
        """Returns the label of a gate.

        Each host that is contacted has one; a crawler must not create a series for each."""
        if len(self._gate_names) < _GATES_NAMED:
            self._gate_names.add(gate)
        return gate if gate in self._gate_names else "other"

    def declare(self, name: str, declare: Callable[[Declaring], Any]) -> Any:
        """Adds the metrics of the extension `name`; returns the object that it counts with."""
        return declare(Declaring(self, name))

    def observe_items(
        self, pipeline: str, counts_by_bucket: Sequence[int], sum: float, count: int
    ) -> None:
        """Adds the seconds of `count` items: how many are in each `item_bucket`, and their sum."""
        self.item_seconds.add(pipeline, counts_by_bucket, sum, count)

    def set_queue(self, readings: Mapping[str, QueueReading]) -> None:
        """Sets the queue metrics; a pipeline that is missing from the reading is reported as
        zero."""
        self._queued |= set(readings)
        for pipeline in self._queued:
            reading = readings.get(pipeline, QueueReading(0, 0.0))
            self.queue_depth.labels(pipeline).set(reading.depth)
            self.oldest_pending_age_seconds.labels(pipeline).set(reading.oldest_seconds)

    def set_dead_letters(self, counts: Mapping[str, int]) -> None:
        """Sets the dead letter metrics; a pipeline that is missing from the reading is reported as
        zero."""
        self._set_aside |= set(counts)
        for pipeline in self._set_aside:
            self.dead_letters.labels(pipeline).set(counts.get(pipeline, 0))

    def counter(self, name: str, help: str, *labels: str) -> Counter:
        self._describe(f"{name}_total", "counter", labels, help)
        return Counter(f"holdfast_{name}", help, labels, registry=self.registry)

    def gauge(self, name: str, help: str, *labels: str) -> Gauge:
        self._describe(name, "gauge", labels, help)
        return Gauge(f"holdfast_{name}", help, labels, registry=self.registry)

    def _reading(self, name: str, help: str) -> Gauge:
        """Returns a gauge that only some processes read.

        Elsewhere it is NaN, since a zero would claim that all is well."""
        gauge = self.gauge(name, help)
        gauge.set(nan)
        return gauge

    def histogram(self, name: str, help: str, bounds: Sequence[float], *labels: str) -> Histogram:
        self._describe(name, "histogram", labels, help)
        return Histogram(f"holdfast_{name}", help, labels, buckets=bounds, registry=self.registry)

    def _item_seconds(self, name: str, help: str) -> ItemSeconds:
        self._describe(name, "histogram", ("pipeline",), help)
        collector = ItemSeconds(f"holdfast_{name}", help)
        self.registry.register(collector)
        return collector

    def _describe(self, name: str, kind: str, labels: tuple[str, ...], help: str) -> None:
        self.described.append(Described(f"holdfast_{name}", kind, labels, help))


def reference(described: Iterable[Described]) -> str:
    """Returns the reference page of these metrics, in Markdown."""
    lines = [
        "# Metrics",
        "",
        "Served for Prometheus at `/metrics` by each long-running process; see",
        "[monitoring](../how-to/monitoring.md). Counters and histograms are per process: add them",
        "up. Gauges are read from the database or the broker: use `max`, because every process",
        "that reads them reports the same value and the others report `NaN`; only",
        "`holdfast_gate_limit` is per process. `kind` is `discover`",
        "or `process`, `category` is the category of the error code, `operation` an operation of",
        "the store, `type` the type of the message, `outcome` its result, and `list` is `items` or",
        "`pending`. `gate` is the name of a gate; after the first 100 of a process it is `other`.",
        "",
        "",
    ]
    return "\n".join(lines) + table(described)


def table(described: Iterable[Described]) -> str:
    lines = ["| Metric | Type | Labels | Meaning |", "|---|---|---|---|"]
    for each in described:
        labels = ", ".join(f"`{label}`" for label in each.labels)
        lines.append(f"| `{each.name}` | {each.kind} | {labels} | {each.help} |")
    return "\n".join(lines) + "\n"
