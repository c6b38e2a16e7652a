"""A job's items: pages of them, and everything about one item."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Path, Query
from pydantic import Field

from holdfast.features.items.grid import grid_of
from holdfast.features.items.item_filters import in_utc, rulings_of, statuses_of
from holdfast.features.items.item_lists import summary
from holdfast.features.items.items import ItemFilter, ItemView
from holdfast.features.items.value_search import Value, values_of
from holdfast.features.jobs.api import ScopedJob
from holdfast.features.jobs.why import why_item_waits
from holdfast.features.rulings.rules import no_item
from holdfast.model import OPEN, ItemStatus, Job, JobState
from holdfast.server.cursors import Cursors
from holdfast.server.dependencies import Parts
from holdfast.server.identity import PartsOf, Someone
from holdfast.server.problems import Malformed
from holdfast.server.shapes import LARGEST_ID, Shape, Why

router = APIRouter(prefix="/api/jobs/{jobId}", tags=["items"])

Statuses = Annotated[
    str, Query(description="E.g. PENDING,PROCESSING; all if empty.", max_length=100)
]
PageSize = Annotated[int, Query(alias="pageSize", ge=1, le=1000)]
After = Annotated[str | None, Query(description="The `next` of the previous page.")]
From = Annotated[datetime | None, Query(alias="from", description="Changed at or after.")]
To = Annotated[datetime | None, Query(alias="to", description="Changed at or before.")]
Code = Annotated[str | None, Query(description="An error code.", pattern=r"^[A-Za-z0-9_.-]{1,60}$")]
Values = Annotated[
    list[str],
    Query(
        alias="value",
        max_length=10,
        description="A column and its value, e.g. `brand:acme`: an exact match, ignoring case; `*` "
        "matches anything. If repeated, all must match.",
    ),
]
RulingWord = Annotated[
    str,
    Query(
        max_length=40,
        description="Only items about which a decision counts: choose, edit, reject or any.",
    ),
]
#: Offsets are not supported: they get slower the deeper they go.
NoOffset = Annotated[str | None, Query(include_in_schema=False)]


class ItemShape(Shape):
    seq: int
    status: ItemStatus
    input_summary: str = Field(examples=["Oak chair, ACME"])
    row: dict[str, Any] = Field(description="The values of `columns`, as in an export.")
    result_too_large: bool = Field(description="If true, get the item itself to see its result.")
    error_code: str | None
    error_message: str | None
    attempts: int
    locked_by: str | None = Field(description="The worker that is processing it.")
    pipeline: str = Field(examples=["prices"])
    updated_at: datetime | None


class ItemList(Shape):
    columns: list[str]
    items: list[ItemShape]
    next: str | None
    looked: int | None = Field(
        default=None,
        description="With `value`: the number of rows that were searched. A page may hold fewer "
        "items than requested, even none, and still have a `next`: continue from there.",
    )


class AttemptShape(Shape):
    number: int
    status: ItemStatus
    result: Any
    error_code: str | None
    error_message: str | None
    seconds: float
    worker: str
    at: datetime | None


class EventShape(Shape):
    actor: str
    action: str
    subject: str
    detail: dict[str, Any]
    at: datetime | None


class EvidenceShape(Shape):
    title: str
    at: datetime
    detail: dict[str, Any]
    link: str | None = Field(description="Path of the page that shows it.")


class ItemDetail(Shape):
    job_id: int
    seq: int
    key: str | None
    status: ItemStatus
    input: Any
    normalized: Any
    result: Any
    error_code: str | None
    error_message: str | None
    tries: int
    attempts: int
    misses: int
    seconds: float | None
    locked_by: str | None
    updated_at: datetime | None
    attempts_before: list[AttemptShape] = Field(description="Earlier attempts, in order.")
    dead_letters: list[dict[str, Any]]
    evidence: list[EvidenceShape] = Field(description="What its pipeline keeps of it.")
    events: list[EventShape] = Field(description="What people did to it, oldest first.")
    why: Why | None = Field(description="Why it is not being processed.")


@router.get("/items", summary="List a job's items")
async def index(
    job: ScopedJob,
    person: Someone,
    parts: PartsOf,
    statuses: Statuses = "",
    status: Annotated[str, Query(include_in_schema=False)] = "",
    code: Code = None,
    since: From = None,
    until: To = None,
    value: Values = [],  # noqa: B006
    ruling: RulingWord = "",
    page_size: PageSize = 100,
    after: After = None,
    page: NoOffset = None,
    sort: NoOffset = None,
) -> ItemList:
    """Items come in order of number; with a filter, finished items by time, then open items, the
    longest waiting first. An item that changes while you page may appear twice."""
    refuse_offsets(page, sort)
    filter = ItemFilter(
        statuses_of(statuses or status), code, in_utc(since), in_utc(until), rulings_of(ruling)
    )
    values = values_of(value, job, parts.pipelines.get(job.pipeline))
    cursors = item_cursors(parts, "items", person.name, job, filter, values)
    found = await parts.item_lists.page(job, filter, values, cursors.read(after), page_size)
    grid = grid_of(job, found.items, await parts.console.rulings.any(job.id))
    return ItemList(
        columns=grid.columns,
        items=[item_shape(item, job.pipeline, grid.row(item)) for item in found.items],
        next=None if found.next is None else cursors.write(found.next),
        looked=found.looked if values else None,
    )


@router.get("/items/{seq}", summary="Show everything about one item")
async def show(
    job: ScopedJob,
    seq: Annotated[int, Path(ge=1, le=LARGEST_ID)],
    person: Someone,
    parts: PartsOf,
) -> ItemDetail:
    item = await parts.console.items.item(job.id, seq)
    if item is None:
        raise no_item(job, seq)
    return await _detail(item, job, parts)


async def _detail(item: dict[str, Any], job: Job, parts: Parts) -> ItemDetail:
    seq = item["seq"]
    attempts = [
        AttemptShape(**attempt | {"result": _parsed(attempt["result"])})
        for attempt in await parts.console.items.attempts(job.id, seq)
    ]
    events = [
        EventShape(
            actor=event["actor"],
            action=event["action"],
            subject=event["subject"],
            detail=orjson.loads(event["detail"]),
            at=event["at"],
        )
        for event in await parts.console.audit.of_item(job.id, seq)
    ]
    reason = await why_item_waits(parts.console, job, item)
    status, code, message = _status_of(item, job)
    return ItemDetail(
        job_id=job.id,
        seq=seq,
        key=item["key"],
        status=status,
        input=_parsed(item["input"]),
        normalized=_parsed(item["normalized"]),
        result=_parsed(item["result"]),
        error_code=code,
        error_message=message,
        tries=item["tries"] or 0,
        attempts=item["attempts"] or 0,
        misses=item["misses"] or 0,
        seconds=item["seconds"],
        locked_by=item["worker"],
        updated_at=item["updated_at"],
        attempts_before=attempts,
        dead_letters=await parts.console.dead_letters.of_item(job.id, seq),
        evidence=await _evidence(job, seq, parts),
        events=events,
        why=None if reason is None else Why(kind=reason.kind, text=reason.text, until=reason.until),
    )


async def _evidence(job: Job, seq: int, parts: Parts) -> list[EvidenceShape]:
    """Returns the pipeline's evidence; none if this server does not offer the job's pipeline."""
    pipeline = parts.pipelines.get(job.pipeline)
    if pipeline is None:
        return []
    return [
        EvidenceShape(title=kept.title, at=kept.at, detail=dict(kept.detail), link=kept.link)
        for kept in await pipeline.evidence(parts.fetch, job.id, seq)
    ]


def _status_of(item: dict[str, Any], job: Job) -> tuple[ItemStatus, str | None, str | None]:
    """Returns status, code and message. In a cancelled job, open items count as SKIPPED."""
    status = ItemStatus(item["status"] or ItemStatus.PENDING)
    if status in OPEN and job.state is JobState.CANCELLED:
        return ItemStatus.SKIPPED, "CANCELLED", "the job was cancelled"
    return status, item["error_code"], item["error_message"]


def item_shape(item: ItemView, pipeline: str, row: dict[str, Any]) -> ItemShape:
    return ItemShape(
        seq=item.seq,
        status=item.status,
        input_summary=summary(item.input),
        row=row,
        result_too_large=item.status is ItemStatus.DONE and item.result is None,
        error_code=item.error_code,
        error_message=item.error_message,
        attempts=item.attempts,
        locked_by=item.worker,
        pipeline=pipeline,
        updated_at=item.updated_at,
    )


def item_cursors(
    parts: Parts,
    list_name: str,
    person: str,
    job: Job,
    filter: ItemFilter,
    values: Sequence[Value],
) -> Cursors:
    return Cursors(parts.secret, list_name, person, items_shown(job.id, filter, values))


def items_shown(job_id: int, filter: ItemFilter, values: Sequence[Value] = ()) -> dict[str, Any]:
    """Returns what a cursor is bound to, so that it fits no other list."""
    words = [
        filter.statuses, filter.code, filter.since, filter.until, filter.rulings, *values,
    ]  # fmt: skip
    return {"job": job_id, "filter": [str(word) for word in words]}


def refuse_offsets(page: str | None, sort: str | None) -> None:
    if page is not None or sort is not None:
        raise Malformed(
            "`page` and `sort` are not supported",
            "Use `after` with the `next` of the previous page.",
        )


def _parsed(text: str | None) -> Any:
    return None if text is None else orjson.loads(text)
