"""Pipelines that break the rules: each row says which one, the others are innocent."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from deeds import witness

from holdfast import Dedupe, Failed, Gate, NotFound, Page, Pipeline, Record, Retry, pipeline
from holdfast.errors import ItemError
from holdfast.model import ItemStatus
from holdfast.pipeline import Context, Settled, Tx

SLOW = os.environ.get("CHAOS_SLOW", "")


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise ValueError("an exception that cannot be told")


class Abrupt(BaseException):
    pass


UNRULY: dict[str, Callable[[], BaseException]] = {
    "cancelled": asyncio.CancelledError,
    "unspeakable": Unspeakable,
    "base-exception": Abrupt,
    "generator-exit": GeneratorExit,
    "stop-iteration": StopIteration,
    "exit-0": lambda: SystemExit(0),
    "exit-3": lambda: SystemExit(3),
    "interrupt": KeyboardInterrupt,
    "retry-text": lambda: Retry(after="60"),  # type: ignore[arg-type]
    "retry-nan": lambda: Retry(after=float("nan")),
    "retry-ages": lambda: Retry(after=1e15),
    "failed-number": lambda: Failed(404, "nope"),  # type: ignore[arg-type]
    "bad-code": lambda: ItemError("BAD\0CODE", None),  # type: ignore[arg-type]
}


async def swallow() -> None:
    """Does not stop when asked to, however often."""
    while True:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)


def misbehave(deed: str) -> Any:
    name, _, value = deed.partition(":")
    match name:
        case "raise":
            raise UNRULY[value]()
        case "return":
            return UNRULY[value]()
        case "die":
            os._exit(int(value))
        case "miss":
            raise NotFound
        case _:
            return {"did": deed}


@pipeline(timeout=55)
async def unruly(row: dict[str, Any], ctx: Context) -> Any:
    witness(ctx.seq)
    if row["do"].startswith("sleep:"):
        await asyncio.sleep(float(row["do"].partition(":")[2]))
    return misbehave(row["do"])


@pipeline(timeout=55)
def unruly_thread(row: dict[str, Any], ctx: Context) -> Any:
    witness(ctx.seq)
    return misbehave(row["do"])


@pipeline(timeout=1)
async def deaf(row: dict[str, Any], ctx: Context) -> Any:
    if row["do"] == "swallow":
        await swallow()
    return misbehave(row["do"])


@pipeline(gates=[Gate("narrow", concurrency=1)])
async def narrow(row: dict[str, Any], ctx: Context) -> Any:
    async with ctx.gate("narrow"):
        await asyncio.sleep(0.05)
    return misbehave(row["do"])


class Keeper(Pipeline):
    """Its `save` hides from the transaction that a statement of it was refused."""

    schema = (
        "create table if not exists kept (name text primary key)",
        "insert into kept (name) values ('taken') on conflict do nothing",
    )

    async def process(self, row: dict[str, Any], ctx: Context) -> Any:
        return {"name": row["do"] or f"item {ctx.seq}"}

    async def save(self, tx: Tx, settled: Sequence[Settled]) -> None:
        for one in settled:
            with suppress(Exception):
                await tx.execute("insert into kept (name) values (:name)", one.result or {})


class Fussy(Pipeline):
    """Its `save` takes only what was found."""

    max_attempts_not_found = 1

    async def process(self, row: dict[str, Any], ctx: Context) -> Any:
        witness(ctx.seq)
        return misbehave(row["do"])

    async def save(self, tx: Tx, settled: Sequence[Settled]) -> None:
        if any(one.status is ItemStatus.NOT_FOUND for one in settled):
            raise ValueError("nothing to save")


class SlowlyKeyed(Pipeline):
    """A file of it is taken in at a thousand rows a second at most, while CHAOS_SLOW exists."""

    dedupe = Dedupe("slowly")

    def key(self, row: dict[str, Any]) -> str:
        if os.path.exists(SLOW):
            time.sleep(0.001)
        return str(row["n"])

    async def process(self, row: dict[str, Any], ctx: Context) -> Any:
        return misbehave(row["do"])


class Finding(Pipeline):
    """Two pages of ten records; the witness sees each fetch of one, under its number."""

    async def discover(self, source: str, cursor: Any, ctx: Context) -> AsyncIterator[Page]:
        for page in range(cursor or 1, 3):
            witness(page)
            await self.fetch(page)
            records = [Record({"do": f"{page}-{number}"}) for number in range(10)]
            yield Page(records, next_cursor=page + 1, end=page == 2)

    async def fetch(self, page: int) -> None:
        """As long as the page takes; the plain source answers at once."""

    async def process(self, row: dict[str, Any], ctx: Context) -> Any:
        return misbehave(row["do"])


class FindingSlowly(Finding):
    async def fetch(self, page: int) -> None:
        await asyncio.sleep(2 if page == 1 else 0)


class FindingCancelled(Finding):
    async def fetch(self, page: int) -> None:
        if page == 2:
            raise asyncio.CancelledError


class FindingNothing(Finding):
    def sources(self, options: Mapping[str, Any]) -> Sequence[str]:
        raise KeyError("region")
