"""Procrastinate: `defer`, one transaction for each job."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import procrastinate

from bench.arrivals import notes

app = procrastinate.App(
    connector=procrastinate.PsycopgConnector(
        conninfo=os.environ["BENCH_DSN"], min_size=2, max_size=20
    )
)


@app.task(name="arrive")
async def arrive(number: int, note: str) -> None:
    notes.begun(number)


def install() -> None:
    async def apply() -> None:
        async with app.open_async():
            await app.schema_manager.apply_schema_async()

    asyncio.run(apply())


def work() -> None:
    async def main() -> None:
        async with app.open_async():
            await app.run_worker_async(concurrency=64)

    asyncio.run(main())


@asynccontextmanager
async def producing() -> AsyncIterator[Callable[[int], Awaitable[None]]]:
    async def add(number: int) -> None:
        await arrive.defer_async(number=number, note="x" * 80)

    async with app.open_async():
        yield add
