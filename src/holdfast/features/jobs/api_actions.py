"""Actions on a job: pause, resume, cancel, reprocess, skip, and process within a request."""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from pydantic import Field

from holdfast.errors import Throttled, UnfitState, UserError
from holdfast.features.accounts.person import Person
from holdfast.features.bulk.api import OperationShape, operation_shape
from holdfast.features.bulk.bulk import BulkRequest
from holdfast.features.items.items import ItemFilter
from holdfast.features.jobs.api import ScopedJob, describe_job
from holdfast.model import ItemStatus, Job, JobState
from holdfast.server.dependencies import Parts
from holdfast.server.idempotency import IdempotentRoute, request_key
from holdfast.server.identity import Operator, PartsOf, parts_of
from holdfast.server.shapes import Counts, Id, JobShape, Shape, Text


class _ActionRoute(IdempotentRoute):
    """A route of an action; only `reprocess` creates something: an operation."""

    async def describe(self, request: Request, person: Person, made: int) -> str:
        operation = await parts_of(request).console.operations.operation(made)
        shape = Reprocessed(opened=None, left=None, operation=operation_shape(operation))
        return shape.model_dump_json(by_alias=True)


router = APIRouter(prefix="/api/jobs/{jobId}", tags=["jobs"], route_class=_ActionRoute)

_DEFAULT_STATUSES = (ItemStatus.ERROR, ItemStatus.NOT_FOUND)


class Resume(Shape):
    max_items: int | None = Field(default=None, ge=1, le=10**12, description="The new cap.")
    max_per_source: int | None = Field(default=None, ge=1, le=10**12)


class Kickoff(Shape):
    job: JobShape
    worked: int = Field(description="Items that were finished in the meantime, by any worker.")
    counters: Counts


class Reprocess(Shape):
    scope: Literal["job", "items"] = "job"
    item_ids: list[Id] = Field(default=[], max_length=10_000, examples=[[3, 7]])
    statuses: list[ItemStatus] = Field(default=list(_DEFAULT_STATUSES))
    reset_attempts: bool = Field(
        default=False,
        description="Count attempts from zero; otherwise items without attempts left are skipped.",
    )
    include_permanent: bool = Field(default=False, description="Include permanent errors.")
    items_per_second: float | None = Field(default=None, gt=0, le=1_000_000)


class Reprocessed(Shape):
    opened: int | None = Field(description="Items that are open again; with scope `items`.")
    left: int | None = Field(
        description="Items left unchanged: still open, or nonexistent; with scope `items`."
    )
    operation: OperationShape | None = Field(
        description="The operation that reprocesses them; with scope `job`."
    )


class SkipItems(Shape):
    item_ids: list[Id] = Field(min_length=1, max_length=10_000, examples=[[3, 7]])
    reason: Text = Field(default="", description="Stored with each item and in the audit log.")


class Skipped(Shape):
    skipped: int
    left: int = Field(description="Items left unchanged: finished, or in progress.")


_NO_CHANGE = Resume()
_KICKOFF_MAX_SECONDS = 30.0


@router.post("/kickoff", summary="Process a job for a moment, within this request")
async def kickoff(
    job: ScopedJob,
    person: Operator,
    parts: PartsOf,
    duration_ms: Annotated[int, Query(alias="durationMs", ge=1, le=3_600_000)] = 5000,
) -> Kickoff:
    """This is safe while workers run. It takes at most 30 seconds."""
    if job.state is not JobState.RUNNING:
        raise UnfitState(f"job {job.id} is {job.state}", "Only a RUNNING job can be processed.")
    if job.pipeline not in parts.pipelines:
        raise UserError(f"this server does not have the pipeline {job.pipeline}")
    await parts.store.audit.add(person.name, "kickoff", job.id, "", {"milliseconds": duration_ms})
    before = await parts.store.reads.counters(job.id)
    await _work(job, parts, duration_ms / 1000)
    shape = await _described(job, person, parts)
    after = await parts.store.reads.counters(job.id)
    worked = max(0, after.finished - before.finished)
    return Kickoff(job=shape, worked=worked, counters=shape.counters)


async def _work(job: Job, parts: Parts, seconds: float) -> None:
    if parts.kickoffs.locked():
        raise Throttled(
            "other kickoffs are in progress", 5, "Try again in a moment, or start a worker."
        )
    async with parts.kickoffs:
        worker = parts.new_worker(job.id)
        running = asyncio.create_task(worker.run())
        await asyncio.wait([running], timeout=min(seconds, _KICKOFF_MAX_SECONDS))
        worker.stop()
        await running


@router.post("/pause", summary="Pause a job")
async def pause(job: ScopedJob, person: Operator, parts: PartsOf) -> JobShape:
    """No further item starts; items in progress finish."""
    await parts.control(person.name).pause(job.id)
    return await _described(job, person, parts)


@router.post("/resume", summary="Resume a job")
async def resume(
    job: ScopedJob, person: Operator, parts: PartsOf, body: Resume = _NO_CHANGE
) -> JobShape:
    """Continues the job after a pause, after a failed discovery, or beyond a cap that is raised."""
    control, quota = parts.control(person.name), parts.console.quotas.of_jobs
    await control.resume(job.id, body.max_items, body.max_per_source, quota)
    return await _described(job, person, parts)


@router.post("/cancel", summary="Cancel a job permanently")
async def cancel(job: ScopedJob, person: Operator, parts: PartsOf) -> JobShape:
    """Its open items become SKIPPED."""
    await parts.control(person.name).cancel(job.id)
    return await _described(job, person, parts)


@router.post("/reprocess", status_code=202, summary="Reprocess finished items")
async def reprocess(
    job: ScopedJob, body: Reprocess, request: Request, person: Operator, parts: PartsOf
) -> Reprocessed:
    """Reopens either the named items at once (open ones are left unchanged), or all items with
    certain statuses step by step, by default without permanent errors and items that have no
    attempts left, which the operation counts."""
    if body.scope == "items":
        return await _reprocess_items(job, body, person, parts)
    if body.item_ids:
        raise UserError("itemIds needs scope `items`")
    if job.state is JobState.CANCELLED:
        raise UnfitState(f"job {job.id} is CANCELLED", "Start a new job.")
    bulk = BulkRequest(
        kind="reprocess",
        job_ids=[job.id],
        items=ItemFilter(tuple(body.statuses)),
        reset_attempts=body.reset_attempts,
        include_permanent=body.include_permanent,
        items_per_second=body.items_per_second,
    )
    operation = await parts.bulk.start(bulk, person, request_key(request))
    return Reprocessed(opened=None, left=None, operation=operation_shape(operation))


async def _reprocess_items(job: Job, body: Reprocess, person: Person, parts: Parts) -> Reprocessed:
    if not body.item_ids:
        raise UserError("scope `items` needs itemIds")
    control = parts.control(person.name)
    opened = await control.reprocess_items(job.id, body.item_ids, body.reset_attempts)
    return Reprocessed(opened=opened, left=len(set(body.item_ids)) - opened, operation=None)


@router.post("/skip", summary="Skip open items")
async def skip(job: ScopedJob, body: SkipItems, person: Operator, parts: PartsOf) -> Skipped:
    """Skips those of the named items that are open and not in progress. To skip everything that
    matches a filter, start an operation."""
    skipped = await parts.control(person.name).skip_items(job.id, body.item_ids, body.reason)
    return Skipped(skipped=skipped, left=len(set(body.item_ids)) - skipped)


async def _described(job: Job, person: Person, parts: Parts) -> JobShape:
    return await describe_job(await parts.store.reads.job(job.id), person, parts)
