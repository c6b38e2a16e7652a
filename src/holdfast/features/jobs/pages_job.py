"""One job: its state at a glance, and its details tab by tab."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Response
from fastapi.responses import JSONResponse

from holdfast.features.audit import api as audit
from holdfast.features.items.filtering import parse_filter
from holdfast.features.items.pages_grid import grid_page
from holdfast.features.items.value_search import Value, searchable_columns, value_named
from holdfast.features.jobs import api
from holdfast.features.jobs import api_streams as streams
from holdfast.features.jobs.charts import MOST_GATES, by_category, job_charts, pace_charts
from holdfast.features.jobs.reasons import ShownReason, shown_reason
from holdfast.model import FINAL, ItemStatus, Job
from holdfast.server.context import Visit, Visitor
from holdfast.server.shapes import Id, JobShape

router = APIRouter(prefix="/jobs/{job_id}")

_PACE_CHANGES = 200
_AUDIT_ENTRIES = 200
_RANGES = 20
FilterText = Annotated[str, Query(max_length=500)]


@dataclass(frozen=True, slots=True)
class JobVisit:
    """A visit to a job that the visitor may see."""

    visit: Visit
    job: Job
    shape: JobShape

    @property
    def why(self) -> ShownReason | None:
        return shown_reason(self.job, self.shape.why)

    def columns(self, name: str, value: str) -> Value:
        """Returns the column that a word of the filter names."""
        pipeline = self.visit.parts.pipelines.get(self.job.pipeline)
        return value_named(name, value, self.job, searchable_columns(self.job, pipeline))

    async def head(self) -> dict[str, Any]:
        """Returns what every tab shows above itself."""
        groups = (await api.errors(self.job, self.visit.parts)).errors
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
    return JobVisit(visit, job, await api.describe_job(job, visit.person, visit.parts))


VisitedJob = Annotated[JobVisit, Depends(job_visit)]


@router.get("")
async def results(
    visited: VisitedJob,
    q: FilterText = "",
    columns: Annotated[list[str], Query(max_length=200)] = [],  # noqa: B006
    after: str | None = None,
) -> Response:
    """Shows the grid; further pages are returned as rows only."""
    visit, job = visited.visit, visited.job
    filter = parse_filter(q, visited.columns)
    page = await grid_page(visit, job, filter, after, columns)
    if after is not None:
        context = {"grid": page, "filter": filter, "job": visited.shape}
        return visit.part("parts/item_rows.html", **context)
    matches = None if filter.values else await visit.parts.bulk.count(job, filter.items)
    statuses = [status for status in ItemStatus if status is not ItemStatus.PROCESSING]
    return await visited.page(
        "results", grid=page, filter=filter, matches=matches, statuses=statuses, final=FINAL
    )


@router.get("/head")
async def head(visited: VisitedJob) -> Response:
    """Shows the part above the tabs, which the page refreshes while the job runs."""
    return visited.visit.part("parts/job_refresh.html", **await visited.head())


@router.get("/charts")
async def charts(visited: VisitedJob) -> JSONResponse:
    return JSONResponse(await job_charts(visited.visit.parts, visited.job.id))


@router.get("/pending")
async def pending(visited: VisitedJob, after: str | None = None) -> Response:
    filter = parse_filter("status:PENDING,PROCESSING")
    page = await grid_page(visited.visit, visited.job, filter, after, [])
    if after is not None:
        return visited.visit.part("parts/pending_rows.html", grid=page, job=visited.shape)
    reads = visited.visit.parts.console.ranges
    ranges = await reads.of_job(visited.job.id, _RANGES)
    count = await reads.count(visited.job.id)
    return await visited.page("pending", grid=page, ranges=ranges, ranges_count=count)


@router.get("/errors")
async def errors(visited: VisitedJob) -> Response:
    return await visited.page("errors")


@router.get("/pace")
async def pace(visited: VisitedJob) -> Response:
    """Shows what the controllers changed, and why."""
    parts, job = visited.visit.parts, visited.job
    changes = await api.pace_changes(job, parts, limit=_PACE_CHANGES)
    gates = await parts.store.gates.of_job(job.id, MOST_GATES)
    return await visited.page("pace", changes=changes.decisions, gates=gates)


@router.get("/pace/charts")
async def charts_of_pace(visited: VisitedJob) -> JSONResponse:
    parts, job = visited.visit.parts, visited.job
    names = [gate["gate"] for gate in await parts.store.gates.of_job(job.id, MOST_GATES)]
    return JSONResponse(await pace_charts(parts, job, names))


@router.get("/streams")
async def job_streams(visited: VisitedJob) -> Response:
    rows = await streams.of_job(visited.job, visited.visit.parts)
    return await visited.page("streams", streams=rows.streams)


@router.get("/audit")
async def job_audit(visited: VisitedJob) -> Response:
    visit = visited.visit
    log = await audit.index(
        visit.person, visit.parts, job_id=visited.job.id, page_size=_AUDIT_ENTRIES
    )
    return await visited.page("audit", entries=log.entries)
