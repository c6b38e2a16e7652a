"""Finishes jobs whose pipeline has a `conclude`."""

from __future__ import annotations

from holdfast.errors import NotThere
from holdfast.kernel.jobs.planning import planner_at_end
from holdfast.kernel.worker.upkeep.parts import UpkeepParts


async def conclude(parts: UpkeepParts) -> None:
    """Finishes jobs whose `conclude` must run here because the worker that should have finished
    them is gone."""
    concluding = {name for name, pipeline in parts.pipelines.items() if pipeline.concludes}
    if not concluding:
        return
    for job_id in await parts.store.reads.finishable_jobs():
        try:
            job = await parts.store.reads.job(job_id)
        except NotThere:  # deleted since
            continue
        if job.pipeline in concluding:
            planner = planner_at_end(parts.pipelines[job.pipeline], job)
            await parts.store.outcomes.complete(job_id, planner)
