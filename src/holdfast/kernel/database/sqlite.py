"""The SQLite driver: one writer at a time, concurrent readers, each connection in its own
thread."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import orjson

from holdfast.clock import Clock
from holdfast.errors import DatabaseGone, UserError
from holdfast.kernel.database.driver import (
    WORK_CHANNEL,
    Batch,
    Conflict,
    Fault,
    Observe,
    Queries,
    Row,
    Transaction,
    Values,
)
from holdfast.kernel.database.names import Names
from holdfast.kernel.database.queries import Query, compile_query
from holdfast.kernel.jobs.admission import NO_RULES, JobRules
from holdfast.kernel.outbox.sending import send_message
from holdfast_client.adding import instant_text

T = TypeVar("T")
_READERS = 2
_BUSY_SECONDS = 10
_WATCH_SECONDS = 0.004
#: A transaction that is idle for this long is rolled back: an item is blocking the event loop, and
#: other processes could not write until it ends.
_IDLE_SECONDS = 10


async def open_sqlite(
    path: Path,
    queries: Queries,
    names: Names,
    rules: JobRules,
    clock: Clock,
    fault: Fault,
    observe: Observe,
) -> SqliteDriver:
    writer = _Connection(path)
    readers = [_Connection(path, query_only=True) for _ in range(_READERS)]
    with _mapped_errors():
        for connection in (writer, *readers):
            await connection.open()
    return SqliteDriver(path, writer, readers, queries, names, rules, clock, fault, observe)


class SqliteDriver:
    dialect = "sqlite"

    def __init__(
        self,
        path: Path,
        writer: _Connection,
        readers: list[_Connection],
        queries: Queries,
        names: Names,
        rules: JobRules,
        clock: Clock,
        fault: Fault,
        observe: Observe,
    ) -> None:
        self._path = path
        self._writer = writer
        self._readers: asyncio.Queue[_Connection] = asyncio.Queue()
        for reader in readers:
            self._readers.put_nowait(reader)
        self._all = [writer, *readers]
        self._turn = asyncio.Lock()
        self.queries = queries
        self.names = names
        self._rules = rules
        self._clock = clock
        self._fault = fault
        self._observe = observe

    @asynccontextmanager
    async def transaction(self, verb: str, *, relaxed: bool = False) -> AsyncIterator[Transaction]:
        requested = self._clock.monotonic()
        async with self._turn:
            with _mapped_errors():
                try:
                    # Inside the block: a transaction that is cancelled while it begins has begun
                    # nevertheless.
                    await self._writer.execute("begin immediate")
                    # Noted only here: until now another process may have been the writer.
                    started = self._clock.monotonic()
                    tx = self._transaction(self._writer, verb)
                    tx.rules = self._rules
                    tx.waited_seconds = started - requested
                    yield tx
                    self._fault(verb, "commit")
                    await self._writer.execute("commit")
                except BaseException:
                    await self._writer.roll_back()
                    raise
                self._fault(verb, "committed")
                self._observe(verb, self._clock.monotonic() - started, started - requested)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Transaction]:
        connection = await self._readers.get()
        try:
            with _mapped_errors():
                try:
                    await connection.execute("begin")
                    yield self._transaction(connection, "read")
                finally:
                    await connection.roll_back()
        finally:
            self._readers.put_nowait(connection)

    def _transaction(self, connection: _Connection, verb: str) -> _SqliteTransaction:
        return _SqliteTransaction(connection, self.queries, self.names, verb, self._fault)

    async def fetch(self, query: str, params: Mapping[str, Any] | None = None) -> list[Row]:
        async with self.reading() as tx:
            return await tx.fetch(query, params)

    async def listen(self, channel: str, heard: Callable[[str], None]) -> None:
        """SQLite gives no notices: workers watch the file for commits, other callers poll."""
        if channel != WORK_CHANNEL:
            await asyncio.Event().wait()
        loop, stopped = asyncio.get_running_loop(), threading.Event()

        def tell() -> None:
            with suppress(RuntimeError):  # the loop has just ended
                loop.call_soon_threadsafe(heard, "")

        watching = asyncio.to_thread(_watch, self._path, stopped, tell)
        try:
            await watching
        finally:
            stopped.set()

    def is_passing(self, error: Exception) -> bool:
        """Whether the error is the file's or another process's, not the statement's."""
        return isinstance(error, sqlite3.OperationalError) and "locked" in str(error)

    async def close(self) -> None:
        for connection in self._all:
            await connection.close()


def _watch(path: Path, stopped: threading.Event, tell: Callable[[], None]) -> None:
    """Reads the number that changes with the commits of other connections. It costs 10 µs."""
    with _mapped_errors(), closing(sqlite3.connect(path, timeout=_BUSY_SECONDS)) as connection:
        seen = None
        while not stopped.wait(_WATCH_SECONDS):
            version = connection.execute("pragma data_version").fetchone()[0]
            if seen not in (None, version):
                tell()
            seen = version


class _Connection:
    """A connection and the only thread that touches it."""

    def __init__(self, path: Path, *, query_only: bool = False) -> None:
        self._path = path
        self._query_only = query_only
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sqlite")
        self._database: sqlite3.Connection | None = None
        self._steps = 0  # beginnings and ends of statements
        self._was_idle = False  # whether the transaction was rolled back because of that
        self._closed = threading.Event()

    async def open(self) -> None:
        await self.call(self._open)
        if not self._query_only:
            threading.Thread(target=self._end_idle, name="sqlite idle", daemon=True).start()

    def _end_idle(self) -> None:
        steps, idle_seconds = 0, 0
        while not self._closed.wait(1.0):
            idle_seconds = idle_seconds + 1 if steps == self._steps else 0
            steps = self._steps
            if idle_seconds == _IDLE_SECONDS:
                with suppress(RuntimeError):  # it is being closed
                    self._thread.submit(self._roll_back_idle, steps)

    def _roll_back_idle(self, steps: int) -> None:
        if self._database is not None and self._database.in_transaction and steps == self._steps:
            self._database.rollback()
            self._was_idle = True

    def _open(self, _: Any) -> None:
        if not self._path.exists():
            raise DatabaseGone(f"{self._path} does not exist")
        self._database = sqlite3.connect(
            self._path, timeout=_BUSY_SECONDS, isolation_level=None, cached_statements=256
        )
        self._database.row_factory = sqlite3.Row
        for pragma in ("journal_mode = wal", "synchronous = full", "cache_size = -32768"):
            self._database.execute(f"pragma {pragma}")
        if self._query_only:
            self._database.execute("pragma query_only = on")

    async def call(self, action: Callable[[sqlite3.Connection], T]) -> T:
        return await self._in_thread(partial(self._step, action))

    def _step(self, action: Callable[[sqlite3.Connection], T]) -> T:
        if self._was_idle:
            raise Conflict(f"the transaction was rolled back: idle for {_IDLE_SECONDS} s")
        self._steps += 1
        try:
            return action(self._database)  # type: ignore[arg-type]
        finally:
            self._steps += 1

    async def _in_thread(self, action: Callable[[], T]) -> T:
        future = self._thread.submit(action)
        waiting = asyncio.wrap_future(future)
        try:
            return await asyncio.shield(waiting)
        except asyncio.CancelledError:
            # The statement runs to its end before the connection is used again.
            await asyncio.wait([waiting])
            raise

    async def execute(self, sql: str, params: Any = ()) -> list[Row]:
        return await self.call(lambda database: database.execute(sql, params).fetchall())

    async def roll_back(self) -> None:
        await self._in_thread(self._roll_back)

    def _roll_back(self) -> None:
        self._was_idle = False
        if self._database is not None:
            self._database.rollback()

    async def close(self) -> None:
        self._closed.set()
        if self._database is not None:
            await self.call(lambda database: database.close())
        self._thread.shutdown()


class _SqliteTransaction:
    writes_together = False

    def __init__(
        self, connection: _Connection, queries: Queries, names: Names, verb: str, fault: Fault
    ) -> None:
        self.rules = NO_RULES
        self.waited_seconds = 0.0
        self.after: list[Callable[[], None]] = []
        self._connection = connection
        self._queries = queries
        self._names = names
        self._verb = verb
        self._fault = fault

    async def fetch(self, query: str, params: Mapping[str, Any] | None = None) -> list[Row]:
        compiled = self._queries.get(query) or compile_query("sqlite", query)
        return await self._connection.execute(compiled.sql, named_arguments(compiled, params))

    async def scan(self, query: str, params: Mapping[str, Any]) -> Sequence[Values]:
        compiled = self._queries[query]
        arguments = named_arguments(compiled, params)

        def scan(database: sqlite3.Connection) -> list[Values]:
            cursor = database.cursor()
            cursor.row_factory = None
            return cursor.execute(compiled.sql, arguments).fetchall()

        return await self._connection.call(scan)

    async def take(self, query: str, params: Mapping[str, Any]) -> list[Row]:
        self._fault(self._verb, query)
        return await self.fetch(query, params)

    async def run(self, query: str, params: Mapping[str, Any]) -> None:
        await self.take(query, params)

    async def run_many(self, query: str, rows: Sequence[Values]) -> None:
        self._fault(self._verb, query)
        sql = self._queries[query].sql
        await self._connection.call(lambda database: database.executemany(sql, rows))

    async def take_many(self, query: str, rows: Batch) -> list[Row]:
        self._fault(self._verb, query)
        if not rows:
            return []
        compiled = self._queries[query]
        sql = compiled.sql
        if compiled.columns:
            batch = orjson.dumps(compiled.in_order(rows)).decode()
            return await self._connection.execute(sql, {"batch": batch})

        def take(database: sqlite3.Connection) -> list[Row]:
            return [written for row in rows for written in database.execute(sql, row).fetchall()]

        return await self._connection.call(take)

    async def copy(self, table: str, columns: Sequence[str], rows: Iterable[Values]) -> None:
        self._fault(self._verb, f"copy {table}")
        marks = ", ".join("?" * len(columns))
        whole = self._names.whole("sqlite", table)
        sql = f"insert into {whole} ({', '.join(columns)}) values ({marks})"
        await self._connection.call(lambda database: database.executemany(sql, rows))

    async def execute(self, sql: str, params: Mapping[str, Any] | None = None) -> None:
        await self.fetch(sql, params)

    async def execute_many(self, sql: str, rows: Sequence[Mapping[str, Any]]) -> None:
        compiled = compile_query("sqlite", sql)
        arguments = [named_arguments(compiled, row) for row in rows]
        await self._connection.call(lambda database: database.executemany(compiled.sql, arguments))

    async def send(self, exchange: str, routing_key: str, body: Any, **options: Any) -> str:
        return await send_message(self, exchange, routing_key, body, **options)

    def after_commit(self, call: Callable[[], None]) -> None:
        self.after.append(call)


def named_arguments(query: Query, params: Mapping[str, Any] | None) -> dict[str, Any]:
    if not params:
        return {}
    return {name: _argument(params[name]) for name in query.parameters}


def _argument(value: Any) -> Any:
    if isinstance(value, list):
        return orjson.dumps(value).decode()
    return instant_text(value) if isinstance(value, datetime) else value


class _mapped_errors:
    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if not isinstance(error, sqlite3.DatabaseError):
            return
        code = getattr(error, "sqlite_errorcode", None)
        if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
            raise UserError(
                f"the database file is damaged or not a database: {error}",
                "Restore it from a backup, or point HOLDFAST_DATABASE_URL at another file.",
            ) from error
        if code is not None and code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise Conflict(str(error)) from error
        if code == sqlite3.SQLITE_FULL:
            raise UserError(
                "the disk is full; nothing was written",
                "Free some space, then run the same command again to continue.",
            ) from error
        if code is not None and code & 0xFF in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR):
            raise DatabaseGone(str(error)) from error
