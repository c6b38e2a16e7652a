"""An application that has the client and drivers, and no Holdfast. Run as a program, it adds the
records 1 to N through each library, prints what was said, and rolls one more back."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import sqlite3
import sys
from collections.abc import Callable, Iterator
from typing import Any

import asyncpg
import psycopg
import sqlalchemy
from sqlalchemy.ext.asyncio import create_async_engine

from holdfast_client import NotThere, aenqueue, enqueue


def add_with_sqlite3(url: str, rows: list[Any], **options: Any) -> Any:
    path = url.removeprefix("sqlite:///")
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        return enqueue(connection, "events", rows, **options)


def add_with_psycopg(url: str, rows: list[Any], **options: Any) -> Any:
    with psycopg.connect(url) as connection:
        return enqueue(connection, "events", rows, **options)


def add_with_sqlalchemy(url: str, rows: list[Any], **options: Any) -> Any:
    engine = sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        return enqueue(connection, "events", rows, **options)


def add_with_asyncpg(url: str, rows: list[Any], **options: Any) -> Any:
    async def add() -> Any:
        connection = await asyncpg.connect(url)
        async with connection.transaction():
            added = await aenqueue(connection, "events", rows, **options)
        await connection.close()
        return added

    return asyncio.run(add())


def add_with_async_sqlalchemy(url: str, rows: list[Any], **options: Any) -> Any:
    async def add() -> Any:
        engine = create_async_engine(url.replace("postgresql:", "postgresql+asyncpg:"))
        async with engine.begin() as connection:
            added = await aenqueue(connection, "events", rows, **options)
        await engine.dispose()
        return added

    return asyncio.run(add())


LIBRARIES: dict[str, list[Callable[..., Any]]] = {
    "sqlite": [add_with_sqlite3, add_with_sqlalchemy],
    "postgresql": [
        add_with_psycopg,
        add_with_sqlalchemy,
        add_with_asyncpg,
        add_with_async_sqlalchemy,
    ],
}


def added(url: str) -> Iterator[list[int]]:
    """The job, and how many records were accepted and known, for each call."""
    for number, add in enumerate(LIBRARIES[url.partition(":")[0]], 1):
        yield list(add(url, [{"id": number}, {"id": number}]))
        yield list(add(url, [{"id": number}, {"id": number}], key="id"))
        try:
            add(url, [{"id": number}], owner="nobody")
        except NotThere as error:
            assert "standing job" in str(error)
        else:
            raise AssertionError("there is a standing job of nobody")


if __name__ == "__main__":
    assert importlib.util.find_spec("holdfast") is None
    print(json.dumps(list(added(sys.argv[1]))))
