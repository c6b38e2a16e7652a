"""Live counters: one reader per process feeds every open page, and remembers how fast jobs move."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.clock import Clock
from holdfast.errors import Throttled
from holdfast.features.jobs.reads import CountedJob
from holdfast.model import JobState

if TYPE_CHECKING:
    from holdfast.features.console import Console

_TICK_SECONDS = 1.0
_IDLE_TICK_SECONDS = 5.0
_RECENT_SECONDS = 10.0
_MOST_LISTENERS = 2000
_MOST_PER_PERSON = 500
_POINTS = 720
_RATE_WINDOW_SECONDS = 30.0
_LEAST_RATE_SECONDS = 0.9
_RATED_JOBS = 1000


class Rates:
    """Items per second of each job, from the counters that were read in this process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._readings: dict[int, deque[tuple[float, int]]] = {}  # job -> (at, finished)

    def observe(self, counted: CountedJob) -> None:
        job_id = counted.job.id
        if counted.job.state is not JobState.RUNNING:
            self._readings.pop(job_id, None)
            return
        while len(self._readings) >= _RATED_JOBS and job_id not in self._readings:
            del self._readings[next(iter(self._readings))]
        readings = self._readings.setdefault(job_id, deque())
        now = self._clock.monotonic()
        if not readings or now - readings[-1][0] >= _LEAST_RATE_SECONDS:
            readings.append((now, counted.counters.finished))
        while readings[0][0] < now - _RATE_WINDOW_SECONDS and len(readings) > 2:
            readings.popleft()

    def per_second(self, counted: CountedJob) -> float | None:
        """Returns the rate: recent, if the job was read before; else since it started.

        None if it is not running."""
        if counted.job.state is not JobState.RUNNING:
            return None
        readings = self._readings.get(counted.job.id)
        if readings and readings[-1][0] - readings[0][0] >= _LEAST_RATE_SECONDS:
            (start, before), (end, after) = readings[0], readings[-1]
            return max(0.0, (after - before) / (end - start))
        if counted.heartbeat_at is None or counted.job.started_at is None:
            return None
        seconds = (counted.heartbeat_at - counted.job.started_at).total_seconds()
        return counted.counters.finished / seconds if seconds > 0 else None

    def seconds_left(self, counted: CountedJob) -> float | None:
        """Estimates the time left; None until all records are known."""
        rate = self.per_second(counted)
        if not rate or counted.job.discovered_at is None:
            return None
        return counted.counters.open / rate


@dataclass(frozen=True, slots=True)
class Point:
    """The totals of all jobs at one moment."""

    at: str
    accepted: int
    finished: int
    open: int
    errors: int


class Feed:
    """Reads the live jobs once a second while there are listeners, and wakes them. A slow
    listener misses readings, never the latest."""

    def __init__(self, console: Console, rates: Rates, clock: Clock) -> None:
        self._console = console
        self._rates = rates
        self._clock = clock
        self._listeners: dict[asyncio.Event, str] = {}  # woken by -> name
        self._latest: list[CountedJob] = []
        self._closed = False
        self._read_at = float("-inf")
        self.points: deque[Point] = deque(maxlen=_POINTS)

    async def read(self) -> None:
        """Reads once; without listeners, only every few seconds."""
        now = self._clock.monotonic()
        interval = _TICK_SECONDS if self._listeners else _IDLE_TICK_SECONDS
        if now < self._read_at + interval * 0.9:
            return
        self._read_at = now
        jobs = await self._console.jobs.live(_RECENT_SECONDS)
        self._latest = await self._console.jobs.counted(jobs)
        for counted in self._latest:
            self._rates.observe(counted)
        self._add_point()
        for listener in self._listeners:
            listener.set()

    def close(self) -> None:
        """Ends every open stream: the process is stopping."""
        self._closed = True
        for listener in self._listeners:
            listener.set()

    def require_room(self, name: str) -> None:
        """Refuses another live page if the user has too many: one user cannot use up all
        connections."""
        names = [*self._listeners.values()]
        if len(names) >= _MOST_LISTENERS or names.count(name) >= _MOST_PER_PERSON:
            raise Throttled("too many live pages are open", 30, "Reload the page instead.")

    async def listen(
        self, name: str, scope: str | None, job_id: int | None
    ) -> AsyncGenerator[list[CountedJob]]:
        """Yields the live jobs in scope, once at the start and after each reading."""
        woken = asyncio.Event()
        self._listeners[woken] = name
        try:
            yield self._visible(scope, job_id)
            while not self._closed:
                await woken.wait()
                woken.clear()
                if not self._closed:
                    yield self._visible(scope, job_id)
        finally:
            del self._listeners[woken]

    def _visible(self, scope: str | None, job_id: int | None) -> list[CountedJob]:
        return [
            counted
            for counted in self._latest
            if scope in (None, counted.job.owner_id) and job_id in (None, counted.job.id)
        ]

    def _add_point(self) -> None:
        counters = [counted.counters for counted in self._latest]
        self.points.append(
            Point(
                at=self._clock.now().isoformat(timespec="seconds"),
                accepted=sum(count.accepted for count in counters),
                finished=sum(count.finished for count in counters),
                open=sum(count.open for count in counters),
                errors=sum(count.error for count in counters),
            )
        )
