"""Loads values for concurrent items: requests are collected for a moment, fetched together and
cached."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import orjson

from holdfast.errors import DatabaseGone, ItemError
from holdfast.kernel.worker.cache import Cache
from holdfast.loader import Loader

_MISSING = object()


class Batches:
    """The loads of one loader for one job."""

    def __init__(
        self, loader: Loader, ctx: Any, cache: Cache, scope: str, timeout: float, log: Any
    ) -> None:
        self._loader = loader
        self._ctx = ctx
        self._cache = cache
        self._scope = scope
        self._timeout = timeout
        self._log = log
        self._room = asyncio.Semaphore(loader.max_waiting)
        self._flights: dict[str, asyncio.Future[Any]] = {}
        self._waiting: list[str] = []
        self._requests: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._due = False

    async def load(self, key: str) -> Any:
        """Returns the key's value, or None if it has none.

        If an item is cancelled, the flight continues for the others."""
        flight = self._flights.get(key)
        if flight is None:
            await self._room.acquire()
            flight = self._flights.get(key)
            if flight is None:
                flight = self._depart(key)
            else:
                self._room.release()
        return await asyncio.shield(flight)

    def _depart(self, key: str) -> asyncio.Future[Any]:
        loop = asyncio.get_running_loop()
        flight: asyncio.Future[Any] = loop.create_future()
        flight.add_done_callback(partial(self._landed, key))
        self._flights[key] = flight
        self._waiting.append(key)
        if self._timer is None:
            self._timer = loop.call_later(self._loader.wait_seconds, self._become_due)
        self._send()
        return flight

    def _landed(self, key: str, flight: asyncio.Future[Any]) -> None:
        del self._flights[key]
        self._room.release()
        if not flight.cancelled():
            flight.exception()  # read here, in case no item is waiting any more

    def _become_due(self) -> None:
        self._due = True
        self._send()

    def _send(self) -> None:
        """Sends full batches at once, others when their time is up.

        While all requests are busy, keys collect, so that the next batch is fuller."""
        loader = self._loader
        while len(self._requests) < loader.concurrency and (
            len(self._waiting) >= loader.max_batch or (self._due and self._waiting)
        ):
            batch = self._waiting[: loader.max_batch]
            del self._waiting[: loader.max_batch]
            request = asyncio.create_task(self._request(batch))
            self._requests.add(request)
            request.add_done_callback(self._answered)
        if not self._waiting and self._timer is not None:
            self._timer.cancel()
            self._timer, self._due = None, False

    def _answered(self, request: asyncio.Task[None]) -> None:
        self._requests.discard(request)
        self._send()

    async def _request(self, keys: Sequence[str]) -> None:
        flights = [(key, self._flights[key]) for key in keys]
        try:
            async with asyncio.timeout(self._timeout):
                values = await self._values(keys)
        except asyncio.CancelledError:
            for _, flight in flights:
                flight.cancel()
            raise
        except BaseException as error:
            for _, flight in flights:
                flight.set_exception(_raisable(error))
            return
        for key, flight in flights:
            value = values.get(key)
            if isinstance(value, BaseException):
                flight.set_exception(_raisable(value))
            else:
                flight.set_result(value)

    async def _values(self, keys: Sequence[str]) -> Mapping[str, Any]:
        cached = await self._cached(keys)
        unknown = [key for key in keys if key not in cached]
        if not unknown:
            return cached
        fetched = await self._loader.fetch(unknown, self._ctx)
        if not isinstance(fetched, Mapping):
            raise ItemError(
                "INVALID_RESULT",
                f"the loader's fetch returned {type(fetched).__name__}, not a mapping",
            )
        unfit = await self._keep(unknown, fetched)
        return {**cached, **{key: unfit.get(key, fetched.get(key)) for key in unknown}}

    async def _cached(self, keys: Sequence[str]) -> dict[str, Any]:
        if not self._caches:
            return {}
        try:
            return await self._cache.read(self._scope, keys)
        except DatabaseGone as gone:
            self._log.warning("database.gone", error=str(gone))
            return {}

    async def _keep(
        self, keys: Sequence[str], fetched: Mapping[str, Any]
    ) -> dict[str, BaseException]:
        """Returns an error for each key whose value is not JSON: the others of its batch are fine.
        While the database is away, values are used without being kept."""
        if not self._caches:
            return {}
        entries: dict[str, tuple[Any, float]] = {}
        for key in keys:
            value = fetched.get(key, _MISSING)
            if value is None or value is _MISSING:
                entries[key] = (None, self._loader.missing_seconds)
            elif not isinstance(value, BaseException):
                entries[key] = (value, self._loader.cache_seconds)
        unfit: dict[str, BaseException] = {}
        try:
            try:
                await self._cache.put(self._scope, entries)
            except TypeError:
                unfit = {key: error for key in entries if (error := _unfit(entries[key][0]))}
                fitting = {key: entry for key, entry in entries.items() if key not in unfit}
                await self._cache.put(self._scope, fitting)
        except DatabaseGone as gone:
            self._log.warning("database.gone", error=str(gone))
        return unfit

    @property
    def _caches(self) -> bool:
        return self._loader.cache_seconds > 0 or self._loader.missing_seconds > 0


def _unfit(value: Any) -> ItemError | None:
    try:
        orjson.dumps(value)
    except TypeError as error:
        return ItemError("INVALID_RESULT", f"a loaded value is not JSON: {error}")
    return None


def _raisable(error: BaseException) -> BaseException:
    """Wraps what a future does not accept: StopIteration, and errors that would end the loop."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    return ItemError("UNKNOWN_ERROR", f"{type(error).__name__}: {error}")
