"""Waiting for a database that is gone."""

from __future__ import annotations

import random
from itertools import islice

import pytest
import structlog

from holdfast.errors import DatabaseGone, UserError
from holdfast.kernel.worker.patience import FIRST_SECONDS, LONGEST_SECONDS, backoff, patiently


class Flaky:
    """Fails a number of times, then answers."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.calls = 0
        self.pauses: list[float] = []

    async def __call__(self) -> str:
        self.calls += 1
        if self.calls <= self.failures:
            raise DatabaseGone("restarting")
        return "answer"

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)


async def test_repeats_until_the_database_answers() -> None:
    flaky = Flaky(failures=9)
    log = structlog.get_logger()
    assert await patiently(flaky, log, random.Random(1), pause=flaky.pause) == "answer"
    assert (flaky.calls, len(flaky.pauses)) == (10, 9)


async def test_waits_longer_each_time_and_never_in_step_with_another_process() -> None:
    pauses = []
    for seed in (1, 2):
        flaky = Flaky(failures=12)
        await patiently(flaky, structlog.get_logger(), random.Random(seed), pause=flaky.pause)
        pauses.append(flaky.pauses)
    ceilings = [min(LONGEST_SECONDS, FIRST_SECONDS * 2**number) for number in range(12)]
    for waits in pauses:
        for seconds, ceiling in zip(waits, ceilings, strict=True):
            assert ceiling / 2 <= seconds <= ceiling
    assert not set(pauses[0]) & set(pauses[1])


async def test_gives_up_with_the_failure_once_it_may() -> None:
    flaky = Flaky(failures=99)
    with pytest.raises(DatabaseGone):
        await patiently(
            flaky,
            structlog.get_logger(),
            random.Random(1),
            give_up=lambda: flaky.calls >= 3,
            pause=flaky.pause,
        )
    assert flaky.calls == 3


async def test_other_errors_are_raised_at_once() -> None:
    async def fail() -> None:
        raise UserError("the disk is full")

    with pytest.raises(UserError):
        await patiently(fail, structlog.get_logger(), random.Random(1))


def test_delays_never_exceed_the_longest() -> None:
    assert all(seconds <= 5.0 for seconds in islice(backoff(random.Random(1), 0.1, 5.0), 1000))
