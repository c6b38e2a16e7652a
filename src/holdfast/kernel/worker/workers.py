"""Workers: which are alive, and which does what one process does for all."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import orjson

from holdfast.kernel.database.database import Database, verb
from holdfast.kernel.database.driver import Transaction
from holdfast.kernel.database.notices import tell_workers
from holdfast.kernel.database.rows import fields_of
from holdfast.kernel.worker.lost import free_all

#: A process without its own items counts as lost after this many seconds without a sign of life.
LOST_AFTER_SECONDS = 20.0


class Workers:
    def __init__(self, database: Database) -> None:
        self._database = database

    @verb
    async def add_worker(
        self,
        tx: Transaction,
        name: str,
        host: str,
        pid: int,
        pipelines: Sequence[str],
        machine: str = "",
        lost_after_seconds: float = LOST_AFTER_SECONDS,
    ) -> None:
        """Adds a worker. Processes with the same `machine` see each other's process ids."""
        params = {
            "machine": machine,
            "name": name,
            "host": host,
            "pid": pid,
            "pipelines": orjson.dumps(list(pipelines)).decode(),
            "lost_after_seconds": lost_after_seconds,
        }
        await tx.run("add_worker", params)

    @verb(relaxed=True)
    async def beat(
        self, tx: Transaction, name: str, lost_after_seconds: float = LOST_AFTER_SECONDS
    ) -> bool:
        """Writes a sign of life; returns False if the worker is unknown: the database was restored
        to an older state."""
        params = {"name": name, "lost_after_seconds": lost_after_seconds}
        return bool(await tx.take("see_worker", params))

    async def tokens_of(self, name: str) -> set[str]:
        """Returns the tokens of all ranges and streams in a worker's name; reads all open
        ranges."""
        return {row[0] for row in await self._database.fetch("tokens_of_worker", {"worker": name})}

    @verb
    async def free_strays(self, tx: Transaction, name: str, strays: Collection[str]) -> None:
        """Frees claims with these tokens, whose answers were lost."""
        params = {"worker": name, "tokens": list(strays)}
        jobs = {row["job_id"] for row in await tx.take("give_back_claims", params)}
        await tx.run("give_back_streams", params)
        await tell_workers(tx, *jobs)

    @verb
    async def stop_worker(self, tx: Transaction, name: str) -> list[int]:
        """Notes that a worker has stopped, or died.

        What is still in its name is freed; returns the jobs of its ranges."""
        await tx.run("stop_worker", {"name": name})
        return await free_all(tx, name)

    async def silent(self, observer: str) -> list[str]:
        """Returns workers that gave no sign of life for too long, except the observer."""
        rows = await self._database.fetch("silent_workers", {"observer": observer})
        return [row["name"] for row in rows]

    @verb
    async def lose(self, tx: Transaction, name: str, gone: bool = False) -> list[int] | None:
        """Frees what a lost worker held; returns the jobs of its ranges, or None if it is back or
        another process was first. `gone`: its process is known to have ended."""
        if not await tx.take("lose_worker", {"name": name, "gone": int(gone)}):
            return None
        return await free_all(tx, name)

    @verb
    async def free_left_behind(self, tx: Transaction) -> list[int]:
        """Frees what is in the name of workers that are not alive: a transaction of theirs ended
        after they were lost. Returns the jobs of ranges."""
        names = [row[0] for row in await tx.fetch("names_of_the_gone")]
        return sorted({job_id for name in names for job_id in await free_all(tx, name)})

    @verb
    async def forget_workers(self, tx: Transaction) -> None:
        await tx.run("forget_workers", {})

    @verb(relaxed=True)
    async def hold_duty(self, tx: Transaction, name: str, holder: str) -> bool:
        """Whether the holder may do what one process does for all; it may as long as it is
        alive."""
        return bool(await tx.take("hold_duty", {"name": name, "holder": holder}))

    async def duties(self) -> dict[str, tuple[str, float]]:
        """Returns who did each duty last, and how many seconds ago."""
        return {row[0]: (row[1], float(row[2])) for row in await self._database.fetch("duties")}

    async def live(self) -> list[dict[str, Any]]:
        """Lists workers that are not silent for too long."""
        return await self._listed("live_workers")

    async def not_stopped(self) -> list[dict[str, Any]]:
        """Lists these workers and the silent ones."""
        return await self._listed("workers_not_stopped")

    async def _listed(self, query: str) -> list[dict[str, Any]]:
        rows = await self._database.fetch(query)
        return [fields_of(row) | {"pipelines": orjson.loads(row["pipelines"])} for row in rows]
