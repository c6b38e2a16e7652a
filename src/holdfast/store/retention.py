"""What policies let go: rows that are older than somebody wants to keep them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holdfast.model import ItemStatus
from holdfast.store.audit import add_audit
from holdfast.store.database import Database, verb
from holdfast.store.deletion import mark_file
from holdfast.store.driver import Transaction
from holdfast.store.removal import OldItems, Removed, remove_items
from holdfast.store.rows import fields_of
from holdfast.store.samples import BUCKET_SECONDS, current_bucket

_CHUNK = 1_000
_DAY = 86_400.0
_BY = "retention"


@dataclass(frozen=True, slots=True)
class Policies:
    """Days, and for jobs also a number for each owner; None keeps everything."""

    jobs_days: float | None = None
    jobs_count: int | None = None
    items_days: float | None = None
    attempts_days: float | None = None
    decisions_days: float | None = None
    samples_days: float | None = None
    inbox_days: float | None = None
    audit_days: float | None = None
    files_days: float | None = None
    exports_days: float | None = None


def ago(days: float) -> dict[str, Any]:
    return {"ago": -days * _DAY}


class RetentionRows:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def old_jobs(self, policies: Policies, limit: int) -> list[int]:
        rows = []
        if policies.jobs_days is not None:
            rows += await self._database.fetch(
                "old_jobs", {**ago(policies.jobs_days), "limit": limit}
            )
        if policies.jobs_count is not None:
            count = {"count": policies.jobs_count, "limit": limit}
            rows += await self._database.fetch("surplus_jobs", count)
        return sorted({row["id"] for row in rows})

    async def old_items(self, days: float) -> list[OldItems]:
        """Where removing finished items of standing jobs begins: each job, each status."""
        rows = await self._database.fetch("jobs_with_old_items", ago(days))
        return [OldItems(row["id"], ItemStatus(row["status"]), days * _DAY) for row in rows]

    @verb
    async def remove_items(self, tx: Transaction, old: OldItems) -> Removed:
        return await remove_items(tx, old)

    @verb
    async def drop_old_attempts(self, tx: Transaction, days: float) -> int:
        """A chunk of the earlier tries of items whose job ended so long ago."""
        jobs = await tx.fetch("job_with_old_attempts", ago(days))
        if not jobs:
            return 0
        chunk = {"job_id": jobs[0]["id"], "limit": _CHUNK}
        return len(await tx.take("drop_old_attempts", chunk))

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
        """Commits to deleting it; False if a job was made of it since."""
        if not await tx.fetch("lock_file", {"id": file["id"]}):
            return False
        if not await tx.fetch("unused_file", {"id": file["id"]}):
            return False
        detail = {"name": file["name"], "owner": file["owner_id"]}
        await mark_file(tx, file["id"], _BY, detail)
        return True

    @verb
    async def drop_file(self, tx: Transaction, file: dict[str, Any]) -> None:
        """After its bytes."""
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
        """The job stays, with its counters; its items may go."""
        rows = await tx.take("mark_pruned", {"job_id": job_id})
        if rows:
            await add_audit(tx, _BY, "job.pruned", job_id, rows[0]["name"])

    async def pruned_jobs_with_items(self, limit: int) -> list[int]:
        rows = await self._database.fetch("pruned_jobs_with_items", {"limit": limit})
        return [row["id"] for row in rows]

    async def count(self, query: str, **params: Any) -> int:
        return int((await self._database.fetch(query, params))[0][0])
