"""The audit log, and what was done to one job."""

from __future__ import annotations

from fastapi import APIRouter, Response

from holdfast.features.audit.shapes import audit_page
from holdfast.features.jobs.pages_job import VisitedJob
from holdfast.server.context import Visitor

router = APIRouter()

_PAGE_SIZE = 100
_OF_JOB = 200


@router.get("/audit")
async def index(visit: Visitor, after: str | None = None) -> Response:
    log = await audit_page(visit.person, visit.parts, _PAGE_SIZE, after)
    context = {"log": log.entries, "next": log.next}
    if after is not None:
        return visit.part("parts/audit_rows.html", **context)
    return await visit.page("audit.html", here="audit", **context)


@router.get("/jobs/{job_id}/audit")
async def of_job(visited: VisitedJob) -> Response:
    visit, job = visited.visit, visited.job
    log = await audit_page(visit.person, visit.parts, _OF_JOB, job_id=job.id)
    return await visited.page("audit", log=log.entries)
