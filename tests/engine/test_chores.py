"""Chores that read whole tables take a small part of the time, however slow the tables become; one
that can wait runs rarely while the processor is busy."""

from __future__ import annotations

import pytest

from holdfast.clock import SystemClock
from holdfast.kernel.worker.chores import Chore, ChoreTurns


class HandClock(SystemClock):
    def __init__(self) -> None:
        self.at = 100.0

    def monotonic(self) -> float:
        return self.at


class Look:
    """Takes as many seconds as it is told."""

    def __init__(self, clock: HandClock) -> None:
        self._clock = clock
        self.seconds = 0.0
        self.count = 0
        self.fails = False

    async def __call__(self) -> None:
        self.count += 1
        self._clock.at += self.seconds
        if self.fails:
            raise ValueError("a table is gone")


async def test_a_quick_look_does_not_rest() -> None:
    clock = HandClock()
    look = Look(clock)
    rested = ChoreTurns(Chore("look", 1, look, rest=9), clock, lambda: False)
    for _ in range(5):
        await rested.take()
    assert look.count == 5


async def test_a_slow_look_rests_nine_times_as_long_even_if_it_fails() -> None:
    clock = HandClock()
    look = Look(clock)
    rested = ChoreTurns(Chore("look", 1, look, rest=9), clock, lambda: False)
    look.seconds, look.fails = 2.0, True
    with pytest.raises(ValueError, match="gone"):
        await rested.take()
    look.fails = False
    clock.at += 17.9
    await rested.take()
    assert look.count == 1
    clock.at += 0.2
    await rested.take()
    assert look.count == 2


async def test_a_chore_that_can_wait_waits_while_the_processor_is_busy() -> None:
    clock = HandClock()
    look = Look(clock)
    busy = True
    postponed = ChoreTurns(Chore("look", 1, look, can_wait=True), clock, lambda: busy)
    for _ in range(10):
        clock.at += 5
        await postponed.take()
    assert look.count == 0
    clock.at += 10
    await postponed.take()
    assert look.count == 1
    busy = False
    await postponed.take()
    assert look.count == 2
