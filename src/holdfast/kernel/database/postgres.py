"""The PostgreSQL driver: a pool of asyncpg connections, COPY, and translated errors."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from holdfast.clock import Clock
from holdfast.errors import DatabaseGone, UserError
from holdfast.kernel.database.driver import (
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

# Batches always go through the index. The planner cannot know how many outcomes a range has, and
# its guess of a hash join over the whole table costs three quarters of the throughput.
_SESSION = {
    "application_name": "holdfast",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_seqscan": "off",
    "jit": "off",
    # A process that is frozen or cut off in the middle of a transaction must not keep its locks:
    # others could not continue. This is longer than any of our transactions is idle; the relay's
    # waits for the broker.
    "idle_in_transaction_session_timeout": "30s",
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
    # Those are sent only when nothing waits to be acknowledged. Without this limit an answer that
    # never arrives is sent again for a quarter of an hour, and the locks are kept as long.
    "tcp_user_timeout": "25s",
}
#: The same from our side: a process that is cut off knows it after 20 seconds, instead of waiting
#: for an answer until the command's timeout. Systems without such an option wait.
_SOCKET = {
    "TCP_KEEPIDLE": 10,
    "TCP_KEEPINTVL": 5,
    "TCP_KEEPCNT": 2,
    "TCP_USER_TIMEOUT": 20_000,
}
#: Set whatever the default of the server is: a read after a lock must see the current state.
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED;"
_BEGIN_RELAXED = f"{_BEGIN} SET LOCAL synchronous_commit = off;"
_BEGIN_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;"
_CONFLICTS = (
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
    asyncpg.LockNotAvailableError,
)
_GONE = (
    OSError,
    asyncio.TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.InterfaceError,
    asyncpg.OperatorInterventionError,
    asyncpg.TooManyConnectionsError,
    asyncpg.InternalClientError,
)


async def open_postgres(
    url: str,
    queries: Queries,
    names: Names,
    pool_size: int,
    rules: JobRules,
    clock: Clock,
    fault: Fault,
    observe: Observe,
) -> PostgresDriver:
    with mapped_errors():
        pool = await asyncpg.create_pool(
            url,
            min_size=1,
            max_size=pool_size,
            timeout=10,
            command_timeout=300,
            server_settings=_SESSION,
            connection_class=_Connection,
            max_inactive_connection_lifetime=60,
        )
    return PostgresDriver(pool, queries, names, rules, clock, fault, observe)


class _Connection(asyncpg.Connection):  # type: ignore[misc]
    """A connection that notices by itself when the server cannot be reached any more."""

    __slots__ = ()

    def __init__(self, protocol: Any, transport: Any, *rest: Any) -> None:
        super().__init__(protocol, transport, *rest)
        watch_peer(transport.get_extra_info("socket"))

    def get_reset_query(self) -> str:
        """Resets nothing when a connection goes back to the pool, which saves one round trip per
        transaction. Our transactions leave nothing behind: settings are LOCAL, locks end with the
        transaction, and `listen` ends its listening."""
        return ""


def watch_peer(connected: Any) -> None:
    if connected is None or connected.family == getattr(socket, "AF_UNIX", None):
        return
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _SOCKET.items():
        option = getattr(socket, name, None)
        if option is not None:
            connected.setsockopt(socket.IPPROTO_TCP, option, value)


class PostgresDriver:
    dialect = "postgres"

    def __init__(
        self,
        pool: Any,
        queries: Queries,
        names: Names,
        rules: JobRules,
        clock: Clock,
        fault: Fault,
        observe: Observe,
    ) -> None:
        self._pool = pool
        self.queries = queries
        self.names = names
        self._rules = rules
        self._clock = clock
        self._fault = fault
        self._observe = observe

    @asynccontextmanager
    async def transaction(self, verb: str, *, relaxed: bool = False) -> AsyncIterator[Transaction]:
        requested = self._clock.monotonic()
        with mapped_errors():
            async with self._pool.acquire(timeout=30) as connection:
                started = self._clock.monotonic()
                async with _transacting(connection, _BEGIN_RELAXED if relaxed else _BEGIN):
                    tx = self._transaction(connection, verb)
                    tx.rules = self._rules
                    tx.waited_seconds = started - requested
                    yield tx
                    self._fault(verb, "commit")
                self._fault(verb, "committed")
                self._observe(verb, self._clock.monotonic() - started, started - requested)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Transaction]:
        with mapped_errors():
            async with (
                self._pool.acquire(timeout=30) as connection,
                _transacting(connection, _BEGIN_READING),
            ):
                yield self._transaction(connection, "read")

    def _transaction(self, connection: Any, verb: str) -> _PostgresTransaction:
        return _PostgresTransaction(connection, self.queries, self.names, verb, self._fault)

    async def fetch(self, query: str, params: Mapping[str, Any] | None = None) -> list[Row]:
        # Without begin and commit, which would double the round trips.
        with mapped_errors():
            async with self._pool.acquire(timeout=30) as connection:
                return await self._transaction(connection, "read").fetch(query, params)

    async def listen(self, channel: str, heard: Callable[[str], None]) -> None:
        """Calls `heard` at each notice on the channel, until the connection is lost."""
        lost = asyncio.Event()
        with mapped_errors():
            async with self._pool.acquire(timeout=30) as connection:

                def notified(_connection: Any, _pid: int, _channel: str, payload: str) -> None:
                    heard(payload)

                def ended(_: Any) -> None:
                    lost.set()

                connection.add_termination_listener(ended)
                await connection.add_listener(channel, notified)
                try:
                    await lost.wait()
                    raise DatabaseGone("the connection that listens was closed")
                finally:
                    connection.remove_termination_listener(ended)
                    if not connection.is_closed():
                        await connection.remove_listener(channel, notified)

    def is_passing(self, error: Exception) -> bool:
        """Whether the error is the connection's or another transaction's, not the statement's."""
        return isinstance(error, (*_CONFLICTS, *_GONE)) and not isinstance(error, OSError)

    async def close(self) -> None:
        try:
            await asyncio.wait_for(self._pool.close(), 2)
        except (TimeoutError, *_GONE):
            self._pool.terminate()


class _PostgresTransaction:
    writes_together = True

    def __init__(
        self, connection: Any, queries: Queries, names: Names, verb: str, fault: Fault
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
        return await self._fetch(self._query(query), params)

    async def scan(self, query: str, params: Mapping[str, Any]) -> Sequence[Values]:
        return await self.fetch(query, params)

    async def take(self, query: str, params: Mapping[str, Any]) -> list[Row]:
        self._fault(self._verb, query)
        return await self._fetch(self._queries[query], params)

    async def run(self, query: str, params: Mapping[str, Any]) -> None:
        self._fault(self._verb, query)
        compiled = self._queries[query]
        await self._connection.execute(compiled.sql, *_arguments(compiled, params))

    async def run_many(self, query: str, rows: Sequence[Values]) -> None:
        self._fault(self._verb, query)
        if rows:
            await self._connection.execute(self._queries[query].sql, *zip(*rows, strict=True))

    async def take_many(self, query: str, rows: Batch) -> list[Row]:
        self._fault(self._verb, query)
        if not rows:
            return []
        compiled = self._queries[query]
        columns = zip(*compiled.in_order(rows), strict=True)
        written: list[Row] = await self._connection.fetch(compiled.sql, *columns)
        return written

    async def copy(self, table: str, columns: Sequence[str], rows: Iterable[Values]) -> None:
        self._fault(self._verb, f"copy {table}")
        await self._connection.copy_records_to_table(
            table,
            records=rows,
            columns=list(columns),
            schema_name=self._names.schema_of(table),
        )

    async def execute(self, sql: str, params: Mapping[str, Any] | None = None) -> None:
        compiled = compile_query("postgres", sql)
        await self._connection.execute(compiled.sql, *_arguments(compiled, params))

    async def execute_many(self, sql: str, rows: Sequence[Mapping[str, Any]]) -> None:
        compiled = compile_query("postgres", sql)
        await self._connection.executemany(
            compiled.sql, [_arguments(compiled, row) for row in rows]
        )

    def _query(self, query: str) -> Query:
        return self._queries.get(query) or compile_query("postgres", query)

    async def _fetch(self, query: Query, params: Mapping[str, Any] | None) -> list[Row]:
        rows: list[Row] = await self._connection.fetch(query.sql, *_arguments(query, params))
        return rows

    async def send(self, exchange: str, routing_key: str, body: Any, **options: Any) -> str:
        return await send_message(self, exchange, routing_key, body, **options)

    def after_commit(self, call: Callable[[], None]) -> None:
        self.after.append(call)


def _arguments(query: Query, params: Mapping[str, Any] | None) -> list[Any]:
    return [params[name] for name in query.parameters] if params else []


@asynccontextmanager
async def _transacting(connection: Any, begin: str) -> AsyncIterator[None]:
    """Runs a transaction without asyncpg's own, which cannot be rolled back if it is cancelled
    while it begins or commits: the pool would find it open."""
    try:
        await connection.execute(begin)
        yield
        if await connection.execute("COMMIT;") != "COMMIT":
            # The server's answer after an error that was swallowed, for example in a `save`.
            raise asyncpg.InFailedSQLTransactionError(
                "a statement failed, so the whole transaction was rolled back"
            )
    except BaseException:
        await _roll_back(connection)
        raise


async def _roll_back(connection: Any) -> None:
    try:
        await connection.execute("ROLLBACK;")
    except BaseException as error:
        connection.terminate()
        if not isinstance(error, (*_GONE, asyncpg.PostgresError)):
            raise


class mapped_errors:
    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, _CONFLICTS):
            raise Conflict(str(error)) from error
        if isinstance(error, asyncpg.DiskFullError):
            raise UserError(
                "the database's disk is full; nothing was written",
                "Free some space, then run the same command again to continue.",
            ) from error
        if isinstance(error, asyncpg.InsufficientPrivilegeError):
            raise UserError(
                f"the database's role may not do this: {error}",
                "Use the role that ran `holdfast migrate up`, or grant this one its rights.",
            ) from error
        if isinstance(error, asyncpg.ReadOnlySQLTransactionError):
            raise UserError(
                f"the database takes no changes: {error}",
                "Connect to the primary server, and check default_transaction_read_only of the "
                "role and the database.",
            ) from error
        if isinstance(error, asyncpg.InvalidAuthorizationSpecificationError):
            raise UserError(
                str(error),
                "Correct the user and password in HOLDFAST_DATABASE_URL, or allow this host "
                "(pg_hba.conf).",
            ) from error
        if isinstance(error, asyncpg.ClientConfigurationError):
            message = str(error).partition("\n")[0]
            raise UserError(message, "Fix HOLDFAST_DATABASE_URL.") from error
        if isinstance(error, ssl.SSLCertVerificationError):
            raise UserError(
                f"the certificate of the database is not trusted: {error.verify_message}",
                "Add sslrootcert=FILE with the authority's certificate to HOLDFAST_DATABASE_URL.",
            ) from error
        if isinstance(error, asyncpg.InvalidCatalogNameError):
            raise UserError(str(error), "Create it with: createdb NAME") from error
        if isinstance(error, _GONE):
            raise DatabaseGone(str(error) or type(error).__name__) from error
