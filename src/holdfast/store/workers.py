"""Workers: who is alive, and who does what one process does for all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from holdfast.store.database import Database, verb
from holdfast.store.driver import Transaction
from holdfast.store.leases import return_held
from holdfast.store.rows import fields_of


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
    ) -> None:
        """Processes with the same `machine` see each other's process ids."""
        params = {
            "machine": machine,
            "name": name,
            "host": host,
            "pid": pid,
            "pipelines": orjson.dumps(list(pipelines)).decode(),
        }
        await tx.run("add_worker", params)

    @verb(relaxed=True)
    async def see_worker(self, tx: Transaction, name: str) -> bool:
        """False when nothing is known of it: the database was restored to an older state."""
        return bool(await tx.take("see_worker", {"name": name}))

    @verb
    async def stop_worker(self, tx: Transaction, name: str) -> None:
        await tx.run("stop_worker", {"name": name})
        await tx.run("drop_slots", {"worker": name})
        await tx.run("drop_duties", {"holder": name})

    async def lost(self, observer: str, lost_seconds: float) -> list[str]:
        """Workers without a heartbeat for that long, except the one that looks."""
        params = {"observer": observer, "seconds": lost_seconds}
        return [row["name"] for row in await self._database.fetch("lost_workers", params)]

    @verb
    async def free_lost(self, tx: Transaction, name: str, lost_seconds: float) -> list[int] | None:
        """Frees what a lost worker held; returns the jobs of its ranges, or None if it is back or
        another process was first."""
        if not await tx.take("lose_worker", {"name": name, "seconds": lost_seconds}):
            return None
        await tx.run("drop_duties", {"holder": name})
        return await return_held(tx, name)

    @verb
    async def forget_workers(self, tx: Transaction) -> None:
        await tx.run("forget_workers", {})

    @verb(relaxed=True)
    async def hold_duty(self, tx: Transaction, name: str, holder: str, seconds: float) -> bool:
        """Whether the holder may do what one does for all; it may until the time runs out."""
        params = {"name": name, "holder": holder, "seconds": seconds}
        return bool(await tx.take("hold_duty", params))

    async def duties(self) -> dict[str, tuple[str, float]]:
        """Name -> who did it last, and how many seconds ago."""
        return {row[0]: (row[1], float(row[2])) for row in await self._database.fetch("duties")}

    async def live(self, lost_seconds: float) -> list[dict[str, Any]]:
        """Those that were seen within `lost_seconds`."""
        rows = await self._database.fetch("live_workers", {"lost_seconds": lost_seconds})
        return [fields_of(row) | {"pipelines": orjson.loads(row["pipelines"])} for row in rows]
