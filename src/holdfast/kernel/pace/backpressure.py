"""Backpressure: while too much waits to be processed, sources and uploads have to wait."""

from __future__ import annotations

from holdfast.clock import Clock
from holdfast.kernel import Store
from holdfast.kernel.jobs.admission import wait_for
from holdfast.observe.metrics import Metrics

_READ_SECONDS = 1.0


class Backpressure:
    def __init__(self, store: Store, most: int | None, clock: Clock, metrics: Metrics) -> None:
        self._store = store
        self._most = most
        self._clock = clock
        self._metrics = metrics
        self._read_at = -_READ_SECONDS
        self._wait: int | None = None

    async def wait_seconds(self) -> int | None:
        """Returns the seconds to wait before bringing more; None while there is room.

        It is read once a second."""
        if self._most is None:
            return None
        if self._clock.monotonic() >= self._read_at + _READ_SECONDS:
            self._read_at = self._clock.monotonic()
            self._wait = wait_for(self._most, await self._store.reads.backlog())
            self._metrics.backpressure.set(int(self._wait is not None))
        return self._wait
