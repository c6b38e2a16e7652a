"""Runs transactions on a driver, again where another was in the way."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from holdfast.errors import DatabaseGone
from holdfast.store.driver import Conflict, Driver, Row, Transaction

T = TypeVar("T")
_TRIES = 12


class Database:
    def __init__(self, driver: Driver, rng: random.Random) -> None:
        self.driver = driver
        self._rng = rng

    async def write(
        self, verb: str, body: Callable[[Transaction], Awaitable[T]], *, relaxed: bool = False
    ) -> T:
        """One transaction, named by the verb of the engine that it carries out."""
        for number in range(_TRIES):
            try:
                async with self.driver.transaction(verb, relaxed=relaxed) as tx:
                    return await body(tx)
            except Conflict as conflict:
                if number == _TRIES - 1:
                    raise DatabaseGone(f"{verb}: still in conflict: {conflict}") from conflict
                await asyncio.sleep(self._rng.uniform(0, 0.01 * 2 ** min(number, 6)))
        raise AssertionError("unreachable")

    async def read(self, body: Callable[[Transaction], Awaitable[T]]) -> T:
        async with self.driver.reading() as tx:
            return await body(tx)

    async def fetch(self, query: str, params: Mapping[str, Any] | None = None) -> list[Row]:
        return await self.driver.fetch(query, params)
