"""Waits for a database that cannot be reached, instead of failing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from random import Random
from typing import Any, TypeVar

from holdfast.errors import DatabaseGone

T = TypeVar("T")
FIRST_SECONDS = 0.2
LONGEST_SECONDS = 3.0


def backoff(rng: Random, first: float, longest: float) -> Iterator[float]:
    """Yields delays that double up to the longest.

    Up to half of each is random, so that processes which lost the same server do not return
    together."""
    delay = first
    while True:
        yield delay * rng.uniform(0.5, 1.0)
        delay = min(delay * 2, longest)


def never() -> bool:
    return False


async def patiently(
    action: Callable[[], Awaitable[T]],
    log: Any,
    rng: Random,
    *,
    give_up: Callable[[], bool] = never,
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> T:
    """Repeats the same action until the database answers. Once `give_up()` is true, the failure
    is raised instead."""
    for seconds in backoff(rng, FIRST_SECONDS, LONGEST_SECONDS):
        try:
            return await action()
        except DatabaseGone as error:
            log.warning("database.gone", error=str(error))
            if give_up():
                raise
        await pause(seconds)
    raise AssertionError("unreachable")
