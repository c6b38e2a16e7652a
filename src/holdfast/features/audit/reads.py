"""The audit log: who did what."""

from __future__ import annotations

from typing import Any

import orjson

from holdfast.kernel.database.database import Database
from holdfast.kernel.database.rows import LAST_ID, fields_of


class AuditLog:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(
        self, scope: str | None, limit: int, before: int | None = None, job_id: int = 0
    ) -> list[dict[str, Any]]:
        """Lists entries, the newest first: what an owner did and what was done to their jobs, or
        everything."""
        params = {
            "scope": scope or "",
            "limit": limit,
            "before": before or LAST_ID,
            "job_id": job_id,
        }
        return [fields_of(row) for row in await self._database.fetch("audit_page", params)]

    async def of_item(self, job_id: int, seq: int) -> list[dict[str, Any]]:
        """Lists what people did to the item, the oldest first."""
        params = {"job_id": job_id, "subject": str(seq)}
        entries = [fields_of(row) for row in await self._database.fetch("audit_of_item", params)]
        return [entry for entry in entries if entry["subject"] or _is_about(entry, seq)]


def _is_about(entry: dict[str, Any], seq: int) -> bool:
    stretches = orjson.loads(entry["detail"] or "{}").get("rows", [])
    return any(first <= seq <= last for first, last in stretches)
