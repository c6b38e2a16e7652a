"""The overview: the state of everything, without a click."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from fastapi.responses import JSONResponse

from holdfast.features.gates.shapes import all_gates
from holdfast.features.jobs.charts import all_charts, by_category
from holdfast.features.jobs.shapes import jobs_page
from holdfast.server.context import Visit, Visitor
from holdfast.server.shapes import JobShape

router = APIRouter()

_JOBS = 8
_ACTIVE = "RUNNING,QUEUED,PAUSED,FAILED"
_FINISHED = "DONE,CANCELLED"
_ERROR_SECONDS = 3600.0
#: span -> seconds
_SPANS = {"1h": 3600.0, "24h": 86_400.0, "7d": 7 * 86_400.0}

Span = Annotated[str, Query(pattern="^(1h|24h|7d)$")]


@router.get("/")
async def show(visit: Visitor, span: Span = "1h") -> Response:
    return await visit.page(
        "overview.html", here="overview", span=span, spans=_SPANS, **await _figures(visit)
    )


@router.get("/figures")
async def figures(visit: Visitor) -> Response:
    """Shows the figures alone, which the page refreshes while it is open."""
    return visit.part("parts/overview_figures.html", **await _figures(visit))


@router.get("/charts")
async def charts(visit: Visitor, span: Span = "1h") -> JSONResponse:
    return JSONResponse(await all_charts(visit.parts, visit.person.scope, _SPANS[span]))


async def _figures(visit: Visit) -> dict[str, Any]:
    parts = visit.parts
    active, finished = await _jobs(visit, _ACTIVE), await _jobs(visit, _FINISHED)
    ids = [job.id for job in (*active, *finished)]
    backlog = await parts.store.reads.queue_depth()
    duties = await parts.store.workers.duties()
    letters = await parts.store.reads.count_dead_letters()
    return {
        "active": active,
        "finished": finished,
        "backlog": backlog,
        "open": sum(depth for _, depth, _ in backlog),
        "oldest": max((age for _, _, age in backlog), default=None),
        "rate": sum(job.rate_per_second or 0 for job in active),
        # The API and timers give signs of life too, and process nothing.
        "workers": [each for each in await parts.store.workers.live() if each["pipelines"]],
        "closed": [gate for gate in await all_gates(parts) if gate.closed],
        "swept": duties["sweep"][1] if "sweep" in duties else None,
        "switches": await parts.store.reads.kill_switches(),
        "letters": sum(letters.values()),
        "categories": by_category(await parts.console.samples.latest_errors(ids, _ERROR_SECONDS)),
    }


async def _jobs(visit: Visit, states: str) -> list[JobShape]:
    return (await jobs_page(visit.person, visit.parts, _JOBS, states=states)).jobs
