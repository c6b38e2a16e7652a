"""What a route about a job depends on: the job, if the person may see it; and room for another."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Path, Request

from holdfast.features.jobs.new_jobs import FileChoice as FileChoice
from holdfast.kernel.jobs.control import JobRequest as JobRequest
from holdfast.model import Job
from holdfast.server.identity import PartsOf, Someone, find_person
from holdfast.server.shapes import Id


async def require_capacity(request: Request, parts: PartsOf) -> None:
    """Checks the capacity before the body is read."""
    await parts.new_jobs.require_capacity(await find_person(request))


async def scoped_job(
    job_id: Annotated[Id, Path(alias="jobId")], person: Someone, parts: PartsOf
) -> Job:
    """Returns the job, if the person may see it."""
    return await parts.console.jobs.job(job_id, person.scope)


ScopedJob = Annotated[Job, Depends(scoped_job)]
