"""Time from the commit of a job to the start of its work, on fleets that have nothing else to do.

Jobs of one item each are committed one after the other, to the fleets in turn. The clock starts
when the ingest asks for its commit, so that the commit itself is counted, and stops in the first
line of the item.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from bench.fleet_runs import Fleet
from bench.measure import ROOT, RunFailed
from holdfast.kernel import NewJob, NewStream, Store, open_store
from holdfast.kernel.record.ingest import IngestPage

NOTING = ROOT / "bench" / "noting.py"
WARM_UP = 3
GAP_SECONDS = (0.75, 1.0)
PATIENCE_SECONDS = 30.0


@dataclass(slots=True)
class _Desk:
    """Commits jobs for one fleet, and collects their results."""

    store: Store
    committed_at: dict[str, float]
    notes: Path
    seconds: list[float] = field(default_factory=list)

    async def commit(self, number: int) -> None:
        stream = NewStream("upload-{job}", str(number))
        job_id = await self.store.jobs.create(NewJob("noting", "one item", [stream]), "bench")
        lease = await self.store.ingest.lease_stream(job_id, "bench")
        if lease is None:
            raise RunFailed(f"the stream of job {job_id} is not to be had")
        item = orjson.dumps({"number": number}).decode()
        page = IngestPage(items=[], next_cursor=None, end=True, inputs=[item])
        await self.store.ingest.ingest(lease, page, "bench")

    async def begun_at(self, number: int) -> float:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            lines = self.notes.read_text().splitlines()
            if lines and lines[-1].startswith(f"{number} "):
                return float(lines[-1].split()[1])
            await asyncio.sleep(0.005)
        raise RunFailed(f"job {number} was not begun within {PATIENCE_SECONDS:.0f} s")

    async def measure(self, number: int) -> float:
        await self.commit(number)
        return await self.begun_at(number) - self.committed_at["ingest"]


def measured(fleets: Mapping[str, Fleet], jobs: int, seed: int = 1) -> dict[str, list[float]]:
    """Returns the seconds to the start of each of this many jobs, by the fleet's name, sorted."""
    return asyncio.run(_measured(fleets, jobs, random.Random(seed)))


async def _measured(
    fleets: Mapping[str, Fleet], jobs: int, chance: random.Random
) -> dict[str, list[float]]:
    async with AsyncExitStack() as stack:
        desks = {name: await _open(stack, fleet) for name, fleet in fleets.items()}
        for number in range(WARM_UP + jobs):
            for desk in desks.values():
                # An uneven gap, so that no polling falls into step with it.
                await asyncio.sleep(chance.uniform(*GAP_SECONDS))
                seconds = await desk.measure(number)
                if number >= WARM_UP:
                    desk.seconds.append(seconds)
        return {name: sorted(desk.seconds) for name, desk in desks.items()}


async def _open(stack: AsyncExitStack, fleet: Fleet) -> _Desk:
    committed_at: dict[str, float] = {}

    def watch(verb: str, point: str) -> None:
        if point == "commit":
            committed_at[verb] = time.monotonic()

    store = await open_store(fleet.database.url, fault=watch)
    stack.push_async_callback(store.close)
    notes = Path(fleet.settings["BENCH_NOTES"])
    notes.touch()
    return _Desk(store, committed_at, notes)


def percentile(ordered: list[float], share: float) -> float:
    """Returns the value that this share of them does not exceed."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
