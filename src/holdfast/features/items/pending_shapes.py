"""Pending items of all jobs, as programs and people see them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from pydantic import Field

from holdfast.errors import NotAllowed, UserError
from holdfast.features.accounts.person import Person
from holdfast.features.items.item_filters import in_utc, statuses_of
from holdfast.features.items.item_lists import PendingScope, summary
from holdfast.features.items.items import ItemFilter, ItemPage
from holdfast.features.jobs.reads import JobOfItems
from holdfast.model import OPEN, ItemStatus
from holdfast.server.cursors import Cursors
from holdfast.server.dependencies import Parts
from holdfast.server.shapes import Shape


@dataclass(frozen=True, slots=True)
class PendingRequest:
    """Which open items are asked for; `of` is "me" or "all"."""

    statuses: str
    of: str
    pipeline: str | None = None
    job_id: int | None = None
    since: datetime | None = None
    until: datetime | None = None


class PendingItem(Shape):
    job_id: int
    job_name: str
    pipeline: str
    job_progress: float | None = Field(description="Finished share of the job's items, 0 to 1.")
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
    pending_count: int = Field(description="Of the whole list; up to 30 seconds old.")


def pending_shown(scope: PendingScope, filter: ItemFilter) -> dict[str, str]:
    """Returns what a cursor is bound to, so that it fits no other list."""
    return {"scope": str(scope), "filter": str(filter)}


def _open_only(text: str) -> tuple[ItemStatus, ...]:
    statuses = statuses_of(text)
    for status in statuses:
        if status not in OPEN:
            raise UserError(f"{status} items are not pending", "Choose PENDING or PROCESSING.")
    return statuses or (ItemStatus.PENDING, ItemStatus.PROCESSING)


def _owner(person: Person, user_id: str) -> str | None:
    if user_id == "me":
        return person.name
    if person.scope is not None:
        raise NotAllowed("only admins and readers can see other users' items", "Use userId=me.")
    return None


async def _shapes(page: ItemPage, parts: Parts) -> list[PendingItem]:
    jobs = await parts.console.jobs.of_items(sorted({item.job_id for item in page.items}))
    shapes = []
    for item in page.items:
        job = jobs.get(item.job_id, JobOfItems("", "", "", 0, 0))
        shapes.append(
            PendingItem(
                job_id=item.job_id,
                job_name=job.name,
                pipeline=job.pipeline,
                job_progress=job.progress,
                owner_id=job.owner_id,
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


async def pending_page(
    request: PendingRequest, person: Person, parts: Parts, size: int, after: str | None
) -> PendingList:
    """Lists open items of all jobs, those that wait longest first."""
    scope = PendingScope(_owner(person, request.of), request.pipeline, request.job_id)
    filter = ItemFilter(
        _open_only(request.statuses), None, in_utc(request.since), in_utc(request.until)
    )
    cursors = Cursors(parts.secret, "pending", person.name, pending_shown(scope, filter))
    found = await parts.item_lists.pending(scope, filter, cursors.read(after), size)
    return PendingList(
        items=await _shapes(found, parts),
        next=None if found.next is None else cursors.write(found.next),
        pending_count=await parts.item_lists.pending_count(scope),
    )
