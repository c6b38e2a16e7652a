"""Schedules: what is started when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from holdfast.kernel.database.database import Database, verb
from holdfast.kernel.database.driver import Row, Transaction
from holdfast.kernel.database.instants import parse_instant
from holdfast.kernel.database.rows import fields_of
from holdfast.kernel.jobs.audit import add_audit
from holdfast.kernel.jobs.jobs import NewJob, create_job
from holdfast.kernel.jobs.plans import Planner, plan_and_carry_out
from holdfast.model import Schedule


@dataclass(frozen=True, slots=True)
class DueSchedule:
    name: str
    reference: str
    cron: str
    zone: str
    options: Mapping[str, Any]
    next_at: Any  # as the database returned it, to be compared by the database
    now: datetime


class Schedules:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def all(self) -> list[dict[str, Any]]:
        return [fields_of(row) for row in await self._database.fetch("schedules")]

    @verb
    async def set_schedule(
        self,
        tx: Transaction,
        name: str,
        reference: str,
        cron: str,
        zone: str,
        options: Mapping[str, Any],
        next_at: datetime,
        actor: str = "local",
    ) -> None:
        await _set(tx, name, reference, cron, zone, options, next_at)
        detail = {"pipeline": reference, "cron": cron, "zone": zone}
        await add_audit(tx, actor, "schedule.set", None, name, detail)

    @verb
    async def set_once(
        self, tx: Transaction, schedule: Schedule, reference: str, next_at: datetime
    ) -> bool:
        """Sets a schedule that a pipeline brings, unless anyone has set or removed it before."""
        await tx.fetch("hold_input", {"input": f"schedule {schedule.name}"})
        if await tx.fetch("schedule_was_set", {"name": schedule.name}):
            return False
        cron, zone = schedule.cron, schedule.zone
        await _set(tx, schedule.name, reference, cron, zone, schedule.options, next_at)
        detail = {"pipeline": reference, "cron": cron, "zone": zone}
        await add_audit(tx, "engine", "schedule.set", None, schedule.name, detail)
        return True

    @verb
    async def remove_schedule(self, tx: Transaction, name: str, actor: str = "local") -> bool:
        removed = bool(await tx.take("remove_schedule", {"name": name}))
        if removed:
            await add_audit(tx, actor, "schedule.removed", None, name)
        return removed

    async def due_schedules(self) -> list[DueSchedule]:
        return [_due_schedule(row) for row in await self._database.fetch("due_schedules")]

    @verb
    async def fire_schedule(
        self, tx: Transaction, due: DueSchedule, next_at: datetime, new: NewJob
    ) -> int | None:
        """Moves a schedule on and starts its job; returns None if another sweeper did so first."""
        if not await _move_on(tx, due, next_at):
            return None
        job_id = await create_job(tx, new, f"schedule:{due.name}")
        await tx.run("note_schedule", {"name": due.name, "job_id": job_id, "error": None})
        return job_id

    @verb
    async def fire_plan(
        self, tx: Transaction, due: DueSchedule, next_at: datetime, planner: Planner
    ) -> list[int]:
        """Lets a pipeline that plans decide what its schedule starts, in the transaction that moves
        the schedule on; does nothing if another sweeper was first."""
        if not await _move_on(tx, due, next_at):
            return []
        job_ids = (await plan_and_carry_out(tx, planner, due.options)).job_ids
        last = job_ids[-1] if job_ids else None
        await tx.run("note_schedule", {"name": due.name, "job_id": last, "error": None})
        return job_ids

    @verb
    async def skip_schedule(
        self, tx: Transaction, due: DueSchedule, next_at: datetime, error: str
    ) -> bool:
        """Moves a schedule on that cannot start its job now, and says why."""
        if not await _move_on(tx, due, next_at):
            return False
        await tx.run("note_schedule", {"name": due.name, "job_id": None, "error": error})
        return True


async def _move_on(tx: Transaction, due: DueSchedule, next_at: datetime) -> bool:
    params = {"name": due.name, "was": due.next_at, "next_at": next_at}
    return bool(await tx.take("fire_schedule", params))


async def _set(
    tx: Transaction,
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
        "next_at": next_at,
    }
    await tx.run("set_schedule", params)


def _due_schedule(row: Row) -> DueSchedule:
    now = parse_instant(row["now"])
    assert now is not None
    options = orjson.loads(row["options"])
    return DueSchedule(
        row["name"], row["reference"], row["cron"], row["zone"], options, row["next_at"], now
    )
