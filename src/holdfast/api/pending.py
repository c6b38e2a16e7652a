"""Everything pending, over all jobs: what waits, since when, and who has it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request
from pydantic import Field

from holdfast.api.cursors import Cursors
from holdfast.api.flags import Flag, require_flag
from holdfast.api.identity import PartsOf, Person, Someone
from holdfast.api.items import (
    After,
    From,
    NoOffset,
    PageSize,
    Statuses,
    To,
    in_utc,
    refuse_offsets,
    statuses_of,
    summary,
)
from holdfast.api.parts import Parts
from holdfast.api.shapes import Id, Shape
from holdfast.api.timing import timed_page
from holdfast.clock import Clock
from holdfast.console.items import ItemFilter, ItemPage
from holdfast.errors import NotAllowed, UserError
from holdfast.model import OPEN, ItemStatus

router = APIRouter(prefix="/api/pending", tags=["items"])

_COUNT_SECONDS = 30.0
_COUNTS = 1000


class PendingItem(Shape):
    job_id: int
    job_name: str
    job_type: str = Field(description="The job's pipeline.")
    owner_id: str
    seq: int
    status: ItemStatus
    input_summary: str
    attempts: int
    error_code: str | None
    locked_by: str | None
    updated_at: datetime | None


class PendingList(Shape):
    items: list[PendingItem]
    next: str | None
    pending_count: int = Field(description="Of the whole list; up to half a minute old.")


class PendingCounts:
    """Counts that many pages ask for, read at most twice a minute each."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[tuple[str | None, str | None, int], tuple[float, int]] = {}

    async def get(self, parts: Parts, scope: str | None, pipeline: str | None, job_id: int) -> int:
        key = (scope, pipeline, job_id)
        now = self._clock.monotonic()
        known = self._known.get(key)
        if known is not None and now < known[0] + _COUNT_SECONDS:
            return known[1]
        count = await parts.console.items.pending_count(scope, pipeline, job_id)
        if len(self._known) >= _COUNTS:
            self._known.clear()
        self._known[key] = (now, count)
        if key == (None, None, 0):
            parts.metrics.pending_items.set(count)
        return count


@router.get(
    "",
    summary="Page through everything pending",
    dependencies=[Depends(require_flag(Flag.PENDING))],
)
async def index(
    request: Request,
    person: Someone,
    parts: PartsOf,
    statuses: Statuses = "PENDING,PROCESSING",
    status: Annotated[str, Query(include_in_schema=False)] = "",
    user_id: Annotated[Literal["me", "all"], Query(alias="userId")] = "me",
    job_type: Annotated[str | None, Query(alias="jobType", max_length=200)] = None,
    job_id: Annotated[Id | None, Query(alias="jobId")] = None,
    since: From = None,
    until: To = None,
    page_size: PageSize = 100,
    after: After = None,
    page: NoOffset = None,
    sort: NoOffset = None,
) -> PendingList:
    """The longest waiting first. `userId=all` is for those who may see everybody's jobs."""
    refuse_offsets(page, sort)
    wanted = _open_only(statuses_of(status or statuses))
    scope = _scope(person, user_id)
    filter = ItemFilter(wanted, None, in_utc(since), in_utc(until))
    bound = {"scope": scope, "type": job_type, "job": job_id, "filter": str(filter)}
    cursors = Cursors(parts.secret, "pending", person.name, bound)
    position = cursors.read(after)
    async with timed_page(parts, "pending", position):
        if job_id is None:
            found = await parts.console.items.pending(scope, job_type, filter, position, page_size)
        else:
            job = await parts.console.jobs.job(job_id, scope)
            found = await parts.console.items.page(job, filter, position, page_size)
    counts: PendingCounts = request.app.state.pending_counts
    return PendingList(
        items=await _shapes(found, parts),
        next=None if found.next is None else cursors.write(found.next),
        pending_count=await counts.get(parts, scope, job_type, job_id or 0),
    )


def _open_only(statuses: tuple[ItemStatus, ...]) -> tuple[ItemStatus, ...]:
    refused = [status for status in statuses if status not in OPEN]
    if refused:
        raise UserError(f"{refused[0]} items are not pending", "Choose among PENDING, PROCESSING.")
    return statuses or (ItemStatus.PENDING, ItemStatus.PROCESSING)


def _scope(person: Person, user_id: str) -> str | None:
    if user_id == "me":
        return person.name
    if person.scope is not None:
        raise NotAllowed("only admins and readers see everybody's", "Use userId=me.")
    return None


async def _shapes(found: ItemPage, parts: Parts) -> list[PendingItem]:
    jobs = await parts.console.items.job_types(sorted({item.job_id for item in found.items}))
    shapes = []
    for item in found.items:
        pipeline, owner, name = jobs.get(item.job_id, ("", "", ""))
        shapes.append(
            PendingItem(
                job_id=item.job_id,
                job_name=name,
                job_type=pipeline,
                owner_id=owner,
                seq=item.seq,
                status=item.status,
                input_summary=summary(item.input),
                attempts=item.attempts,
                error_code=item.error_code,
                locked_by=item.worker,
                updated_at=item.updated_at,
            )
        )
    return shapes
