"""What people order a job to do."""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from pydantic import Field

from holdfast.api.dependencies import Parts
from holdfast.api.idempotency import AnsweredOnce, request_key
from holdfast.api.identity import Operator, PartsOf, Person, parts_of
from holdfast.api.jobs import ScopedJob, tell
from holdfast.api.operations import (
    Filter,
    NewOperationBody,
    OperationShape,
    begin,
    operation_shape,
)
from holdfast.api.shapes import Counts, Id, JobShape, Shape, Text
from holdfast.engine.control import Caps
from holdfast.errors import Throttled, UnfitState, UserError
from holdfast.model import ItemStatus, Job, JobState


class _OrderedOnce(AnsweredOnce):
    """Of the orders, only `reprocess` makes something: an operation."""

    async def retell(self, request: Request, person: Person, made: int) -> str:
        found = await parts_of(request).console.operations.operation(made)
        told = Reprocessed(opened=None, left=None, operation=operation_shape(found))
        return told.model_dump_json(by_alias=True)


router = APIRouter(prefix="/api/jobs/{jobId}", tags=["jobs"], route_class=_OrderedOnce)

_AGAIN = (ItemStatus.ERROR, ItemStatus.NOT_FOUND)


class Resume(Shape):
    max_items: int | None = Field(default=None, ge=1, le=10**12, description="The new cap.")
    max_per_source: int | None = Field(default=None, ge=1, le=10**12)


class Kicked(Shape):
    job: JobShape
    worked: int = Field(description="Items that were finished meanwhile, by anybody.")
    counters: Counts


class Reprocess(Shape):
    scope: Literal["job", "items"] = "job"
    item_ids: list[Id] = Field(default=[], max_length=10_000, examples=[[3, 7]])
    statuses: list[ItemStatus] = Field(default=list(_AGAIN))
    reset_attempts: bool = Field(
        default=False, description="Count attempts from zero; without it, exhausted items stay."
    )
    include_permanent: bool = Field(default=False, description="Also errors that never pass.")
    items_per_second: float | None = Field(default=None, gt=0, le=1_000_000)


class Reprocessed(Shape):
    opened: int | None = Field(description="Items that are open again; with scope `items`.")
    left: int | None = Field(description="Left alone: open still, or not there; with `items`.")
    operation: OperationShape | None = Field(description="What goes on; with scope `job`.")


class SkipItems(Shape):
    item_ids: list[Id] = Field(min_length=1, max_length=10_000, examples=[[3, 7]])
    reason: Text = Field(default="", description="Kept with each item and in the audit.")


class Skipped(Shape):
    skipped: int
    left: int = Field(description="Left alone: finished, or a worker has them now.")


_NO_CHANGE = Resume()


@router.post("/kickoff", summary="Work on a job for a moment, within this request")
async def kickoff(
    job: ScopedJob,
    request: Request,
    person: Operator,
    parts: PartsOf,
    duration_ms: Annotated[int, Query(alias="durationMs", ge=1, le=3_600_000)] = 5000,
) -> Kicked:
    """Safe beside workers. The time is cut to HOLDFAST_KICKOFF_MAX_SECONDS."""
    if job.state is not JobState.RUNNING:
        raise UnfitState(f"job {job.id} is {job.state}", "Only a RUNNING job can be worked on.")
    if job.pipeline not in parts.pipelines:
        raise UserError(f"this server does not have the pipeline {job.pipeline}")
    await parts.store.audit.add(person.name, "kickoff", job.id, "", {"milliseconds": duration_ms})
    before = await parts.store.reads.counters(job.id)
    await _work(job, parts, request, duration_ms / 1000)
    told = await tell(await parts.store.reads.job(job.id), person, parts, request)
    after = await parts.store.reads.counters(job.id)
    worked = max(0, after.finished - before.finished)
    return Kicked(job=told, worked=worked, counters=told.counters)


async def _work(job: Job, parts: Parts, request: Request, seconds: float) -> None:
    places: asyncio.Semaphore = request.app.state.kickoffs
    if places.locked():
        raise Throttled("other kickoffs are under way", 5, "Try again soon, or start a worker.")
    async with places:
        worker = parts.new_worker(job.id)
        running = asyncio.create_task(worker.run())
        await asyncio.wait([running], timeout=min(seconds, parts.options.kickoff_max_seconds))
        worker.stop()
        await running


@router.post("/pause", summary="Pause a job")
async def pause(job: ScopedJob, request: Request, person: Operator, parts: PartsOf) -> JobShape:
    """No further item starts; what runs may settle."""
    await parts.control(person.name).pause(job.id)
    return await _told(job, person, parts, request)


@router.post("/resume", summary="Go on with a job")
async def resume(
    job: ScopedJob,
    request: Request,
    person: Operator,
    parts: PartsOf,
    body: Resume = _NO_CHANGE,
) -> JobShape:
    """After a pause, after a failed discovery, or past a cap that is raised."""
    await parts.control(person.name).resume(job.id, Caps(body.max_items, body.max_per_source))
    return await _told(job, person, parts, request)


@router.post("/cancel", summary="Cancel a job for good")
async def cancel(job: ScopedJob, request: Request, person: Operator, parts: PartsOf) -> JobShape:
    """Its open items count as SKIPPED."""
    await parts.control(person.name).cancel(job.id)
    return await _told(job, person, parts, request)


@router.post("/reprocess", status_code=202, summary="Open finished items again")
async def reprocess(
    job: ScopedJob, body: Reprocess, request: Request, person: Operator, parts: PartsOf
) -> Reprocessed:
    """The named items at once, those still open left alone; or all of some statuses step by step,
    by default without permanent errors and items whose attempts are used up, which the operation
    counts."""
    if body.scope == "items":
        if not body.item_ids:
            raise UserError("scope `items` needs itemIds")
        control = parts.control(person.name)
        opened = await control.reprocess_items(job.id, body.item_ids, body.reset_attempts)
        left = len(set(body.item_ids)) - opened
        return Reprocessed(opened=opened, left=left, operation=None)
    if body.item_ids:
        raise UserError("itemIds needs scope `items`")
    if job.state is JobState.CANCELLED:
        raise UnfitState(f"job {job.id} is CANCELLED", "Make a new job.")
    wanted = NewOperationBody(
        kind="reprocess",
        filter=Filter(job_ids=[job.id], statuses=body.statuses),
        reset_attempts=body.reset_attempts,
        include_permanent=body.include_permanent,
        items_per_second=body.items_per_second,
    )
    begun = await begin(wanted, person, parts, request_key(request))
    return Reprocessed(opened=None, left=None, operation=operation_shape(begun))


@router.post("/skip", summary="Skip open items")
async def skip(job: ScopedJob, body: SkipItems, person: Operator, parts: PartsOf) -> Skipped:
    """Those of the named items that are open and that no worker has. For everything that matches a
    filter, begin an operation."""
    skipped = await parts.control(person.name).skip_items(job.id, body.item_ids, body.reason)
    return Skipped(skipped=skipped, left=len(set(body.item_ids)) - skipped)


async def _told(job: Job, person: Person, parts: Parts, request: Request) -> JobShape:
    return await tell(await parts.store.reads.job(job.id), person, parts, request)
