"""The audit log: who did what, when and why."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Query

from holdfast.server.cursors import Cursors
from holdfast.server.identity import PartsOf, Someone
from holdfast.server.shapes import Id, Shape

router = APIRouter(prefix="/api/audit", tags=["audit"])


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


@router.get("", summary="List the audit log")
async def index(
    person: Someone,
    parts: PartsOf,
    job_id: Annotated[Id | None, Query(alias="jobId")] = None,
    page_size: Annotated[int, Query(alias="pageSize", ge=1, le=200)] = 100,
    after: str | None = None,
) -> AuditList:
    """The newest entries come first: what you did and what was done to your jobs; admins see
    everything."""
    # Only admins see from where others log in.
    scope = None if person.is_admin else person.name
    if job_id is not None:
        await parts.console.jobs.job(job_id, person.scope)
        scope = person.scope
    cursors = Cursors(parts.secret, "audit", person.name, {"job": job_id})
    rows = await parts.console.audit.page(scope, page_size + 1, cursors.read(after), job_id or 0)
    more = cursors.write(rows[page_size - 1]["id"]) if len(rows) > page_size else None
    entries = [
        AuditShape(**row | {"detail": orjson.loads(row["detail"])}) for row in rows[:page_size]
    ]
    return AuditList(entries=entries, next=more)
