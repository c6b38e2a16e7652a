"""The pipelines of the failure tests: what an item does is in its own row.

An item writes its number and its process into the file CHAOS_WITNESS before it does anything, so
that a test sees what was started, however it ended. What `save` wrote is in the table `saved`,
which takes the same item twice if it is settled twice.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from holdfast import Failed, NotFound, Retry, Skip, pipeline
from holdfast.errors import ItemError
from holdfast.pipeline import Context, Pipeline, Settled, Tx

WITNESS = os.environ.get("CHAOS_WITNESS")
MENDED = os.environ.get("CHAOS_MENDED")


def witness(seq: int) -> None:
    if WITNESS:
        line = f"{seq} {os.getpid()}\n".encode()
        target = os.open(WITNESS, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(target, line)
        os.close(target)


def block_once(flag: Path) -> None:
    """The first that comes here keeps its process from doing anything else until the test lets it
    go on."""
    try:
        flag.touch(exist_ok=False)
    except FileExistsError:
        return
    while not flag.with_suffix(".go").exists():
        time.sleep(0.02)


async def act(deed: str, attempt: int) -> None:
    name, _, value = deed.partition(":")
    match name:
        case "kill" if not MENDED:
            os.kill(os.getpid(), signal.SIGKILL)
        case "sleep":
            await asyncio.sleep(float(value))
        case "await":
            while not Path(value).exists():
                await asyncio.sleep(0.02)
        case "block":
            time.sleep(float(value))
        case "block_once":
            block_once(Path(value))
        case "fail":
            raise Failed("VALIDATION_ERROR", "as its row says")
        case "miss":
            raise NotFound
        case "skip":
            raise Skip("as its row says")
        case "hiccup" if attempt <= int(value):
            raise ItemError("NETWORK_ERROR", "the first tries fail")
        case "again" if attempt <= int(value):
            raise Retry(after=0.01)


@pipeline(columns=["n", "pid"], max_attempts_not_found=1)
async def deeds(row: dict[str, Any], ctx: Context) -> dict[str, Any]:
    witness(ctx.seq)
    await act(row["do"], ctx.attempt)
    return {"n": row["n"], "pid": os.getpid()}


class Saving(Pipeline):
    """As `deeds`, with a row of its own for each item, in the settling transaction."""

    columns = ("n", "pid")
    schema = ("create table if not exists saved (seq bigint, pid bigint)",)
    max_attempts_not_found = 1

    async def process(self, row: dict[str, Any], ctx: Context) -> dict[str, Any]:
        witness(ctx.seq)
        await act(row["do"], ctx.attempt)
        return {"n": row["n"], "pid": os.getpid()}

    async def save(self, tx: Tx, settled: Sequence[Settled]) -> None:
        rows = [{"seq": one.seq, "pid": (one.result or {}).get("pid", 0)} for one in settled]
        await tx.execute_many("insert into saved (seq, pid) values (:seq, :pid)", rows)
