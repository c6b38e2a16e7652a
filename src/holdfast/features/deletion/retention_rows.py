"""Retention: rows that policies allow to be removed at a certain age."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holdfast.features.deletion.job_rows import mark_file
from holdfast.features.deletion.removal import OldItems, Removed, remove_items
from holdfast.kernel.arrivals.idempotency import KEYS_DAYS
from holdfast.kernel.database.database import Database, verb
from holdfast.kernel.database.driver import Transaction
from holdfast.kernel.database.rows import fields_of
from holdfast.kernel.jobs.audit import add_audit
from holdfast.kernel.jobs.samples import BUCKET_SECONDS, current_bucket
from holdfast.model import ItemStatus
from holdfast.settings import setting

_CHUNK = 1_000
_DAY = 86_400.0
_BY = "retention"


def _days(name: str, help: str) -> Any:
    return setting(None, help, 0.001, 36_500, name=f"RETAIN_{name}_DAYS", shown="no limit")


@dataclass(frozen=True, slots=True)
class Policies:
    """Ages in days; None keeps everything."""

    jobs_days: float | None = _days(
        "JOBS", "Jobs that ended longer ago are deleted, except the last on each source."
    )
    items_days: float | None = _days(
        "ITEMS",
        "Finished items of standing jobs are deleted at this age, except those with a decision.",
    )
    audit_days: float | None = _days("AUDIT", "Age at which audit entries are deleted.")
    files_days: float | None = _days(
        "FILES", "Age at which stored files without a job are deleted."
    )
    exports_days: float | None = _days("EXPORTS", "Age at which exports are deleted.")
    decisions_days: float = 90.0  # changes of the controllers
    samples_days: float = 14.0  # figures for charts
    keys_days: float = KEYS_DAYS


def ago(days: float) -> dict[str, Any]:
    return {"ago": -days * _DAY}


class RetentionRows:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def old_jobs(self, days: float, limit: int) -> list[int]:
        rows = await self._database.fetch("old_jobs", {**ago(days), "limit": limit})
        return [row["id"] for row in rows]

    async def old_items(self, days: float) -> list[OldItems]:
        """Returns where the removal of finished items of standing jobs begins: for each job, for
        each status."""
        rows = await self._database.fetch("jobs_with_old_items", ago(days))
        return [OldItems(row["id"], ItemStatus(row["status"]), days * _DAY) for row in rows]

    @verb
    async def remove_items(self, tx: Transaction, old: OldItems) -> Removed:
        return await remove_items(tx, old)

    @verb
    async def drop_old_decisions(self, tx: Transaction, days: float) -> int:
        return len(await tx.take("drop_old_decisions", {**ago(days), "limit": _CHUNK}))

    async def drop_old_samples(self, days: float) -> None:
        await self._drop_old_samples(await self.sample_bucket(days))

    @verb(relaxed=True)
    async def _drop_old_samples(self, tx: Transaction, bucket: int) -> None:
        await tx.run("forget_samples", {"bucket": bucket})

    async def sample_bucket(self, days: float) -> int:
        return await current_bucket(self._database) - int(days * _DAY / BUCKET_SECONDS)

    async def old_files(self, days: float, limit: int) -> list[dict[str, Any]]:
        rows = await self._database.fetch("old_files", {**ago(days), "limit": limit})
        return [fields_of(row) for row in rows]

    @verb
    async def mark_old_file(self, tx: Transaction, file: dict[str, Any]) -> bool:
        """Commits to deleting an old file; returns False if a job was created from it since."""
        if not await tx.fetch("lock_file", {"id": file["id"]}):
            return False
        if not await tx.fetch("unused_file", {"id": file["id"]}):
            return False
        detail = {"name": file["name"], "owner": file["owner_id"]}
        await mark_file(tx, file["id"], _BY, detail)
        return True

    @verb
    async def drop_file(self, tx: Transaction, file: dict[str, Any]) -> None:
        """Removes the file's row, after its bytes."""
        await tx.run("drop_file", {"id": file["id"]})

    async def old_exports(self, days: float, limit: int) -> list[dict[str, Any]]:
        rows = await self._database.fetch("old_exports", {**ago(days), "limit": limit})
        return [fields_of(row) for row in rows]

    @verb
    async def drop_export(self, tx: Transaction, export: dict[str, Any]) -> None:
        if await tx.take("drop_export", {"id": export["id"]}):
            detail = {"format": export["format"], "owner": export["owner_id"]}
            subject = str(export["id"])
            await add_audit(tx, _BY, "export.deleted", export["job_id"], subject, detail)

    async def superseded_jobs(self, limit: int) -> list[int]:
        rows = await self._database.fetch("superseded_jobs", {"limit": limit})
        return [row["id"] for row in rows]

    @verb
    async def mark_pruned(self, tx: Transaction, job_id: int) -> None:
        """Marks a job as pruned: it stays, with its counters; its items may go."""
        rows = await tx.take("mark_pruned", {"job_id": job_id})
        if rows:
            await add_audit(tx, _BY, "job.pruned", job_id, rows[0]["name"])

    async def pruned_jobs_with_items(self, limit: int) -> list[int]:
        rows = await self._database.fetch("pruned_jobs_with_items", {"limit": limit})
        return [row["id"] for row in rows]

    async def count(self, query: str, **params: Any) -> int:
        return int((await self._database.fetch(query, params))[0][0])
