"""One job: how it stands at a glance, and what lies behind it, tab by tab."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Response
from fastapi.responses import JSONResponse

from holdfast.api import audit, job_details, streams
from holdfast.api.jobs import tell
from holdfast.api.shapes import Id, JobShape
from holdfast.console.value_search import Value, searchable_columns, value_named
from holdfast.model import FINAL, ItemStatus, Job
from holdfast.web.charts import by_category, job_charts
from holdfast.web.filtering import wanted
from holdfast.web.grid import grid_page, matching
from holdfast.web.reasons import Told, told_why
from holdfast.web.visit import Visit, Visitor

router = APIRouter(prefix="/jobs/{job_id}")

_DECISIONS = 200
_AUDIT = 200
Filter = Annotated[str, Query(max_length=500)]


@dataclass(frozen=True, slots=True)
class Shown:
    """The job, if the visitor may see it."""

    visit: Visit
    job: Job
    shape: JobShape

    @property
    def why(self) -> Told | None:
        return told_why(self.job, self.shape.why)

    def columns(self, name: str, value: str) -> Value:
        """The column that a word of the filter names."""
        pipeline = self.visit.parts.pipelines.get(self.job.pipeline)
        return value_named(name, value, self.job, searchable_columns(self.job, pipeline))

    async def told(self) -> dict[str, Any]:
        """What every tab shows above itself."""
        found = await job_details.errors(self.job, self.visit.parts)
        return {
            "job": self.shape,
            "why": self.why,
            "groups": found.errors,
            "estimated": not all(each.exact for each in found.errors),
            "categories": by_category({each.code or "": each.count for each in found.errors}),
        }

    async def page(self, tab: str, **context: Any) -> Response:
        told = await self.told()
        return await self.visit.page("job.html", here="jobs", tab=tab, **told, **context)


async def shown_job(job_id: Annotated[Id, Path()], visit: Visitor) -> Shown:
    job = await visit.parts.console.jobs.job(job_id, visit.person.scope)
    return Shown(visit, job, await tell(job, visit.person, visit.parts, visit.request))


ShownJob = Annotated[Shown, Depends(shown_job)]


@router.get("")
async def results(
    shown: ShownJob,
    q: Filter = "",
    columns: Annotated[list[str], Query(max_length=200)] = [],  # noqa: B006
    after: str | None = None,
) -> Response:
    """The grid; its further pages come as rows alone."""
    which = wanted(q, shown.columns)
    page = await grid_page(shown.visit, shown.job, which, after, columns)
    context = {"grid": page, "which": which, "job": shown.shape}
    if after is not None:
        return shown.visit.part("parts/item_rows.html", **context)
    unknown = (0, False)
    count, exact = unknown if which.values else await matching(shown.visit, shown.job, which)
    statuses = [status for status in ItemStatus if status is not ItemStatus.PROCESSING]
    return await shown.page(
        "results", grid=page, which=which, count=count, exact=exact, statuses=statuses, final=FINAL
    )


@router.get("/head")
async def head(shown: ShownJob) -> Response:
    """How it stands, alone: the page asks again while the job runs."""
    return shown.visit.part("parts/job_again.html", **await shown.told())


@router.get("/charts")
async def charts(shown: ShownJob) -> JSONResponse:
    return JSONResponse(await job_charts(shown.visit.parts, shown.job.id))


@router.get("/pending")
async def pending(shown: ShownJob, after: str | None = None) -> Response:
    which = wanted("status:PENDING,PROCESSING")
    page = await grid_page(shown.visit, shown.job, which, after, [])
    if after is not None:
        return shown.visit.part("parts/pending_rows.html", grid=page, job=shown.shape)
    ranges = await shown.visit.parts.console.ranges.of_job(shown.job.id, 20)
    count = await shown.visit.parts.console.ranges.count(shown.job.id)
    return await shown.page("pending", grid=page, ranges=ranges, ranges_count=count)


@router.get("/errors")
async def errors(shown: ShownJob) -> Response:
    return await shown.page("errors")


@router.get("/pace")
async def pace(shown: ShownJob) -> Response:
    """What the controllers changed, and why."""
    found = await job_details.decisions(shown.job, shown.visit.parts, _DECISIONS)
    return await shown.page("pace", decisions=found.decisions)


@router.get("/streams")
async def walked(shown: ShownJob) -> Response:
    found = await streams.of_job(shown.job, shown.visit.parts)
    return await shown.page("streams", streams=found.streams)


@router.get("/audit")
async def audited(shown: ShownJob) -> Response:
    visit = shown.visit
    found = await audit.index(visit.person, visit.parts, shown.job.id, _AUDIT, None)
    return await shown.page("audit", entries=found.entries)
