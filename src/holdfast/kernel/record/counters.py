"""Adds to a job's counters: a row per change, so that workers do not wait; folded later."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from holdfast.kernel.database.database import Database, verb
from holdfast.kernel.database.driver import Transaction
from holdfast.model import Counters

_ZERO = {field.name: 0 for field in fields(Counters)}
#: A job's counters are folded into one row when there are this many.
_SCATTERED = 32


async def add_counts(tx: Transaction, job_id: int, **counts: int) -> None:
    await tx.run("count", {**_ZERO, **counts, "job_id": job_id})


class CounterRows:
    """Keeps small the number of rows that a reader has to sum."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def fold(self) -> None:
        rows = await self._database.fetch("scattered_counters", {"rows": _SCATTERED})
        for row in rows:
            await self._fold(row[0])

    @verb("fold", relaxed=True)
    async def _fold(self, tx: Transaction, job_id: int) -> None:
        # Locked, so that either a deletion of the job waits, or nothing is left to fold: otherwise
        # the folded row would outlive the job.
        if not await tx.fetch("share_job", {"job_id": job_id}):
            return
        rows = await tx.take("take_counters", {"job_id": job_id})
        if rows:
            sums: dict[str, Any] = {name: sum(row[name] for row in rows) for name in _ZERO}
            latest = max(row["updated_at"] for row in rows)
            await tx.run("add_folded", {**sums, "job_id": job_id, "updated_at": latest})
