"""The task of every peer, and how it reports that it is done."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable

from bench import data

Item = dict[str, str]
Result = dict[str, object]

_marks = -1


def mark() -> None:
    global _marks
    if _marks < 0:
        _marks = os.open(os.environ["BENCH_MARKS"], os.O_WRONLY | os.O_APPEND)
    os.write(_marks, b".")


def noop(item: Item) -> Result:
    result = data.work(item)
    mark()
    return result


async def noop_async(item: Item) -> Result:
    return noop(item)


async def waiting_async(item: Item) -> Result:
    await asyncio.sleep(0.010)
    return noop(item)


def chosen() -> Callable[[Item], Awaitable[Result]]:
    """Returns the coroutine function for the scenario that is running."""
    return waiting_async if os.environ["BENCH_KIND"] == "waiting" else noop_async
