"""Actions on a job: pause, resume, cancel, and process within a request."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from holdfast.features.accounts.person import Person
from holdfast.features.jobs.scoped_job import ScopedJob
from holdfast.features.jobs.shapes import describe_job
from holdfast.model import Job
from holdfast.server.dependencies import Parts
from holdfast.server.identity import Operator, PartsOf
from holdfast.server.shapes import Counts, JobShape, Shape

router = APIRouter(prefix="/api/jobs/{jobId}", tags=["jobs"])


class Resume(Shape):
    max_items: int | None = Field(default=None, ge=1, le=10**12, description="The new cap.")
    max_per_source: int | None = Field(default=None, ge=1, le=10**12)


class Kickoff(Shape):
    job: JobShape
    worked: int = Field(description="Items that were finished in the meantime, by any worker.")
    counters: Counts


_NO_CHANGE = Resume()


@router.post("/kickoff", summary="Process a job for a moment, within this request")
async def kickoff(
    job: ScopedJob,
    person: Operator,
    parts: PartsOf,
    duration_ms: Annotated[int, Query(alias="durationMs", ge=1, le=3_600_000)] = 5000,
) -> Kickoff:
    """This is safe while workers run. It takes at most 30 seconds."""
    worked = await parts.kickoffs.run(job, person.name, duration_ms / 1000)
    shape = await _described(job, person, parts)
    return Kickoff(job=shape, worked=worked, counters=shape.counters)


@router.post("/pause", summary="Pause a job")
async def pause(job: ScopedJob, person: Operator, parts: PartsOf) -> JobShape:
    """No further item starts; items in progress finish."""
    await parts.control(person.name).pause(job.id)
    return await _described(job, person, parts)


@router.post("/resume", summary="Resume a job")
async def resume(
    job: ScopedJob, person: Operator, parts: PartsOf, body: Resume = _NO_CHANGE
) -> JobShape:
    """Continues the job after a pause, after a failed discovery, or beyond a cap that is raised."""
    control, quota = parts.control(person.name), parts.console.quotas.of_jobs
    await control.resume(job.id, body.max_items, body.max_per_source, quota)
    return await _described(job, person, parts)


@router.post("/cancel", summary="Cancel a job permanently")
async def cancel(job: ScopedJob, person: Operator, parts: PartsOf) -> JobShape:
    """Its open items become SKIPPED."""
    await parts.control(person.name).cancel(job.id)
    return await _described(job, person, parts)


async def _described(job: Job, person: Person, parts: Parts) -> JobShape:
    return await describe_job(await parts.store.reads.job(job.id), person, parts)
