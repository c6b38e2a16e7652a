"""The metrics of linker."""

from __future__ import annotations

from dataclasses import dataclass

from prometheus_client import Counter

from holdfast.observe.metrics import Declaring


@dataclass(frozen=True, slots=True)
class LinkerMetrics:
    entries: Counter
    calls: Counter
    decisions: Counter


def declare(metrics: Declaring) -> LinkerMetrics:
    return LinkerMetrics(
        metrics.counter("entries", "Entries that were matched, by what became of them.", "state"),
        metrics.counter("calls", "HTTP calls to providers. Divide by entries: calls per entry."),
        metrics.counter("decisions", "Decisions of people, by what they decided.", "kind"),
    )
