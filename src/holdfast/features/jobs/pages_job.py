"""One job: its state at a glance, and its details tab by tab."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Response
from fastapi.responses import JSONResponse

from holdfast.features.jobs.charts import MOST_GATES, by_category, job_charts, pace_charts
from holdfast.features.jobs.reasons import ShownReason, shown_reason
from holdfast.features.jobs.shapes import describe_job, error_groups, pace_changes
from holdfast.features.jobs.stream_shapes import streams_of_job
from holdfast.model import Job
from holdfast.server.context import Visit, Visitor
from holdfast.server.forms import OperatorPost
from holdfast.server.shapes import Id, JobShape

router = APIRouter(prefix="/jobs/{job_id}")

_PACE_CHANGES = 200


@dataclass(frozen=True, slots=True)
class JobVisit:
    """A visit to a job that the visitor may see."""

    visit: Visit
    job: Job
    shape: JobShape

    @property
    def why(self) -> ShownReason | None:
        return shown_reason(self.job, self.shape.why)

    async def head(self) -> dict[str, Any]:
        """Returns what every tab shows above itself."""
        groups = await error_groups(self.job, self.visit.parts)
        return {
            "job": self.shape,
            "fed_by_consumers": self.job.reading.fed_by_consumers,
            "why": self.why,
            "groups": groups,
            "estimated": not all(group.exact for group in groups),
            "categories": by_category({group.code or "": group.count for group in groups}),
        }

    async def page(self, tab: str, **context: Any) -> Response:
        head = await self.head()
        return await self.visit.page("job.html", here="jobs", tab=tab, **head, **context)

    async def dialog(self, template: str, **context: Any) -> Response:
        return await self.visit.dialog(template, here="jobs", job=self.shape, **context)


async def job_visit(job_id: Annotated[Id, Path()], visit: Visitor) -> JobVisit:
    job = await visit.parts.console.jobs.job(job_id, visit.person.scope)
    return JobVisit(visit, job, await describe_job(job, visit.person, visit.parts))


VisitedJob = Annotated[JobVisit, Depends(job_visit)]


async def _post(visit: OperatorPost, visited: VisitedJob) -> JobVisit:
    return visited


#: A form that an operator sent about the job.
JobPost = Annotated[JobVisit, Depends(_post)]


@router.get("/head")
async def head(visited: VisitedJob) -> Response:
    """Shows the part above the tabs, which the page refreshes while the job runs."""
    return visited.visit.part("parts/job_refresh.html", **await visited.head())


@router.get("/charts")
async def charts(visited: VisitedJob) -> JSONResponse:
    return JSONResponse(await job_charts(visited.visit.parts, visited.job.id))


@router.get("/errors")
async def errors(visited: VisitedJob) -> Response:
    return await visited.page("errors")


@router.get("/pace")
async def pace(visited: VisitedJob) -> Response:
    """Shows what the controllers changed, and why."""
    parts, job = visited.visit.parts, visited.job
    changes = await pace_changes(job, parts, _PACE_CHANGES)
    gates = await parts.store.gates.of_job(job.id, MOST_GATES)
    return await visited.page("pace", changes=changes, gates=gates)


@router.get("/pace/charts")
async def charts_of_pace(visited: VisitedJob) -> JSONResponse:
    parts, job = visited.visit.parts, visited.job
    names = [gate["gate"] for gate in await parts.store.gates.of_job(job.id, MOST_GATES)]
    return JSONResponse(await pace_charts(parts, job, names))


@router.get("/streams")
async def job_streams(visited: VisitedJob) -> Response:
    streams = await streams_of_job(visited.job, visited.visit.parts)
    return await visited.page("streams", streams=streams)
