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

from holdfast.kernel import Store, open_store
from tests.store.checks import fetch

PATIENCE_SECONDS = 180.0
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

    @property
    def is_reached(self) -> bool:
        return self._reached.is_set()

    async def reached(self) -> None:
        while not self.is_reached:
            assert not self._result.done(), f"the action ended before its point: {self._result}"
            await asyncio.sleep(0.002)

    def let_go(self) -> asyncio.Future[Any]:
        self._go.set()
        return self._result

    async def go_on(self) -> Any:
        """Lets the action continue, to its result."""
        return await self.let_go()

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


async def until_blocked(store: Store, task: asyncio.Future[Any]) -> None:
    """Until the task has ended or one transaction waits for the lock of another."""
    if store.database.driver.dialect == "sqlite":
        # There is one lock, which the stopped transaction holds.
        await asyncio.wait([task], timeout=0.05)
        return
    while not task.done() and not await is_anybody_blocked(store):
        await asyncio.wait([task], timeout=0.005)


async def is_anybody_blocked(store: Store) -> bool:
    waiting = (
        "select 1 from pg_stat_activity where wait_event_type = 'Lock'"
        " and datname = current_database()"
    )
    return bool(await fetch(store, waiting))
