"""`holdfast.enqueue` and `holdfast.aenqueue`: records from an application, in its transaction.

The same steps for every library: each connection becomes a transaction of the store. That of a
library without `await` never waits, so that its steps run to their end at once.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar, cast

from holdfast.errors import UserError
from holdfast.store.driver import Queries
from holdfast.store.enqueue import Addition, field_key, new_item, require_time
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
    if _family(connection) == "sqlalchemy":
        connection = await _begun(connection)
    return await enqueue_in(_borrow(connection), addition)


def _addition(
    pipeline: str, rows: Rows, key: Key | None, run_at: datetime | None, owner: str | None
) -> Addition:
    if isinstance(rows, Mapping):
        raise UserError("rows is one record", "Give a list: [row].")
    require_time(run_at)
    items = [new_item(row, _key_of(row, key)) for row in rows]
    return Addition(pipeline, owner or "", items, run_at)


def _key_of(row: Mapping[str, Any], key: Key | None) -> str | None:
    if key is None:
        return None
    value = field_key(row, key) if isinstance(key, str) else key(row)
    if value is not None and not isinstance(value, str):
        raise UserError(f"the key of a record is not text: {value!r:.80}")
    return value


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

    def __init__(self, dialect: str, run: Callable[[Query, Mapping[str, Any], bool], Any]) -> None:
        self.is_async = inspect.iscoroutinefunction(run)
        self.writes_together = dialect == "postgres"
        self._queries: Queries = load_queries(dialect, CORE_FOLDERS)
        self._run = run

    async def fetch(self, query: str, params: Mapping[str, Any] | None = None) -> list[Any]:
        return await self._call(query, params or {}, True)

    async def scan(self, query: str, params: Mapping[str, Any]) -> Sequence[Any]:
        return await self.fetch(query, params)

    async def take(self, query: str, params: Mapping[str, Any]) -> list[Any]:
        return await self.fetch(query, params)

    async def run(self, query: str, params: Mapping[str, Any]) -> None:
        await self._call(query, params, False)

    async def _call(self, query: str, params: Mapping[str, Any], reads: bool) -> list[Any]:
        rows: Any = self._run(self._queries[query], params, reads)
        result: list[Any] = await rows if inspect.isawaitable(rows) else rows
        return result


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

    def run(query: Query, params: Mapping[str, Any], reads: bool) -> list[Any]:
        cursor = connection.cursor()
        cursor.row_factory = None
        # Keys that come back in another form than they were sent would count as another's.
        text_factory, connection.text_factory = connection.text_factory, str
        try:
            rows: list[Any] = cursor.execute(query.sql, named_arguments(query, params)).fetchall()
        finally:
            connection.text_factory = text_factory
        return rows

    return _Borrowed("sqlite", run)


def _of_psycopg(connection: Any) -> _Borrowed:
    import psycopg
    from psycopg.rows import tuple_row

    idle = connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
    if connection.autocommit and idle:
        raise _no_transaction("with connection.transaction(): ...")

    def run(query: Query, params: Mapping[str, Any], reads: bool) -> list[Any]:
        cursor = psycopg.RawCursor(connection, row_factory=tuple_row)
        cursor.execute(query.sql, _in_order(query, params))
        return cursor.fetchall() if reads else []

    async def run_async(query: Query, params: Mapping[str, Any], reads: bool) -> list[Any]:
        cursor = psycopg.AsyncRawCursor(connection, row_factory=tuple_row)
        await cursor.execute(query.sql, _in_order(query, params))
        return await cursor.fetchall() if reads else []

    is_async = isinstance(connection, psycopg.AsyncConnection)
    return _Borrowed("postgres", run_async if is_async else run)


def _of_asyncpg(connection: Any) -> _Borrowed:
    if not connection.is_in_transaction():
        raise _no_transaction("async with connection.transaction(): ...")

    async def run(query: Query, params: Mapping[str, Any], reads: bool) -> list[Any]:
        rows: list[Any] = await connection.fetch(query.sql, *_in_order(query, params))
        return rows

    return _Borrowed("postgres", run)


def _of_sqlalchemy(connection: Any) -> _Borrowed:
    from sqlalchemy import text

    if hasattr(connection, "get_bind"):  # a session
        if inspect.iscoroutinefunction(connection.connection):
            raise UserError("this session is async", "Use: await holdfast.aenqueue(...)")
        connection = connection.connection()
    if hasattr(connection, "driver_connection"):  # of Engine.raw_connection()
        return cast(_Borrowed, _borrow(connection.driver_connection))
    _require_transaction(connection)
    dialect = "sqlite" if connection.dialect.name == "sqlite" else "postgres"

    def prepared(query: Query, params: Mapping[str, Any]) -> tuple[Any, Any]:
        sql = _NUMBERED.sub(lambda found: f":{query.parameters[int(found[1]) - 1]}", query.sql)
        if dialect == "sqlite":
            return text(sql), named_arguments(query, params)
        return text(sql), {name: params[name] for name in query.parameters}

    def run(query: Query, params: Mapping[str, Any], reads: bool) -> list[Any]:
        return _rows_of(connection.execute(*prepared(query, params)))

    async def run_async(query: Query, params: Mapping[str, Any], reads: bool) -> list[Any]:
        return _rows_of(await connection.execute(*prepared(query, params)))

    is_async = inspect.iscoroutinefunction(connection.execute)
    return _Borrowed(dialect, run_async if is_async else run)


async def _begun(connection: Any) -> Any:
    """The connection of an async session, or one whose transaction has begun."""
    if hasattr(connection, "get_bind"):
        return await connection.connection()
    if inspect.iscoroutinefunction(connection.execute) and not connection.in_transaction():
        await connection.begin()
    return connection


def _require_transaction(connection: Any) -> None:
    """Refuses SQLAlchemy's AUTOCOMMIT. With SQLite an application may begin by itself what the
    driver does not."""
    connection = getattr(connection, "sync_connection", connection)
    if not connection.in_transaction():
        connection.begin()  # as it would with a statement
    pooled = connection.connection
    if connection.dialect.detect_autocommit_setting(pooled.dbapi_connection) and not getattr(
        pooled.driver_connection, "in_transaction", False
    ):
        raise _no_transaction('leave out isolation_level="AUTOCOMMIT"')


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
