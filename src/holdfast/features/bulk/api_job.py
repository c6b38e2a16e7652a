"""Items of one job, as programs have them processed again or skipped."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter, Request
from pydantic import Field

from holdfast.errors import UnfitState, UserError
from holdfast.features.accounts.person import Person
from holdfast.features.bulk.bulk import BulkRequest
from holdfast.features.bulk.shapes import OperationShape, operation_shape
from holdfast.features.items.items import ItemFilter
from holdfast.features.jobs.scoped_job import ScopedJob
from holdfast.model import ItemStatus, Job, JobState
from holdfast.server.dependencies import Parts
from holdfast.server.idempotency import IdempotentRoute, request_key
from holdfast.server.identity import Operator, PartsOf, parts_of
from holdfast.server.shapes import Id, Shape, Text


class _ReprocessRoute(IdempotentRoute):
    """One route creates something: `reprocess`, an operation."""

    async def describe(self, request: Request, person: Person, made: int) -> str:
        operation = await parts_of(request).console.operations.operation(made)
        shape = Reprocessed(opened=None, left=None, operation=operation_shape(operation))
        return shape.model_dump_json(by_alias=True)


router = APIRouter(prefix="/api/jobs/{jobId}", tags=["jobs"], route_class=_ReprocessRoute)

_DEFAULT_STATUSES = (ItemStatus.ERROR, ItemStatus.NOT_FOUND)


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
