"""The list of jobs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from holdfast.features.jobs.shapes import jobs_page
from holdfast.model import IDLE, JobState
from holdfast.server.context import Visitor

router = APIRouter()

_PAGE_SIZE = 50
_STATES: list[str] = list(JobState)
_STATES.insert(_STATES.index(JobState.RUNNING) + 1, IDLE)


@router.get("/jobs")
async def index(
    visit: Visitor,
    states: Annotated[str, Query(max_length=200)] = "",
    pipelines: Annotated[str, Query(max_length=1000)] = "",
    after: str | None = None,
) -> Response:
    """Lists jobs; further pages are returned as rows only."""
    page = await jobs_page(visit.person, visit.parts, _PAGE_SIZE, after, states, pipelines)
    context = {
        "jobs": page.jobs,
        "next": page.next,
        "states": states.upper(),
        "pipelines": pipelines,
    }
    if after is not None:
        return visit.part("parts/job_rows.html", **context)
    names = sorted({job.pipeline for job in page.jobs}.union(visit.parts.pipelines))
    return await visit.page("jobs.html", here="jobs", all_states=_STATES, names=names, **context)
