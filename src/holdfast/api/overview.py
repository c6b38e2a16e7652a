"""How everything stands: backlog and its age, rates, gates, workers, dead letters."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any

from fastapi import APIRouter, Request
from pydantic import Field

from holdfast.api.identity import PartsOf, Someone
from holdfast.api.live import Feed
from holdfast.api.shapes import Shape

router = APIRouter(prefix="/api", tags=["overview"])


class WorkerShape(Shape):
    name: str
    host: str
    pid: int
    pipelines: list[str]
    started_at: datetime | None
    seen_at: datetime | None


class WorkerList(Shape):
    workers: list[WorkerShape]


class Backlog(Shape):
    pipeline: str
    open: int
    oldest_seconds: float


class Overview(Shape):
    points: list[dict[str, Any]] = Field(description="Totals over time, for everybody's jobs.")
    backlog: list[Backlog]
    workers: int
    dead_letters: int
    gates_closed: int
    kill_switches: int


@router.get("/workers", summary="List the live workers")
async def workers(person: Someone, parts: PartsOf) -> WorkerList:
    found = await parts.store.workers.live(parts.options.worker_lost_seconds)
    return WorkerList(workers=[WorkerShape(**each) for each in found])


@router.get("/overview", summary="How everything stands")
async def overview(request: Request, person: Someone, parts: PartsOf) -> Overview:
    """Totals only: nothing of anybody's records."""
    feed: Feed = request.app.state.feed
    reads = parts.store.reads
    backlog = [
        Backlog(pipeline=pipeline, open=depth, oldest_seconds=age)
        for pipeline, depth, age in await reads.queue_depth()
    ]
    return Overview(
        points=[asdict(point) for point in feed.points],
        backlog=backlog,
        workers=len(await parts.store.workers.live(parts.options.worker_lost_seconds)),
        dead_letters=sum((await reads.count_dead_letters()).values()),
        gates_closed=sum(1 for gate in await parts.store.gates.all() if gate["closed"]),
        kill_switches=len(await reads.kill_switches()),
    )
