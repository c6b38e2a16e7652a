"""How a pipeline's decisions become the store's: its orders, and what it says about a job's end."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from holdfast.model import Job, Lane, Standing
from holdfast.pipeline import Conclusion, Pipeline, Planned, Standings, Start, Tx
from holdfast.store import Ending, NewJob, NewStream, Orders
from holdfast.store.plans import Plan


def orders_of(pipeline: Pipeline, owner: str, actor: str) -> Orders:
    def make_job(start: Start) -> NewJob:
        return NewJob(
            pipeline=pipeline.name,
            name=start.name,
            streams=[NewStream(start.source, pipeline.fingerprint(start.source, start.options))],
            owner_id=owner,
            mode=start.mode,
            lane=Lane.BACKFILL if pipeline.lane is Lane.UPLOAD else pipeline.lane,
            input_key=f"{start.source} {start.mode}",
            columns=pipeline.columns,
            options={**start.options, "_file": pipeline.file},
            concludes=pipeline.concludes,
        )

    return Orders(pipeline.name, actor, make_job)


def plan_of(pipeline: Pipeline, request: Mapping[str, Any]) -> Plan:
    async def plan(tx: Tx, standings: Standings, now: datetime) -> Planned:
        return await pipeline.plan(tx, dict(request), standings, now)

    return plan


def ending_of(pipeline: Pipeline, job: Job) -> Ending | None:
    """None where the pipeline has nothing to say about the end of its jobs."""
    if not pipeline.concludes:
        return None

    async def conclude(tx: Tx, standing: Standing) -> Conclusion:
        return await pipeline.conclude(tx, job, standing)

    async def follow(tx: Tx, source: str, standings: Standings, now: datetime) -> Planned:
        if not pipeline.plans:
            return Planned()
        return await pipeline.plan(tx, {"follow": source}, standings, now)

    return Ending(orders_of(pipeline, job.owner_id, "engine"), conclude, follow)
