"""`enqueue` and `aenqueue`: records from an application, in its transaction.

The same steps for every library: each connection becomes a `Transaction`. That of a
library without `await` never waits, so that its steps run to their end at once.
"""

from __future__ import annotations

import inspect
import re
import sqlite3
from collections.abc import (
    AsyncIterator,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple, TypeVar

from holdfast_client.adding import Enqueued, Records
from holdfast_client.adding import enqueue as enqueue_in
from holdfast_client.errors import SchemaError, UserError
from holdfast_client.names import DEFAULT_SCHEMA
from holdfast_client.queries import Query, load_queries, named_arguments
from holdfast_client.records import RowKey, new_items, require_time

T = TypeVar("T")
_NUMBERED = re.compile(r"\$(\d+)")
#: PostgreSQL's codes for a schema, function, table or column that does not exist.
_NOT_IN_SCHEMA = frozenset({"3F000", "42883", "42P01", "42703"})

Rows = Iterable[Mapping[str, Any]]


def enqueue(
    connection: Any,
    pipeline: str,
    rows: Rows,
    *,
    key: RowKey | None = None,
    run_at: datetime | None = None,
    owner: str | None = None,
    own_transaction: bool = False,
    schema: str = DEFAULT_SCHEMA,
) -> Enqueued:
    """Adds records to the standing job of a pipeline, in the connection's current transaction or in
    one of their own. `key`: a record whose key is known becomes no item. `schema`: where Holdfast's
    tables are, as in its HOLDFAST_DATABASE_SCHEMA."""
    records = _records(pipeline, rows, key, run_at, owner)
    if _is_async(connection):
        raise UserError("this connection is async", "Use: await aenqueue(...)")
    return _finish(_add(connection, records, own_transaction, schema))


async def aenqueue(
    connection: Any,
    pipeline: str,
    rows: Rows,
    *,
    key: RowKey | None = None,
    run_at: datetime | None = None,
    owner: str | None = None,
    own_transaction: bool = False,
    schema: str = DEFAULT_SCHEMA,
) -> Enqueued:
    """Does the same as `enqueue` on an async connection."""
    records = _records(pipeline, rows, key, run_at, owner)
    return await _add(connection, records, own_transaction, schema)


def _records(
    pipeline: str, rows: Rows, key: RowKey | None, run_at: datetime | None, owner: str | None
) -> Records:
    if isinstance(rows, Mapping):
        raise UserError("`rows` must be a list of records", "Pass a list: [row].")
    require_time(run_at)
    for what, name in (("pipeline", pipeline), ("owner", owner or "")):
        if not isinstance(name, str):
            raise UserError(f"the {what} is not text: {name!r}", "Give its name.")
    return Records(pipeline, owner or "", new_items(rows, key), run_at)


def _finish(steps: Coroutine[Any, Any, T]) -> T:
    try:
        steps.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise AssertionError("a step waited")


class _Borrowed:
    """An application's transaction with the interface that the store's steps need.

    Rows are read by position."""

    def __init__(
        self, dialect: str, schema: str, run: Callable[[Query, Mapping[str, Any], bool], Any]
    ) -> None:
        self.writes_together = dialect == "postgres"
        self._queries = load_queries(dialect, schema)
        self._run = run

    async def scan(self, query: str, params: Mapping[str, Any]) -> Sequence[Any]:
        return await self._call(query, params, True)

    async def take(self, query: str, params: Mapping[str, Any]) -> list[Any]:
        return await self._call(query, params, True)

    async def run(self, query: str, params: Mapping[str, Any]) -> None:
        await self._call(query, params, False)

    async def _call(self, query: str, params: Mapping[str, Any], reads: bool) -> list[Any]:
        try:
            rows: Any = self._run(self._queries[query], params, reads)
            result: list[Any] = await rows if inspect.isawaitable(rows) else rows
        except Exception as error:
            if isinstance(error, UnicodeEncodeError):
                raise UserError(
                    f"the connection's encoding {error.encoding} cannot send the records",
                    "Set its client_encoding to UTF8.",
                ) from error
            if _is_older_schema(error):
                raise SchemaError(
                    "the database's schema is older than this version of Holdfast, or missing",
                    "Run: holdfast migrate up",
                ) from error
            raise
        return result


def _is_older_schema(error: Exception) -> bool:
    """Whether an error means that the schema is older; SQLAlchemy wraps the driver's error in its
    own."""
    own = getattr(error, "orig", None) or error
    if getattr(own, "sqlstate", None) in _NOT_IN_SCHEMA:
        return True
    return isinstance(own, sqlite3.OperationalError) and str(own).startswith("no such ")


class _Library(NamedTuple):
    """How Holdfast uses the connections of one library."""

    borrow: Callable[[Any, str], Any]  # a _Borrowed, as far as the steps need a Transaction
    in_transaction: Callable[[Any], bool]
    commits_each: Callable[[Any], bool]  # whether the next statement commits by itself
    begin: Callable[[Any], Any]  # a transaction that is committed at its end
    how: str  # how an application begins a transaction
    has: str  # what a connection of it has, and no cursor, pool or engine
    in_one_statement: bool = False  # whether records without keys are added in one statement


async def _add(connection: Any, records: Records, own_transaction: bool, schema: str) -> Enqueued:
    connection = _driver_connection(connection)
    library = _library_of(connection)
    async with _transaction(library, connection, records, own_transaction):
        if _family(connection) == "sqlalchemy":
            connection = await _begun(connection)
            if not (own_transaction and _fit_one_statement(records) and _is_postgres(connection)):
                _refuse_autocommit(connection, own_transaction)
        return await enqueue_in(library.borrow(connection, schema), records)


@asynccontextmanager
async def _transaction(
    library: _Library, connection: Any, records: Records, own_transaction: bool
) -> AsyncIterator[None]:
    """Enters the application's transaction, or a new one for the records."""
    commits_each = library.commits_each(connection)
    if not own_transaction:
        if commits_each:
            raise _no_transaction(library.how)
        yield
        return
    if library.in_transaction(connection):
        raise UserError(
            "the connection is in a transaction, which own_transaction would commit",
            "Leave own_transaction out, or use another connection.",
        )
    if commits_each and library.in_one_statement and _fit_one_statement(records):
        yield
        return
    transaction = library.begin(connection)
    if hasattr(transaction, "__aenter__"):
        async with transaction:
            yield
    else:
        with transaction:
            yield


def _fit_one_statement(records: Records) -> bool:
    return not records.has_keys and records.run_at is None


def _library_of(connection: Any) -> _Library:
    library = _LIBRARIES.get(_family(connection))
    if library is None or not hasattr(connection, library.has):
        kind = type(connection)
        raise UserError(
            f"enqueue needs a connection, not {kind.__module__}.{kind.__qualname__}",
            "Give a connection of sqlite3, psycopg 3, asyncpg or SQLAlchemy.",
        )
    return library


def _family(connection: Any) -> str:
    kind: Any = type(connection)
    return _family_of(kind)


@cache
def _family_of(kind: type) -> str:
    roots = [parent.__module__.partition(".")[0] for parent in kind.__mro__]
    return next((root for root in roots if root != "builtins" and root in _LIBRARIES), "")


def _driver_connection(connection: Any) -> Any:
    """Returns the driver's connection behind one of SQLAlchemy's Engine.raw_connection()."""
    return getattr(connection, "driver_connection", connection)


def _is_async(connection: Any) -> bool:
    connection = _driver_connection(connection)
    _library_of(connection)
    return _family(connection) == "asyncpg" or inspect.iscoroutinefunction(connection.execute)


def _of_sqlite(connection: Any, schema: str) -> _Borrowed:
    def run(query: Query, params: Mapping[str, Any], reads: bool) -> list[Any]:
        cursor = connection.cursor()
        cursor.row_factory = None
        # A codec that changes a key on its way would make the key look like another record's.
        text_factory, connection.text_factory = connection.text_factory, str
        try:
            rows: list[Any] = cursor.execute(query.sql, named_arguments(query, params)).fetchall()
        finally:
            connection.text_factory = text_factory
        return rows

    return _Borrowed("sqlite", schema, run)


def _sqlite_commits_each(connection: Any) -> bool:
    by_itself = getattr(connection, "autocommit", -1) is True or connection.isolation_level is None
    return by_itself and not connection.in_transaction


@contextmanager
def _sqlite_transaction(connection: Any) -> Iterator[None]:
    # Not connection.commit(): on a connection that commits by itself it does nothing.
    connection.execute("begin immediate")
    try:
        yield
    except BaseException:
        connection.execute("rollback")
        raise
    connection.execute("commit")


def _of_psycopg(connection: Any, schema: str) -> _Borrowed:
    import psycopg
    from psycopg.rows import tuple_row

    def run(query: Query, params: Mapping[str, Any], reads: bool) -> list[Any]:
        cursor = psycopg.RawCursor(connection, row_factory=tuple_row)
        cursor.execute(query.sql, _in_order(query, params))
        return cursor.fetchall() if reads else []

    async def run_async(query: Query, params: Mapping[str, Any], reads: bool) -> list[Any]:
        cursor = psycopg.AsyncRawCursor(connection, row_factory=tuple_row)
        await cursor.execute(query.sql, _in_order(query, params))
        return await cursor.fetchall() if reads else []

    return _Borrowed("postgres", schema, run_async if _is_async(connection) else run)


def _psycopg_in_transaction(connection: Any) -> bool:
    import psycopg

    status = psycopg.pq.TransactionStatus.IDLE
    return bool(connection.info.transaction_status != status)


def _of_asyncpg(connection: Any, schema: str) -> _Borrowed:
    async def run(query: Query, params: Mapping[str, Any], reads: bool) -> list[Any]:
        rows: list[Any] = await connection.fetch(query.sql, *_in_order(query, params))
        return rows

    return _Borrowed("postgres", schema, run)


def _of_sqlalchemy(connection: Any, schema: str) -> _Borrowed:
    from sqlalchemy import text

    dialect = "sqlite" if connection.dialect.name == "sqlite" else "postgres"

    def prepared(query: Query, params: Mapping[str, Any]) -> tuple[Any, Any]:
        sql = _NUMBERED.sub(lambda found: f":{query.parameters[int(found[1]) - 1]}", query.sql)
        if dialect == "sqlite":
            return text(sql), named_arguments(query, params)
        return text(sql), {name: params[name] for name in query.parameters}

    # Options of the connection that would read our rows with a cursor of the server.
    options = {"stream_results": False, "yield_per": None}

    def run(query: Query, params: Mapping[str, Any], reads: bool) -> list[Any]:
        found = connection.execute(*prepared(query, params), execution_options=options)
        return _rows_of(found)

    async def run_async(query: Query, params: Mapping[str, Any], reads: bool) -> list[Any]:
        found = await connection.execute(*prepared(query, params), execution_options=options)
        return _rows_of(found)

    return _Borrowed(dialect, schema, run_async if _is_async(connection) else run)


async def _begun(connection: Any) -> Any:
    """Returns the connection, also a session's, in a transaction, which a statement would begin."""
    if hasattr(connection, "get_bind"):  # a session
        found = connection.connection()
        return await found if inspect.isawaitable(found) else found
    if not connection.in_transaction():
        begun = connection.begin()
        if inspect.isawaitable(begun):
            await begun
    return connection


def _is_postgres(connection: Any) -> bool:
    return bool(connection.dialect.name == "postgresql")


def _refuse_autocommit(connection: Any, own_transaction: bool) -> None:
    """Refuses a connection in autocommit; on SQLite, an application may have begun a transaction
    itself."""
    connection = getattr(connection, "sync_connection", connection)
    pooled = connection.connection
    if connection.dialect.detect_autocommit_setting(pooled.dbapi_connection) and not getattr(
        pooled.driver_connection, "in_transaction", False
    ):
        if own_transaction:
            raise UserError(
                "the connection commits each statement by itself, and these records take several",
                'Leave out isolation_level="AUTOCOMMIT".',
            )
        raise _no_transaction('leave out isolation_level="AUTOCOMMIT"')


def _rows_of(result: Any) -> list[Any]:
    return list(result.fetchall()) if result.returns_rows else []


_LIBRARIES = {
    "sqlite3": _Library(
        borrow=_of_sqlite,
        in_transaction=lambda connection: connection.in_transaction,
        commits_each=_sqlite_commits_each,
        begin=_sqlite_transaction,
        how="begin immediate",
        has="in_transaction",
    ),
    "psycopg": _Library(
        borrow=_of_psycopg,
        in_transaction=_psycopg_in_transaction,
        commits_each=lambda it: it.autocommit and not _psycopg_in_transaction(it),
        begin=lambda connection: connection.transaction(),
        how="with connection.transaction(): ...",
        has="transaction",
        in_one_statement=True,
    ),
    "asyncpg": _Library(
        borrow=_of_asyncpg,
        in_transaction=lambda connection: connection.is_in_transaction(),
        commits_each=lambda connection: not connection.is_in_transaction(),
        begin=lambda connection: connection.transaction(),
        how="async with connection.transaction(): ...",
        has="is_in_transaction",
        in_one_statement=True,
    ),
    "sqlalchemy": _Library(
        borrow=_of_sqlalchemy,
        in_transaction=lambda connection: connection.in_transaction(),
        commits_each=lambda _: False,  # SQLAlchemy begins one by itself
        begin=lambda connection: connection.begin(),
        how="with connection.begin(): ...",
        has="in_transaction",
    ),
}


def _in_order(query: Query, params: Mapping[str, Any]) -> list[Any]:
    return [params[name] for name in query.parameters]


def _no_transaction(how: str) -> UserError:
    return UserError(
        "the connection is not in a transaction: records could be added without what belongs to"
        " them",
        f"Begin one: {how}; or pass own_transaction=True.",
    )
