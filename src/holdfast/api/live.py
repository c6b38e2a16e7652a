"""Live counters: one reader for each process feeds every page that is open."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from holdfast.api.parts import Parts
from holdfast.api.rates import Rates
from holdfast.console.jobs import CountedJob
from holdfast.errors import Throttled

_TICK_SECONDS = 1.0
_IDLE_TICK_SECONDS = 5.0
_KEEP_ALIVE_SECONDS = 15.0
_RECENT_SECONDS = 10.0
_MOST_LISTENERS = 2000
_MOST_OF_ONE = 500
_POINTS = 720


@dataclass(frozen=True, slots=True)
class Point:
    """How all jobs together stood at one moment."""

    at: str
    accepted: int
    finished: int
    open: int
    errors: int


class Feed:
    """Reads what is live once a second while anybody listens, and wakes the listeners. A slow
    listener misses readings, never the latest."""

    def __init__(self, parts: Parts, rates: Rates) -> None:
        self._parts = parts
        self._rates = rates
        self._listeners: dict[asyncio.Event, str] = {}  # and who listens
        self._latest: list[CountedJob] = []
        self._closed = False
        self._read_at = float("-inf")
        self.points: deque[Point] = deque(maxlen=_POINTS)

    async def read(self) -> None:
        """One tick; without listeners only every few."""
        now = self._parts.clock.monotonic()
        wanted = _TICK_SECONDS if self._listeners else _IDLE_TICK_SECONDS
        if now < self._read_at + wanted * 0.9:
            return
        self._read_at = now
        jobs = await self._parts.console.jobs.live(_RECENT_SECONDS)
        self._latest = await self._parts.console.jobs.counted(jobs)
        for counted in self._latest:
            self._rates.see(counted)
        self._remember()
        for listener in self._listeners:
            listener.set()

    def close(self) -> None:
        """Ends every open stream: the process stops."""
        self._closed = True
        for listener in self._listeners:
            listener.set()

    def check_room(self, name: str) -> None:
        """Nobody can take everybody's places."""
        names = [*self._listeners.values()]
        if len(names) >= _MOST_LISTENERS or names.count(name) >= _MOST_OF_ONE:
            raise Throttled("too many live pages are open", 30, "Reload instead.")

    async def listen(
        self, name: str, scope: str | None, job_id: int | None
    ) -> AsyncGenerator[list[CountedJob]]:
        """The live jobs in scope, again after each reading, and now and then without one."""
        woken = asyncio.Event()
        self._listeners[woken] = name
        try:
            yield self._seen(scope, job_id)
            while not self._closed:
                with suppress(TimeoutError):
                    async with asyncio.timeout(_KEEP_ALIVE_SECONDS):
                        await woken.wait()
                woken.clear()
                if not self._closed:
                    yield self._seen(scope, job_id)
        finally:
            del self._listeners[woken]

    def _seen(self, scope: str | None, job_id: int | None) -> list[CountedJob]:
        return [
            counted
            for counted in self._latest
            if scope in (None, counted.job.owner_id) and job_id in (None, counted.job.id)
        ]

    def _remember(self) -> None:
        counters: list[Any] = [counted.counters for counted in self._latest]
        self.points.append(
            Point(
                at=self._parts.clock.now().isoformat(timespec="seconds"),
                accepted=sum(each.accepted for each in counters),
                finished=sum(each.finished for each in counters),
                open=sum(each.open for each in counters),
                errors=sum(each.error for each in counters),
            )
        )
