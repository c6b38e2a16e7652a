"""A lock that serves its waiters in the order of their lanes, while there is something to give."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress

from holdfast.kernel.pace.lanes import CLASSES, LaneTurns, class_of
from holdfast.model import Lane

_LEAST_SECONDS = 0.01  # enough to get a turn that is free


class LaneLock:
    def __init__(self) -> None:
        self._held = False
        self._is_open = True
        self._opens: asyncio.TimerHandle | None = None
        self._turns = LaneTurns()
        self._waiting: dict[frozenset[Lane], deque[asyncio.Future[None]]] = {
            lanes: deque() for lanes in CLASSES
        }

    async def acquire(self, lane: Lane, seconds: float, again: bool = False) -> bool:
        """Waits for a turn, at most that long; returns whether it came.

        `again`: the turn before was given back, or led to nothing; it comes first in its lane."""
        loop, waiting = asyncio.get_running_loop(), self._waiting[class_of(lane)]
        granted = loop.create_future()
        (waiting.appendleft if again else waiting.append)(granted)
        # Not at once: all waiters that were woken together line up first, and the most urgent is
        # served.
        loop.call_soon(self._grant)
        try:
            async with asyncio.timeout(max(_LEAST_SECONDS, seconds)):
                await granted
        except (TimeoutError, asyncio.CancelledError) as end:
            if granted.cancelled():
                with suppress(ValueError):
                    waiting.remove(granted)
            else:
                self.release()
            if isinstance(end, TimeoutError):
                return False
            raise
        return True

    def release(self) -> None:
        self._held = False
        asyncio.get_running_loop().call_soon(self._grant)

    def give_back(self, seconds: float) -> None:
        """Releases the lock because there is nothing to give: the turn does not count, and nobody
        gets one before `open` is called, or that much time has passed."""
        self._turns.give_back()
        self._held, self._is_open = False, False
        self._opens = asyncio.get_running_loop().call_later(seconds, self.open)

    def open(self) -> None:
        self._is_open = True
        if self._opens is not None:
            self._opens.cancel()
            self._opens = None
        asyncio.get_running_loop().call_soon(self._grant)

    def _grant(self) -> None:
        while (
            self._is_open
            and not self._held
            and (lanes := [min(c) for c, line in self._waiting.items() if line])
        ):
            granted = self._waiting[self._turns.choose(lanes)].popleft()
            if granted.done():  # it was cancelled
                self._turns.give_back()
            else:
                self._held = True
                granted.set_result(None)
