"""What plain `def` pipelines get: the async parts of their context, called from a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any

from holdfast.pipeline import Http


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

    def _wait(self, call: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(call, self._loop).result()


@contextmanager
def blocking_gate(
    gate: AbstractAsyncContextManager[Any], loop: asyncio.AbstractEventLoop
) -> Iterator[None]:
    asyncio.run_coroutine_threadsafe(gate.__aenter__(), loop).result()
    try:
        yield
    finally:
        asyncio.run_coroutine_threadsafe(gate.__aexit__(None, None, None), loop).result()
