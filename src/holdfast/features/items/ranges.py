"""Shows where a job's open items are, which workers process them and what they wait for."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from holdfast.kernel.database.database import Database
from holdfast.kernel.database.driver import Row
from holdfast.kernel.database.rows import fields_of


class RangeView(NamedTuple):
    id: int
    lo: int
    hi: int
    again: bool
    available_at: datetime | None
    worker: str | None
    expiries: int
    settled: int
    waiting_for: str | None
    since: datetime | None
    due: bool
    leased: bool


class DueView(NamedTuple):
    available_at: datetime | None
    waiting_for: str | None
    due: bool


class RangeReads:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def of_job(self, job_id: int, limit: int = 50) -> list[RangeView]:
        rows = await self._database.fetch("ranges_of_job", {"job_id": job_id, "limit": limit})
        return [_range_view(row) for row in rows]

    async def range(self, range_id: int) -> RangeView | None:
        rows = await self._database.fetch("range", {"range_id": range_id})
        return _range_view(rows[0]) if rows else None

    async def count(self, job_id: int) -> int:
        return int((await self._database.fetch("count_ranges", {"job_id": job_id}))[0][0])

    async def next_due(self, job_id: int) -> DueView | None:
        rows = await self._database.fetch("next_due", {"job_id": job_id})
        if not rows:
            return None
        due = fields_of(rows[0])
        return DueView(due["available_at"], due["waiting_for"], bool(due["due"]))

    async def latest_retry(self, job_id: int) -> str | None:
        """Returns the error of the item that was last put off."""
        rows = await self._database.fetch("latest_retry", {"job_id": job_id})
        return f"{rows[0]['error_code']}: {rows[0]['error_message']}" if rows else None

    async def lease_holders(self, job_id: int) -> list[str]:
        """Returns the workers that hold ranges of the job."""
        return [row[0] for row in await self._database.fetch("lease_holders", {"job_id": job_id})]


def _range_view(row: Row) -> RangeView:
    fields = fields_of(row)
    flags = {name: bool(fields[name]) for name in ("again", "due", "leased")}
    return RangeView(**fields | flags)
