"""How fast jobs move: remembered per process from whatever was read of their counters."""

from __future__ import annotations

from collections import deque

from holdfast.clock import Clock
from holdfast.console.jobs import CountedJob
from holdfast.model import JobState

_WINDOW_SECONDS = 30.0
_LEAST_SECONDS = 0.9
_JOBS = 1000


class Rates:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: dict[int, deque[tuple[float, int]]] = {}

    def see(self, counted: CountedJob) -> None:
        if counted.job.state is not JobState.RUNNING:
            self._seen.pop(counted.job.id, None)
            return
        while len(self._seen) >= _JOBS and counted.job.id not in self._seen:
            del self._seen[next(iter(self._seen))]
        points = self._seen.setdefault(counted.job.id, deque())
        now = self._clock.monotonic()
        if not points or now - points[-1][0] >= _LEAST_SECONDS:
            points.append((now, counted.counters.finished))
        while points[0][0] < now - _WINDOW_SECONDS and len(points) > 2:
            points.popleft()

    def per_second(self, counted: CountedJob) -> float | None:
        """Lately, if it was looked at before; else since it began. None where it does not run."""
        if counted.job.state is not JobState.RUNNING:
            return None
        points = self._seen.get(counted.job.id)
        if points and points[-1][0] - points[0][0] >= _LEAST_SECONDS:
            (start, before), (end, after) = points[0], points[-1]
            return max(0.0, (after - before) / (end - start))
        if counted.heartbeat_at is None or counted.job.started_at is None:
            return None
        seconds = (counted.heartbeat_at - counted.job.started_at).total_seconds()
        return counted.counters.finished / seconds if seconds > 0 else None

    def seconds_left(self, counted: CountedJob) -> float | None:
        """None before all records are known."""
        rate = self.per_second(counted)
        if not rate or counted.job.discovered_at is None:
            return None
        return counted.counters.open / rate
