"""A lock that serves its waiters in the order of their lanes."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from holdfast.kernel.pace.lanes import CLASSES, LaneTurns, class_of
from holdfast.model import Lane


class LaneLock:
    def __init__(self) -> None:
        self._held = False
        self._turns = LaneTurns()
        self._waiting: dict[frozenset[Lane], deque[asyncio.Future[None]]] = {
            lanes: deque() for lanes in CLASSES
        }

    @asynccontextmanager
    async def held(self, lane: Lane) -> AsyncIterator[None]:
        await self._acquire(self._waiting[class_of(lane)])
        try:
            yield
        finally:
            self._release()

    async def _acquire(self, waiting: deque[asyncio.Future[None]]) -> None:
        loop = asyncio.get_running_loop()
        granted = loop.create_future()
        waiting.append(granted)
        # Not at once: all waiters that were woken together line up first, and the most urgent is
        # served.
        loop.call_soon(self._grant)
        try:
            await granted
        except asyncio.CancelledError:
            if granted.cancelled():
                with suppress(ValueError):
                    waiting.remove(granted)
            else:
                self._release()
            raise

    def _release(self) -> None:
        self._held = False
        asyncio.get_running_loop().call_soon(self._grant)

    def _grant(self) -> None:
        while not self._held and (lanes := [min(c) for c, line in self._waiting.items() if line]):
            granted = self._waiting[self._turns.choose(lanes)].popleft()
            if not granted.done():  # otherwise it was cancelled
                self._held = True
                granted.set_result(None)
