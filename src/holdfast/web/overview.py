"""How everything stands, before anybody clicks."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from fastapi.responses import JSONResponse

from holdfast.api import gates, jobs
from holdfast.api import overview as api
from holdfast.web.charts import all_charts, by_category
from holdfast.web.visit import Visit, Visitor

router = APIRouter()

_JOBS = 8
_LIVE = "RUNNING,QUEUED,PAUSED,FAILED"
_ENDED = "DONE,CANCELLED"
_ERROR_SECONDS = 3600.0
#: span -> seconds
_SPANS = {"1h": 3600.0, "24h": 86_400.0, "7d": 7 * 86_400.0}

Span = Annotated[str, Query(pattern="^(1h|24h|7d)$")]


@router.get("/")
async def show(visit: Visitor, span: Span = "1h") -> Response:
    return await visit.page(
        "overview.html", here="overview", span=span, spans=_SPANS, **await _standing(visit)
    )


@router.get("/standing")
async def standing(visit: Visitor) -> Response:
    """The figures alone: the page asks again while it is open."""
    return visit.part("parts/standing.html", **await _standing(visit))


@router.get("/charts")
async def charts(visit: Visitor, span: Span = "1h") -> JSONResponse:
    return JSONResponse(await all_charts(visit.parts, visit.person.scope, _SPANS[span]))


async def _standing(visit: Visit) -> dict[str, Any]:
    request, person, parts = visit.request, visit.person, visit.parts
    live = (await jobs.index(request, person, parts, _LIVE, "", _JOBS, None)).jobs
    ended = (await jobs.index(request, person, parts, _ENDED, "", _JOBS, None)).jobs
    ids = [job.id for job in (*live, *ended)]
    backlog = await parts.store.reads.queue_depth()
    duties = await parts.store.upkeep.duties()
    letters = await parts.store.reads.count_dead_letters()
    return {
        "live": live,
        "ended": ended,
        "backlog": backlog,
        "open": sum(depth for _, depth, _ in backlog),
        "oldest": max((age for _, _, age in backlog), default=None),
        "rate": sum(job.rate_per_second or 0 for job in live),
        "workers": (await api.workers(person, parts)).workers,
        "closed": [gate for gate in (await gates.index(person, parts)).gates if gate.closed],
        "swept": duties["sweep"][1] if "sweep" in duties else None,
        "switches": await parts.store.reads.kill_switches(),
        "letters": sum(letters.values()),
        "categories": by_category(await parts.console.samples.latest_errors(ids, _ERROR_SECONDS)),
    }
