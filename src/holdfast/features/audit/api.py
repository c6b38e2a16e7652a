"""The audit log: who did what, when and why."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from holdfast.features.audit.shapes import AuditList, audit_page
from holdfast.server.identity import PartsOf, Someone
from holdfast.server.shapes import Id

router = APIRouter(prefix="/api/audit", tags=["audit"])


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
    return await audit_page(person, parts, page_size, after, job_id)
