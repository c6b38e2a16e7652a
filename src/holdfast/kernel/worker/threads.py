"""Runs plain `def` pipelines: threads, and the async parts of their context without `await`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, TypeVar

from holdfast.pipeline import Http

T = TypeVar("T")


class Threads:
    """The worker's threads for plain `def` items.

    A thread cannot be stopped: when all are stuck in items that timed out, new ones replace
    them."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.pool = self._new()
        self._stuck = 0

    def stuck(self) -> None:
        self._stuck += 1
        if self._stuck >= self.count:
            self.pool.shutdown(wait=False)
            self.pool = self._new()
            self._stuck = 0

    def _new(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self.count, thread_name_prefix="item")


class BlockingHttp:
    """`ctx.http` for a function that runs in a thread: the same calls without `await`."""

    def __init__(self, http: Http, loop: asyncio.AbstractEventLoop) -> None:
        self._http = http
        self._loop = loop

    def get(self, url: str, **options: Any) -> Any:
        return self._wait(self._http.get(url, **options))

    def post(self, url: str, **options: Any) -> Any:
        return self._wait(self._http.post(url, **options))

    def request(self, method: str, url: str, **options: Any) -> Any:
        return self._wait(self._http.request(method, url, **options))

    def throttled(self, reply: Any, reason: str, at_least: float = 0.0) -> Any:
        return self._wait(self._http.throttled(reply, reason, at_least))

    def unavailable(self, reply: Any, reason: str) -> Any:
        return self._http.unavailable(reply, reason)

    def _wait(self, call: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(call, self._loop).result()


@contextmanager
def blocking_context(
    context: AbstractAsyncContextManager[T], loop: asyncio.AbstractEventLoop
) -> Iterator[T]:
    """Enters with `with` what needs `async with`: a gate, a local copy of a file."""
    entered = asyncio.run_coroutine_threadsafe(_enter(context), loop).result()
    try:
        yield entered
    except BaseException as error:
        asyncio.run_coroutine_threadsafe(_leave(context, error), loop).result()
        raise
    else:
        asyncio.run_coroutine_threadsafe(_leave(context), loop).result()


async def _enter(context: AbstractAsyncContextManager[T]) -> T:
    return await context.__aenter__()


async def _leave(
    context: AbstractAsyncContextManager[Any], error: BaseException | None = None
) -> None:
    """Leaves the context; a gate learns from the error how its provider answered."""
    trace = None if error is None else error.__traceback__
    await context.__aexit__(None if error is None else type(error), error, trace)
