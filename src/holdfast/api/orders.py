"""What people order a job to do."""

from __future__ import annotations

from fastapi import APIRouter, Request
from pydantic import Field

from holdfast.api.identity import Operator, PartsOf
from holdfast.api.jobs import ScopedJob, tell
from holdfast.api.shapes import JobShape, Shape
from holdfast.engine.control import Caps

router = APIRouter(prefix="/api/jobs", tags=["jobs"])


class Resume(Shape):
    max_items: int | None = Field(
        default=None, ge=1, le=10**12, description="Raise the cap to this."
    )
    max_per_source: int | None = Field(default=None, ge=1, le=10**12)


_NO_CHANGE = Resume()


@router.post("/{jobId}/pause", summary="Pause a job")
async def pause(job: ScopedJob, request: Request, person: Operator, parts: PartsOf) -> JobShape:
    """No further item starts; what runs may settle."""
    await parts.control(person.name).pause(job.id)
    return await tell(await parts.store.reads.job(job.id), person, parts, request)


@router.post("/{jobId}/resume", summary="Go on with a job")
async def resume(
    job: ScopedJob,
    request: Request,
    person: Operator,
    parts: PartsOf,
    body: Resume = _NO_CHANGE,
) -> JobShape:
    """After a pause, after a failed discovery, or past a cap that is raised."""
    await parts.control(person.name).resume(job.id, Caps(body.max_items, body.max_per_source))
    return await tell(await parts.store.reads.job(job.id), person, parts, request)


@router.post("/{jobId}/cancel", summary="Cancel a job for good")
async def cancel(job: ScopedJob, request: Request, person: Operator, parts: PartsOf) -> JobShape:
    """Its open items count as SKIPPED."""
    await parts.control(person.name).cancel(job.id)
    return await tell(await parts.store.reads.job(job.id), person, parts, request)
