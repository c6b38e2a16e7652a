from __future__ import annotations

from dataclasses import dataclass

from prometheus_client import Counter

from holdfast.observe.metrics import Declaring


@dataclass(frozen=True, slots=True)
class WeatherMetrics:
    readings: Counter


def declare(metrics: Declaring) -> WeatherMetrics:
    return WeatherMetrics(metrics.counter("readings", "Readings that were taken.", "station"))
