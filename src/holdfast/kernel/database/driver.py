"""Defines what the store needs of a database: transactions that run named queries in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from holdfast.kernel.database.names import Names
from holdfast.kernel.database.queries import Query
from holdfast.kernel.jobs.admission import JobRules
from holdfast.pipeline import Row as Row

Queries = Mapping[str, Query]

#: What a batch writes: the values of one row in the query's order.
Values = Sequence[Any]
#: Rows of a batch, all in order or all by name.
Batch = Sequence[Values] | Sequence[Mapping[str, Any]]


#: Called as (verb, query) before each write and around each commit. Tests kill the process there.
Fault = Callable[[str, str], None]

#: Called as (verb, seconds, seconds waited for a connection) after each transaction.
Observe = Callable[[str, float, float], None]


#: The channel on which processes announce that a job has new items; the payload is its number.
WORK_CHANNEL = "holdfast_work"


class Conflict(Exception):
    """Another transaction was in the way (deadlock, serialization, busy): run it again."""


class Transaction(Protocol):
    """One transaction. `run`, `run_many`, `take` and `copy` write; `fetch` and `scan` read."""

    rules: JobRules  # rules for new jobs
    waited_seconds: float  # how long it waited for a connection before it began
    after: list[Callable[[], None]]  # calls to make once it is committed
    writes_together: bool  # whether one statement can write several tables

    async def fetch(self, query: str, params: Mapping[str, Any] | None = None) -> list[Row]: ...

    async def scan(self, query: str, params: Mapping[str, Any]) -> Sequence[Values]:
        """Reads many rows, by position only: SQLite makes rows without names a quarter faster."""
        ...

    async def take(self, query: str, params: Mapping[str, Any]) -> list[Row]:
        """Writes and returns rows."""
        ...

    async def run(self, query: str, params: Mapping[str, Any]) -> None: ...

    async def run_many(self, query: str, rows: Sequence[Values]) -> None:
        """Writes a batch with one statement; the rows' values are in the query's order."""
        ...

    async def take_many(self, query: str, rows: Batch) -> list[Row]:
        """Writes a batch, as `run_many`, and returns rows. For a query with `@rows`, a row may be
        given by name."""
        ...

    async def copy(self, table: str, columns: Sequence[str], rows: Iterable[Values]) -> None: ...

    async def execute(self, sql: str, params: Mapping[str, Any] | None = None) -> None: ...

    async def execute_many(self, sql: str, rows: Sequence[Mapping[str, Any]]) -> None: ...

    async def send(self, exchange: str, routing_key: str, body: Any, **options: Any) -> str:
        """Sends a message; see sending.py."""
        ...

    def after_commit(self, call: Callable[[], None]) -> None:
        """Calls it once the transaction is committed; not if it is rolled back or run again."""
        ...


class Driver(Protocol):
    dialect: str
    queries: Queries
    names: Names

    def transaction(
        self, verb: str, *, relaxed: bool = False
    ) -> AbstractAsyncContextManager[Transaction]:
        """Opens a writing transaction.

        `relaxed` may lose its commit in a crash of the database, never its consistency: enough for
        a lease."""
        ...

    def reading(self) -> AbstractAsyncContextManager[Transaction]:
        """Opens a snapshot for reads."""
        ...

    async def fetch(self, query: str, params: Mapping[str, Any] | None = None) -> list[Row]:
        """Runs one query, which is a snapshot by itself."""
        ...

    async def listen(self, channel: str, heard: Callable[[str], None]) -> None:
        """Calls `heard` with what another process said on the channel; "" means anything.

        It ends only by an error; callers that rely on notices poll too."""
        ...

    def is_passing(self, error: Exception) -> bool:
        """Whether the error may go away after a wait: the statement itself was not at fault."""
        ...

    async def close(self) -> None: ...


def no_fault(verb: str, query: str) -> None:
    """Does nothing: the fault hook of every process that is not under test."""


def no_observe(verb: str, seconds: float, waited: float) -> None:
    """Does nothing: for stores whose latency is not measured."""
