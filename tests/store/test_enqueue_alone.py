"""Records from applications in a transaction of their own."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from typing import Any

import asyncpg
import orjson
import psycopg
import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

import holdfast
from holdfast.errors import NotThere, SchemaError, UserError
from holdfast.kernel import NewJob, NewStream, Store, open_store
from tests.store.checks import assert_sound, execute, items_of

STANDING = NewJob("events", "events", [NewStream("rows {job}", "v1")], standing=True)


def _path(url: str) -> str:
    return url.removeprefix("sqlite:///")


@asynccontextmanager
async def _sqlite(url: str) -> AsyncIterator[list[Any]]:
    engine = sqlalchemy.create_engine(url)
    with (
        closing(sqlite3.connect(_path(url))) as plain,
        closing(sqlite3.connect(_path(url), isolation_level=None)) as by_itself,
        engine.connect() as connection,
        Session(engine) as session,
    ):
        yield [plain, by_itself, connection, session]
    engine.dispose()


@asynccontextmanager
async def _postgres(url: str) -> AsyncIterator[list[Any]]:
    engine = sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    async_engine = create_async_engine(url.replace("postgresql:", "postgresql+asyncpg:"))
    bare = await asyncpg.connect(url)
    with (
        psycopg.connect(url) as plain,
        psycopg.connect(url, autocommit=True) as by_itself,
        engine.connect() as connection,
        Session(engine) as session,
    ):
        async with (
            await psycopg.AsyncConnection.connect(url, autocommit=True) as asynchronous,
            AsyncSession(async_engine) as async_session,
        ):
            yield [plain, by_itself, bare, asynchronous, connection, session, async_session]
    await bare.close()
    engine.dispose()
    await async_engine.dispose()


def connections(store: Store, url: str) -> Any:
    return {"sqlite": _sqlite, "postgres": _postgres}[store.database.driver.dialect](url)


async def _enqueue(connection: Any, rows: list[dict[str, Any]], **options: Any) -> Any:
    try:
        return holdfast.enqueue(connection, "events", rows, own_transaction=True, **options)
    except UserError as error:
        if "is async" not in str(error):
            raise
    return await holdfast.aenqueue(connection, "events", rows, own_transaction=True, **options)


async def test_records_are_committed_before_the_call_returns(
    store: Store, database_url: str
) -> None:
    job_id, _ = await store.jobs.open(STANDING, "ada")
    expected: list[dict[str, Any]] = []
    async with connections(store, database_url) as open_connections:
        for number, connection in enumerate(open_connections):
            rows = [{"connection": number, "n": n} for n in range(3)]
            assert await _enqueue(connection, rows) == (job_id, 3, 0)
            keyed = [{"key": str(number)}]
            assert await _enqueue(connection, keyed, key="key") == (job_id, 1, 0)
            assert await _enqueue(connection, keyed, key="key") == (job_id, 0, 1)
            expected += rows + keyed
            items = await items_of(store, job_id)  # of another connection
            assert [orjson.loads(item.input) for item in items] == expected
        await assert_sound(store, job_id)


async def test_nothing_is_left_behind_by_a_failure(store: Store, database_url: str) -> None:
    async with connections(store, database_url) as open_connections:
        for connection in open_connections:
            for options in ({}, {"key": "n"}):
                with pytest.raises(NotThere, match="no standing job"):
                    await _enqueue(connection, [{"n": 1}], **options)
        job_id, _ = await store.jobs.open(STANDING, "ada")
        for connection in open_connections:
            assert await _enqueue(connection, [{"n": 1}]) == (job_id, 1, 0)


async def test_a_transaction_of_the_application_is_not_committed(
    store: Store, database_url: str
) -> None:
    job_id, _ = await store.jobs.open(STANDING, "ada")
    async with connections(store, database_url) as open_connections:
        first = open_connections[0]
        holdfast.enqueue(first, "events", [{"n": 1}])
        with pytest.raises(UserError, match="is in a transaction"):
            holdfast.enqueue(first, "events", [{"n": 2}], own_transaction=True)
        first.rollback()
    assert await items_of(store, job_id) == []


async def test_an_older_schema_is_named_and_how_it_is_upgraded(postgres_url: str) -> None:
    store = await open_store(postgres_url)
    await store.jobs.open(STANDING, "ada")
    await execute(store, "drop function holdfast.enqueue_records_1")
    await execute(store, "alter table holdfast.jobs drop column topic cascade")
    await store.close()
    async with _postgres(postgres_url) as open_connections:
        for connection in open_connections:
            await _assert_asks_for_migration(connection)


async def test_a_database_without_schema_is_named_so(empty_database_url: str) -> None:
    opened = _sqlite if empty_database_url.startswith("sqlite") else _postgres
    async with opened(empty_database_url) as open_connections:
        for connection in open_connections:
            await _assert_asks_for_migration(connection)


async def _assert_asks_for_migration(connection: Any) -> None:
    for options in ({}, {"key": "n"}):
        with pytest.raises(SchemaError, match="schema is older") as refused:
            await _enqueue(connection, [{"n": 1}], **options)
        assert refused.value.hint == "Run: holdfast migrate up"
