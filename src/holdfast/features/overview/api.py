"""The overview: backlog and its age, totals over time, gates, workers, dead letters."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any

from fastapi import APIRouter
from pydantic import Field

from holdfast.server.identity import PartsOf, Someone
from holdfast.server.shapes import Shape

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
    points: list[dict[str, Any]] = Field(description="Totals over time of all jobs.")
    backlog: list[Backlog]
    workers: int
    dead_letters: int
    gates_closed: int
    kill_switches: int


@router.get("/workers", summary="List the live workers")
async def workers(person: Someone, parts: PartsOf) -> WorkerList:
    workers = await parts.store.workers.live()
    shown = WorkerShape.model_fields
    return WorkerList(
        workers=[WorkerShape(**{name: worker[name] for name in shown}) for worker in workers]
    )


@router.get("/overview", summary="Show the overview")
async def overview(person: Someone, parts: PartsOf) -> Overview:
    """Returns totals only; no records."""
    reads = parts.store.reads
    live = await parts.store.workers.live()
    backlog = [
        Backlog(pipeline=pipeline, open=depth, oldest_seconds=age)
        for pipeline, depth, age in await reads.queue_depth()
    ]
    return Overview(
        points=[asdict(point) for point in parts.feed.points],
        backlog=backlog,
        # Without processes that run no items, such as the API and timers.
        workers=sum(1 for worker in live if worker["pipelines"]),
        dead_letters=sum((await reads.count_dead_letters()).values()),
        gates_closed=sum(1 for gate in await parts.store.gates.all() if gate["closed"]),
        kill_switches=len(await reads.kill_switches()),
    )
