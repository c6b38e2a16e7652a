"""Chores: what a process does again and again while it runs."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

from holdfast.clock import Clock
from holdfast.errors import DatabaseGone, FilesGone

_BUSY_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Chore:
    """An action, with its name in the log and the pause between two turns.

    `rest` is for an action that reads whole tables, which is slow while a transaction is held open
    for long: after each turn it rests this many times as long as the turn took. One that `can_wait`
    runs once a minute while the processor is busy.
    """

    name: str
    seconds: float
    action: Callable[[], Awaitable[object]]
    rest: float = 0.0
    can_wait: bool = False


class ChoreTurns:
    """Decides whether a chore's next turn is due, and takes it."""

    def __init__(self, chore: Chore, clock: Clock, is_busy: Callable[[], bool]) -> None:
        self._chore = chore
        self._clock = clock
        self._is_busy = is_busy
        self._ran_at = clock.monotonic()
        self._rests_until = -math.inf

    async def take(self) -> None:
        started = self._clock.monotonic()
        if not self._is_due(started):
            return
        self._ran_at = started
        try:
            await self._chore.action()
        finally:
            ended = self._clock.monotonic()
            self._rests_until = ended + self._chore.rest * (ended - started)

    def _is_due(self, now: float) -> bool:
        if now < self._rests_until:
            return False
        waits = self._chore.can_wait and self._is_busy()
        return not waits or now >= self._ran_at + _BUSY_SECONDS


async def repeat(
    chore: Chore, clock: Clock, log: Any, is_busy: Callable[[], bool] = lambda: False
) -> None:
    """Does the chore until it is cancelled. It survives the loss of the database and of the file
    store; other failures are logged, and it is tried again."""
    turns = ChoreTurns(chore, clock, is_busy)
    while True:
        try:
            await turns.take()
        except DatabaseGone as error:
            log.warning("database.gone", error=str(error))
        except FilesGone as error:
            log.warning("files.gone", error=str(error))
        except Exception as error:
            log.error("upkeep.failed", task=chore.name, error=str(error), exc_info=error)
        await asyncio.sleep(chore.seconds)


def begin(
    chores: Iterable[Chore], clock: Clock, log: Any, is_busy: Callable[[], bool] = lambda: False
) -> list[asyncio.Task[None]]:
    """Starts a task for each chore. `is_busy`: the processor has more urgent work."""
    return [asyncio.create_task(repeat(chore, clock, log, is_busy)) for chore in chores]
