"""Workers and schedules: who is alive, and what is to be started when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from holdfast.store.audit import add_audit
from holdfast.store.database import Database
from holdfast.store.driver import Transaction
from holdfast.store.instants import instant_parameter, parse_instant
from holdfast.store.jobs import NewJob, create_job


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
        actor: str = "local",
    ) -> None:
        params = {
            "name": name,
            "reference": reference,
            "cron": cron,
            "zone": zone,
            "options": orjson.dumps(dict(options)).decode(),
            "next_at": instant_parameter(self._database.driver.dialect, next_at),
        }

        async def body(tx: Transaction) -> None:
            await tx.run("set_schedule", params)
            told = {"pipeline": reference, "cron": cron, "zone": zone}
            await add_audit(tx, actor, "schedule.set", None, name, told)

        await self._database.write("set_schedule", body)

    async def remove_schedule(self, name: str, actor: str = "local") -> bool:
        async def body(tx: Transaction) -> bool:
            removed = bool(await tx.take("remove_schedule", {"name": name}))
            if removed:
                await add_audit(tx, actor, "schedule.removed", None, name)
            return removed

        return await self._database.write("remove_schedule", body)

    async def due_schedules(self) -> list[DueSchedule]:
        due = []
        for row in await self._database.fetch("due_schedules"):
            now = parse_instant(row[6])
            assert now is not None
            values = [*row[:4], orjson.loads(row[4]), row[5], now]
            due.append(DueSchedule(*values))
        return due

    async def fire_schedule(self, due: DueSchedule, next_at: datetime, new: NewJob) -> int | None:
        """Moves a schedule on and starts its job; None when another sweeper did so first."""
        params = self._firing(due, next_at)

        async def body(tx: Transaction) -> int | None:
            if not await tx.take("fire_schedule", params):
                return None
            job_id = await create_job(tx, new, f"schedule:{due.name}")
            await tx.run("note_schedule", {"name": due.name, "job_id": job_id, "error": None})
            return job_id

        return await self._database.write("fire_schedule", body)

    async def skip_schedule(self, due: DueSchedule, next_at: datetime, error: str) -> bool:
        """Moves a schedule on that cannot make its job now, and says why."""
        params = self._firing(due, next_at)

        async def body(tx: Transaction) -> bool:
            if not await tx.take("fire_schedule", params):
                return False
            await tx.run("note_schedule", {"name": due.name, "job_id": None, "error": error})
            return True

        return await self._database.write("skip_schedule", body)

    def _firing(self, due: DueSchedule, next_at: datetime) -> dict[str, Any]:
        instant = instant_parameter(self._database.driver.dialect, next_at)
        return {"name": due.name, "was": due.next_at, "next_at": instant}
