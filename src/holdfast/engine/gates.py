"""A worker's side of the shared gates: permits reserved in batches, requests in flight counted."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from holdfast.clock import Clock
from holdfast.errors import GateWait
from holdfast.store import Store
from holdfast.store.gates import Reservation

# A request may start this much late and still keep its distance to the next.
_SLACK_SECONDS = 0.1
# How long a reservation without spacing is used: a kill switch or a closed gate is seen by then.
_FRESH_SECONDS = 1.0
_HOLD_SECONDS = 10.0  # renewed by `keep` while requests are in flight
_BATCH = 64


@dataclass(slots=True)
class _Local:
    """What this worker holds of a gate."""

    windows: deque[tuple[float, float]] = field(default_factory=deque)
    spaced: bool = False
    slots: int | None = 0
    fresh_until: float = 0.0
    shut_until: float = 0.0
    shut_reason: str = ""
    in_flight: int = 0
    waiting: int = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    freed: asyncio.Event = field(default_factory=asyncio.Event)


class Gates:
    def __init__(
        self,
        store: Store,
        worker: str,
        max_wait_seconds: float,
        clock: Clock,
        observe_wait: Callable[[float], None],
        log: Any,
    ) -> None:
        self._store = store
        self._worker = worker
        self._max_wait = max_wait_seconds
        self._clock = clock
        self._observe_wait = observe_wait
        self._log = log
        self._gates: dict[str, _Local] = {}

    @asynccontextmanager
    async def passing(self, name: str) -> AsyncIterator[None]:
        """Waits briefly for a permit, or raises GateWait, so that the item gives up its place."""
        local = self._gates.setdefault(name, _Local())
        requested = self._clock.monotonic()
        local.waiting += 1
        try:
            await self._enter(name, local, requested + self._max_wait)
        finally:
            local.waiting -= 1
        try:
            self._observe_wait(self._clock.monotonic() - requested)
            yield
        finally:
            local.in_flight -= 1
            local.freed.set()

    async def close(self, name: str, seconds: float, reason: str) -> None:
        local = self._gates.setdefault(name, _Local())
        self._shut(local, seconds, reason)
        local.windows.clear()
        self._log.warning("gate.closed", gate=name, seconds=seconds, reason=reason)
        await self._store.gates.close(name, seconds, reason)

    async def slow_down(self, name: str, spacing: float) -> None:
        await self._store.gates.slow_down(name, spacing)
        self._gates.setdefault(name, _Local()).fresh_until = 0.0

    async def keep(self) -> None:
        """Renews the places of requests in flight and gives back idle ones: another worker may need
        them."""
        for name, local in list(self._gates.items()):
            if not local.slots:
                continue
            if local.in_flight or local.waiting:
                await self._store.gates.keep_slots(
                    name, self._worker, max(local.slots, local.in_flight), _HOLD_SECONDS
                )
            else:
                local.slots, local.fresh_until = 0, 0.0
                await self._store.gates.keep_slots(name, self._worker, 0, 0.0)

    async def _enter(self, name: str, local: _Local, give_up_at: float) -> None:
        """Takes a place in flight and a start time. Waiters get theirs in order, because permits
        are given out under a lock; waiting for the start is outside it."""
        while True:
            async with local.lock:
                window = await self._permit(name, local, give_up_at)
                if window is not None:
                    local.in_flight += 1
                else:
                    local.freed.clear()
            if window is not None:
                if await self._start_within(local, window):
                    return
                continue
            left = give_up_at - self._clock.monotonic()
            if left <= 0:
                raise GateWait(name, 1.0, "all places are taken")
            await _wait(local.freed, min(left, _FRESH_SECONDS))

    async def _start_within(self, local: _Local, window: tuple[float, float]) -> bool:
        """Waits for the window to begin; False if it was missed, so that its distance to the next
        start is not certain any more."""
        begin, end = window
        started = False
        try:
            left = begin - self._clock.monotonic()
            if left > 0:
                await asyncio.sleep(left)
            started = self._clock.monotonic() <= end
        finally:
            if not started:
                local.in_flight -= 1
                local.freed.set()
        return started

    async def _permit(
        self, name: str, local: _Local, give_up_at: float
    ) -> tuple[float, float] | None:
        """The window of the next start; None while all our places are in use."""
        while True:
            now = self._clock.monotonic()
            if local.shut_until > now:
                await self._wait_or_raise(name, local, give_up_at)
                continue
            if now >= local.fresh_until or (local.spaced and not local.windows):
                await self._reserve(name, local)
                continue
            if local.slots is not None and local.in_flight >= local.slots:
                return None
            if not local.spaced:
                return now, math.inf
            begin, end = local.windows.popleft()
            if now <= end and begin <= end:
                return begin, end

    async def _reserve(self, name: str, local: _Local) -> None:
        requested = self._clock.monotonic()
        want = max(1, min(_BATCH, local.waiting + local.in_flight))
        reservation = await self._store.gates.reserve(
            name,
            self._worker,
            want,
            self._max_wait,
            _SLACK_SECONDS,
            _HOLD_SECONDS,
            local.in_flight,
        )
        answered = self._clock.monotonic()
        if reservation.wait:
            self._shut(local, reservation.wait, reservation.reason)
            return
        self._take(local, reservation, requested, answered)

    def _take(
        self, local: _Local, reservation: Reservation, requested: float, answered: float
    ) -> None:
        """The database read its clock somewhere between `requested` and `answered`: a start that is
        right for both ends of that interval keeps its distance in any case."""
        local.slots = reservation.slots
        local.spaced = reservation.starts is not None
        local.fresh_until = answered + _FRESH_SECONDS
        if reservation.starts is not None:
            local.fresh_until = answered + self._max_wait + _FRESH_SECONDS
            local.windows = deque(
                (answered + start, requested + start + reservation.slack)
                for start in reservation.starts
            )

    async def _wait_or_raise(self, name: str, local: _Local, give_up_at: float) -> None:
        now = self._clock.monotonic()
        if local.shut_until > give_up_at:
            raise GateWait(name, local.shut_until - now, local.shut_reason)
        await asyncio.sleep(local.shut_until - now)

    def _shut(self, local: _Local, seconds: float, reason: str) -> None:
        local.shut_until = max(local.shut_until, self._clock.monotonic() + seconds)
        local.shut_reason = reason


async def _wait(event: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return
