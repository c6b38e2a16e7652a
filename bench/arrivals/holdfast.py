"""Holdfast: `aenqueue`, one transaction for each record; `enqueue` on SQLite."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from functools import partial
from typing import Any

import asyncpg

import holdfast
from bench.arrivals import notes
from holdfast import pipeline

DSN = os.environ.get("BENCH_DSN", "")
SQLITE = "sqlite:///"


@pipeline(standing=True, columns=["number"])  # type: ignore[untyped-decorator]
async def arrivals(row: dict[str, Any], ctx: Any) -> dict[str, Any]:
    notes.begun(row["number"])
    return {"number": row["number"]}


@asynccontextmanager
async def producing() -> AsyncIterator[Callable[[int], Awaitable[None]]]:
    if DSN.startswith(SQLITE):
        with closing(sqlite3.connect(DSN.removeprefix(SQLITE), timeout=60)) as file:
            yield partial(_add_to_file, file)
        return
    connection = await asyncpg.connect(DSN)
    yield partial(_add, connection)
    await connection.close()


async def _add(connection: asyncpg.Connection, number: int) -> None:
    await holdfast.aenqueue(connection, "arrivals", [_row(number)], own_transaction=True)


async def _add_to_file(connection: sqlite3.Connection, number: int) -> None:
    holdfast.enqueue(connection, "arrivals", [_row(number)], own_transaction=True)


def _row(number: int) -> dict[str, Any]:
    return {"number": number, "note": "x" * 80}


def install() -> None:
    """Does nothing: `holdfast open` has done it."""
