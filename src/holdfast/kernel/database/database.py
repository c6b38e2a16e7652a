"""Runs transactions on a driver; one that conflicts with another is run again."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

from holdfast.errors import DatabaseGone
from holdfast.kernel.database.driver import Conflict, Driver, Row, Transaction

T = TypeVar("T")
P = ParamSpec("P")
_TRIES = 12


class Database:
    def __init__(self, driver: Driver, rng: random.Random) -> None:
        self.driver = driver
        self._rng = rng

    async def write(
        self, verb: str, body: Callable[[Transaction], Awaitable[T]], *, relaxed: bool = False
    ) -> T:
        """Runs one transaction, named by the verb that it carries out."""
        for number in range(_TRIES):
            try:
                async with self.driver.transaction(verb, relaxed=relaxed) as tx:
                    result = await body(tx)
            except Conflict as conflict:
                if number == _TRIES - 1:
                    raise DatabaseGone(f"{verb}: still in conflict: {conflict}") from conflict
                await asyncio.sleep(self._rng.uniform(0, 0.01 * 2 ** min(number, 6)))
            else:
                for call in tx.after:
                    call()
                return result
        raise AssertionError("unreachable")

    async def fetch(self, query: str, params: Mapping[str, Any] | None = None) -> list[Row]:
        return await self.driver.fetch(query, params)


class _HasDatabase(Protocol):
    """A class whose methods are verbs."""

    _database: Database


Owner = TypeVar("Owner", bound=_HasDatabase)
_Method = Callable[Concatenate[Owner, Transaction, P], Awaitable[T]]
_Verb = Callable[Concatenate[Owner, P], Coroutine[Any, Any, T]]


@overload
def verb(method: _Method[Owner, P, T], /) -> _Verb[Owner, P, T]: ...


@overload
def verb(
    name: str | None = None, /, *, relaxed: bool = False
) -> Callable[[_Method[Owner, P, T]], _Verb[Owner, P, T]]: ...


def verb(named: Any = None, /, *, relaxed: bool = False) -> Any:
    """Makes a method one transaction, which it gets as `tx` and its callers do not pass. It runs
    again after a conflict, so it does nothing but read and write the database.

    The method's name names the transaction in metrics and in fault tests; a name is passed if two
    methods would otherwise share one. `relaxed`: see `Driver.transaction`."""
    if callable(named):
        return _transacted(named, named.__name__.lstrip("_"), relaxed)

    def decorate(method: Any) -> Any:
        return _transacted(method, named or method.__name__.lstrip("_"), relaxed)

    return decorate


def _transacted(method: _Method[Owner, P, T], name: str, relaxed: bool) -> _Verb[Owner, P, T]:
    @wraps(method)
    async def call(self: Owner, /, *args: P.args, **kwargs: P.kwargs) -> T:
        async def body(tx: Transaction) -> T:
            return await method(self, tx, *args, **kwargs)

        return await self._database.write(name, body, relaxed=relaxed)

    return call
