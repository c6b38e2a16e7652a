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
        metrics.counter("entries", "Matched entries, by their state.", "state"),
        metrics.counter("calls", "HTTP calls to providers."),
        metrics.counter("decisions", "Decisions made by people, by kind.", "kind"),
    )
