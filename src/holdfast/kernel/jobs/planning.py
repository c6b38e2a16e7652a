"""Connects a pipeline to the store's planning, and turns its orders into jobs."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.kernel import NewJob, NewStream
from holdfast.kernel.jobs.admission import NO_QUOTA, Quota
from holdfast.model import Job, Lane
from holdfast.orders import Start
from holdfast.pipeline import Pipeline
from holdfast.reading import Reading


@dataclass(frozen=True, slots=True)
class PipelinePlanner:
    """Plans for one owner; `actor` is who the audit log names.

    The quota applies to jobs that are requested over HTTP."""

    pipeline: Pipeline
    owner: str
    actor: str
    quota: Quota = NO_QUOTA

    def make_job(self, start: Start) -> NewJob:
        pipeline = self.pipeline
        own_lane = Lane.BACKFILL if pipeline.lane is Lane.UPLOAD else pipeline.lane
        return NewJob(
            pipeline=pipeline.name,
            name=start.name,
            streams=[
                NewStream(source, pipeline.fingerprint(source, start.options), start.cap_of(source))
                for source in start.sources
            ],
            owner_id=self.owner,
            mode=start.mode,
            lane=start.lane or own_lane,
            input_key=f"{';'.join(start.sources)} {start.mode}",
            columns=pipeline.columns,
            options=start.options,
            reading=Reading(pipeline_file=pipeline.file, plan=start.plan),
            max_items=start.max_items,
            concludes=pipeline.concludes,
            enabled_by=pipeline.enabled_by,
            most_open=self.quota.jobs,
            most_items=self.quota.items,
            takes_over=True,  # the plan has decided whose stream it is
        )


def planner_at_end(pipeline: Pipeline, job: Job) -> PipelinePlanner | None:
    """Returns the planner that ends the job; None if the pipeline does not conclude its jobs."""
    return PipelinePlanner(pipeline, job.owner_id, "engine") if pipeline.concludes else None
