"""`holdfast.enqueue` and `holdfast.aenqueue`: records from an application, in its transaction.

The same steps for every library: each connection becomes a transaction of the store. That of a
library without `await` never waits, so that its steps run to their end at once.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from holdfast.errors import UserError
from holdfast.store.driver import Queries
from holdfast.store.enqueue import Addition, field_key, new_item
from holdfast.store.enqueue import Enqueued as Enqueued
from holdfast.store.enqueue import enqueue as enqueue_in
from holdfast.store.queries import CORE_FOLDERS, Query, load_queries
from holdfast.store.sqlite import named_arguments

T = TypeVar("T")
_NUMBERED = re.compile(r"\$(\d+)")

#: The name of a field whose value is the record's key, or a function that makes it.
Key = str | Callable[[Mapping[str, Any]], str | None]
Rows = Iterable[Mapping[str, Any]]


def enqueue(
    connection: Any,
    pipeline: str,
    rows: Rows,
    *,
    key: Key | None = None,
    run_at: datetime | None = None,
    owner: str | None = None,
) -> Enqueued:
    """Adds records to the standing job of a pipeline, in the transaction that the connection is
    in. `key`: a record whose key is known becomes no item."""
    addition = _addition(pipeline, rows, key, run_at, owner)
    borrowed = _borrow(connection)
    if borrowed.is_async:
        raise UserError("this connection is async", "Use: await holdfast.aenqueue(...)")
    return _finish(enqueue_in(borrowed, addition))


async def aenqueue(
    connection: Any,
    pipeline: str,
    rows: Rows,
    *,
    key: Key | None = None,
    run_at: datetime | None = None,
    owner: str | None = None,
) -> Enqueued:
    """The same on an async connection."""
    addition = _addition(pipeline, rows, key, run_at, owner)
    if _family(connection) == "sqlalchemy" and hasattr(connection, "get_bind"):
        connection = await connection.connection()
    return await enqueue_in(_borrow(connection), addition)


def _addition(
    pipeline: str, rows: Rows, key: Key | None, run_at: datetime | None, owner: str | None
) -> Addition:
    if isinstance(rows, Mapping):
        raise UserError("rows is one record", "Give a list: [row].")
    if run_at is not None and run_at.tzinfo is None:
        raise UserError("run_at has no time zone", "Use for example datetime.now(UTC).")
    items = [new_item(row, _key_of(row, key)) for row in rows]
    return Addition(pipeline, owner or "", items, run_at)


def _key_of(row: Mapping[str, Any], key: Key | None) -> str | None:
    if key is None:
        return None
    return field_key(row, key) if isinstance(key, str) else key(row)


def _finish(steps: Coroutine[Any, Any, T]) -> T:
    try:
        steps.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise AssertionError("a step waited")


class _Borrowed:
    """An application's transaction, as the store's steps see it. Rows are read by position."""

    announces = False
    waited_seconds = 0.0

    def __init__(self, dialect: str, run: Callable[[Query, Mapping[str, Any]], Any]) -> None:
        self.is_async = inspect.iscoroutinefunction(run)
        self.writes_together = dialect == "postgres"
        self._queries: Queries = load_queries(dialect, CORE_FOLDERS)
        self._run = run

    async def fetch(self, query: str, params: Mapping[str, Any] | None = None) -> list[Any]:
        rows: Any = self._run(self._queries[query], params or {})
        result: list[Any] = await rows if inspect.isawaitable(rows) else rows
        return result

    async def scan(self, query: str, params: Mapping[str, Any]) -> Sequence[Any]:
        return await self.fetch(query, params)

    async def take(self, query: str, params: Mapping[str, Any]) -> list[Any]:
        return await self.fetch(query, params)

    async def run(self, query: str, params: Mapping[str, Any]) -> None:
        await self.fetch(query, params)


def _borrow(connection: Any) -> Any:  # a _Borrowed, as far as the steps need a Transaction
    families = {
        "sqlite3": _of_sqlite,
        "psycopg": _of_psycopg,
        "asyncpg": _of_asyncpg,
        "sqlalchemy": _of_sqlalchemy,
    }
    borrow = families.get(_family(connection))
    if borrow is None:
        raise UserError(
            f"enqueue cannot use a {type(connection).__name__}",
            "Give a connection of sqlite3, psycopg 3, asyncpg or SQLAlchemy.",
        )
    return borrow(connection)


def _family(connection: Any) -> str:
    roots = [parent.__module__.partition(".")[0] for parent in type(connection).__mro__]
    return next((root for root in roots if root != "builtins" and root in _LIBRARIES), "")


_LIBRARIES = ("sqlite3", "psycopg", "asyncpg", "sqlalchemy")


def _of_sqlite(connection: Any) -> _Borrowed:
    by_itself = getattr(connection, "autocommit", -1) is True or connection.isolation_level is None
    if by_itself and not connection.in_transaction:
        raise _no_transaction("begin immediate")

    def run(query: Query, params: Mapping[str, Any]) -> list[Any]:
        cursor = connection.cursor()
        cursor.row_factory = None
        rows: list[Any] = cursor.execute(query.sql, named_arguments(query, params)).fetchall()
        return rows

    return _Borrowed("sqlite", run)


def _of_psycopg(connection: Any) -> _Borrowed:
    import psycopg

    idle = connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
    if connection.autocommit and idle:
        raise _no_transaction("with connection.transaction(): ...")

    def run(query: Query, params: Mapping[str, Any]) -> list[Any]:
        cursor = psycopg.RawCursor(connection)
        cursor.execute(query.sql, _in_order(query, params))
        return cursor.fetchall() if cursor.description else []

    async def run_async(query: Query, params: Mapping[str, Any]) -> list[Any]:
        cursor = psycopg.AsyncRawCursor(connection)
        await cursor.execute(query.sql, _in_order(query, params))
        return await cursor.fetchall() if cursor.description else []

    is_async = isinstance(connection, psycopg.AsyncConnection)
    return _Borrowed("postgres", run_async if is_async else run)


def _of_asyncpg(connection: Any) -> _Borrowed:
    if not connection.is_in_transaction():
        raise _no_transaction("async with connection.transaction(): ...")

    async def run(query: Query, params: Mapping[str, Any]) -> list[Any]:
        rows: list[Any] = await connection.fetch(query.sql, *_in_order(query, params))
        return rows

    return _Borrowed("postgres", run)


def _of_sqlalchemy(connection: Any) -> _Borrowed:
    from sqlalchemy import text

    if hasattr(connection, "get_bind"):  # a session
        if inspect.iscoroutinefunction(connection.connection):
            raise UserError("this session is async", "Use: await holdfast.aenqueue(...)")
        connection = connection.connection()
    dialect = "sqlite" if connection.dialect.name == "sqlite" else "postgres"

    def prepared(query: Query, params: Mapping[str, Any]) -> tuple[Any, Any]:
        sql = _NUMBERED.sub(lambda found: f":{query.parameters[int(found[1]) - 1]}", query.sql)
        if dialect == "sqlite":
            return text(sql), named_arguments(query, params)
        return text(sql), {name: params[name] for name in query.parameters}

    def run(query: Query, params: Mapping[str, Any]) -> list[Any]:
        return _rows_of(connection.execute(*prepared(query, params)))

    async def run_async(query: Query, params: Mapping[str, Any]) -> list[Any]:
        return _rows_of(await connection.execute(*prepared(query, params)))

    is_async = inspect.iscoroutinefunction(connection.execute)
    return _Borrowed(dialect, run_async if is_async else run)


def _rows_of(result: Any) -> list[Any]:
    return list(result.fetchall()) if result.returns_rows else []


def _in_order(query: Query, params: Mapping[str, Any]) -> list[Any]:
    return [params[name] for name in query.parameters]


def _no_transaction(how: str) -> UserError:
    return UserError(
        "the connection is not in a transaction: records could be added without what belongs to"
        " them",
        f"Begin one: {how}",
    )
