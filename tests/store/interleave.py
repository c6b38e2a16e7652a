"""Two processes' transactions, interleaved on purpose: one stops at a point until it is let go.

A store's fault hook is called in the middle of its transactions. It blocks the thread it is
called in, so the store that is stopped lives in a thread and an event loop of its own.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

from holdfast.store import Store, open_store
from tests.store.checks import fetch

PATIENCE_SECONDS = 30
Action = Callable[[Store], Awaitable[Any]]


class Stopped:
    """An action that has come to its point and waits there."""

    def __init__(self) -> None:
        self._reached = threading.Event()
        self._go = threading.Event()
        self._thread = ThreadPoolExecutor(1)
        self._result: asyncio.Future[Any]

    def start(self, url: str, action: Action, point: tuple[str, str]) -> None:
        running = self._thread.submit(lambda: asyncio.run(self._run(url, action, point)))
        self._result = asyncio.wrap_future(running)

    async def _run(self, url: str, action: Action, point: tuple[str, str]) -> Any:
        def fault(verb: str, query: str) -> None:
            if (verb, query) == point and not self._reached.is_set():
                self._reached.set()
                assert self._go.wait(PATIENCE_SECONDS)

        store = await open_store(url, fault=fault)
        try:
            return await action(store)
        finally:
            await store.close()

    async def reached(self) -> None:
        while not self._reached.is_set():
            assert not self._result.done(), "the action ended without reaching its point"
            await asyncio.sleep(0.002)

    async def go_on(self) -> Any:
        """Lets the action go on, to its result."""
        self._go.set()
        return await self._result

    def close(self) -> None:
        self._go.set()
        self._thread.shutdown()


@asynccontextmanager
async def stopped(url: str, verb: str, query: str, action: Action) -> AsyncIterator[Stopped]:
    """Runs the action in another process's place up to the point (verb, query)."""
    stop = Stopped()
    try:
        stop.start(url, action, (verb, query))
        await stop.reached()
        yield stop
    finally:
        stop.close()


async def until_blocked(store: Store, task: asyncio.Task[Any]) -> None:
    """Until the task has ended or waits for a lock that somebody else holds."""
    if store.database.driver.dialect == "sqlite":
        # There is one lock, which the stopped transaction holds.
        await asyncio.wait([task], timeout=0.05)
        return
    waiting = (
        "select 1 from pg_stat_activity where wait_event_type = 'Lock'"
        " and datname = current_database()"
    )
    while not task.done() and not await fetch(store, waiting):
        await asyncio.wait([task], timeout=0.005)
