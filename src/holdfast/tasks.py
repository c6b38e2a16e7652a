"""Ends asyncio tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

_AGAIN_SECONDS = 1.0


async def end_tasks(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancels tasks until each has ended: before Python 3.12 `asyncio.wait_for`, on which the
    drivers rely, may swallow a cancellation, and the task would run forever."""
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=_AGAIN_SECONDS)


def raise_failure(ended: Iterable[asyncio.Task[Any]]) -> None:
    """Raises the exception of a task that failed, if any did."""
    for task in ended:
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error
