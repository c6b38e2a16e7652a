"""Holdfast: `aenqueue`, one transaction for each record."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

import holdfast
from bench.arrivals import notes
from holdfast import pipeline

DSN = os.environ.get("BENCH_DSN", "")


@pipeline(standing=True, columns=["number"])  # type: ignore[untyped-decorator]
async def arrivals(row: dict[str, Any], ctx: Any) -> dict[str, Any]:
    notes.begun(row["number"])
    return {"number": row["number"]}


@asynccontextmanager
async def producing() -> AsyncIterator[Callable[[int], Awaitable[None]]]:
    connection = await asyncpg.connect(DSN)

    async def add(number: int) -> None:
        rows = [{"number": number, "note": "x" * 80}]
        await holdfast.aenqueue(connection, "arrivals", rows, own_transaction=True)

    yield add
    await connection.close()


def install() -> None:
    """`holdfast open` has done it."""
