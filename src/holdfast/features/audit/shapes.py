"""Entries of the audit log as programs and people see them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import orjson

from holdfast.features.accounts.person import Person
from holdfast.server.cursors import Cursors
from holdfast.server.dependencies import Parts
from holdfast.server.shapes import Shape


class AuditShape(Shape):
    id: int
    actor: str
    action: str
    job_id: int | None
    subject: str
    detail: dict[str, Any]
    at: datetime | None


class AuditList(Shape):
    entries: list[AuditShape]
    next: str | None


async def audit_page(
    person: Person, parts: Parts, size: int, after: str | None = None, job_id: int | None = None
) -> AuditList:
    """Returns the newest entries first: what the person did and what was done to their jobs, or
    everything for an admin; with a job, what was done to it."""
    # Only admins see from where others log in.
    scope = None if person.is_admin else person.name
    if job_id is not None:
        await parts.console.jobs.job(job_id, person.scope)
        scope = person.scope

    async def read(before: int | None, limit: int) -> list[dict[str, Any]]:
        return await parts.console.audit.page(scope, limit, before, job_id or 0)

    cursors = Cursors(parts.secret, "audit", person.name, {"job": job_id})
    rows, more = await cursors.page(after, size, read, lambda row: row["id"])
    entries = [AuditShape(**row | {"detail": orjson.loads(row["detail"])}) for row in rows]
    return AuditList(entries=entries, next=more)
