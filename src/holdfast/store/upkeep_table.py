"""Workers and schedules: who is alive, and what is to be started when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from holdfast.store.database import Database
from holdfast.store.driver import Transaction
from holdfast.store.instants import parse_instant


@dataclass(frozen=True, slots=True)
class DueSchedule:
    name: str
    reference: str
    cron: str
    zone: str
    options: Mapping[str, Any]
    next_at: Any  # as the database gave it, to be compared by it
    now: datetime


class UpkeepTable:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def add_worker(
        self, name: str, host: str, pid: int, pipelines: Sequence[str], listens: bool = False
    ) -> None:
        """`listens` tells that the worker hears messages, so that they may be sent for it."""
        params = {
            "listens": int(listens),
            "name": name,
            "host": host,
            "pid": pid,
            "pipelines": orjson.dumps(list(pipelines)).decode(),
        }

        async def body(tx: Transaction) -> None:
            await tx.run("add_worker", params)

        await self._database.write("add_worker", body)

    async def see_worker(self, name: str) -> bool:
        """False when nothing is known of it: the database was restored to an older state."""

        async def body(tx: Transaction) -> bool:
            return bool(await tx.take("see_worker", {"name": name}))

        return await self._database.write("see_worker", body, relaxed=True)

    async def stop_worker(self, name: str) -> None:
        async def body(tx: Transaction) -> None:
            await tx.run("stop_worker", {"name": name})
            await tx.run("drop_slots", {"worker": name})
            await tx.run("drop_duties", {"holder": name})

        await self._database.write("stop_worker", body)

    async def forget_workers(self) -> None:
        async def body(tx: Transaction) -> None:
            await tx.run("forget_workers", {})

        await self._database.write("forget_workers", body)

    async def hold_duty(self, name: str, holder: str, seconds: float) -> bool:
        """Whether the holder may do what one does for all; it may until the time runs out."""
        params = {"name": name, "holder": holder, "seconds": seconds}

        async def body(tx: Transaction) -> bool:
            return bool(await tx.take("hold_duty", params))

        return await self._database.write("hold_duty", body, relaxed=True)

    async def duties(self) -> dict[str, tuple[str, float]]:
        """Name -> who did it last, and how many seconds ago."""
        return {row[0]: (row[1], float(row[2])) for row in await self._database.fetch("duties")}

    async def finishable_jobs(self) -> list[int]:
        return [row[0] for row in await self._database.fetch("finishable_jobs")]

    async def cancelled_jobs_with_ranges(self) -> list[int]:
        return [row[0] for row in await self._database.fetch("cancelled_jobs_with_ranges")]

    async def set_schedule(
        self,
        name: str,
        reference: str,
        cron: str,
        zone: str,
        options: Mapping[str, Any],
        next_at: datetime,
    ) -> None:
        params = {
            "name": name,
            "reference": reference,
            "cron": cron,
            "zone": zone,
            "options": orjson.dumps(dict(options)).decode(),
            "next_at": self._instant(next_at),
        }

        async def body(tx: Transaction) -> None:
            await tx.run("set_schedule", params)

        await self._database.write("set_schedule", body)

    async def remove_schedule(self, name: str) -> bool:
        async def body(tx: Transaction) -> bool:
            return bool(await tx.take("remove_schedule", {"name": name}))

        return await self._database.write("remove_schedule", body)

    async def due_schedules(self) -> list[DueSchedule]:
        due = []
        for row in await self._database.fetch("due_schedules"):
            now = parse_instant(row[6])
            assert now is not None
            values = [*row[:4], orjson.loads(row[4]), row[5], now]
            due.append(DueSchedule(*values))
        return due

    async def fire_schedule(self, due: DueSchedule, next_at: datetime) -> bool:
        """Moves a schedule on; False when another sweeper did so first."""
        params = {"name": due.name, "was": due.next_at, "next_at": self._instant(next_at)}

        async def body(tx: Transaction) -> bool:
            return bool(await tx.take("fire_schedule", params))

        return await self._database.write("fire_schedule", body)

    async def note_schedule(self, name: str, job_id: int | None, error: str | None) -> None:
        """What came of the last firing."""

        async def body(tx: Transaction) -> None:
            await tx.run("note_schedule", {"name": name, "job_id": job_id, "error": error})

        await self._database.write("note_schedule", body)

    def _instant(self, value: datetime) -> Any:
        if self._database.driver.dialect == "postgres":
            return value
        return value.strftime("%Y-%m-%dT%H:%M:%S.") + f"{value.microsecond // 1000:03d}Z"
