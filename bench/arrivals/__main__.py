"""`python -m bench.arrivals install|work PEER`, or `produce PEER RATE SECONDS CONNECTIONS`.

A rate of 0 means as fast as possible. Commits are noted in the file BENCH_COMMITS.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
from contextlib import AsyncExitStack
from importlib import import_module
from types import ModuleType

from bench.arrivals.notes import now


async def produce(peer: ModuleType, rate: float, seconds: float, connections: int) -> None:
    numbers = itertools.count(1)
    committed: list[str] = []
    started = now()

    async def add_all(add: object, lane: int) -> None:
        for turn in itertools.count():
            due = started + (turn * connections + lane) / rate if rate else now()
            if due >= started + seconds:
                return
            await asyncio.sleep(max(0.0, due - now()))
            number = next(numbers)
            await add(number)  # type: ignore[operator]
            committed.append(f"{number} {now()}\n")

    async with AsyncExitStack() as stack:
        adds = [await stack.enter_async_context(peer.producing()) for _ in range(connections)]
        started = now()
        await asyncio.gather(*(add_all(add, lane) for lane, add in enumerate(adds)))
    with open(os.environ["BENCH_COMMITS"], "a") as notes:
        notes.writelines(committed)


def main(verb: str, name: str, *numbers: str) -> None:
    peer = import_module(f"bench.arrivals.{name}")
    if verb == "produce":
        rate, seconds, connections = numbers
        asyncio.run(produce(peer, float(rate), float(seconds), int(connections)))
    else:
        getattr(peer, verb)()


main(*sys.argv[1:])
