"""A job's items: pages of them, and one item's whole story."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Path, Query
from pydantic import Field

from holdfast.api.cursors import Cursors
from holdfast.api.dependencies import Parts
from holdfast.api.identity import PartsOf, Someone
from holdfast.api.jobs import ScopedJob
from holdfast.api.problems import Malformed
from holdfast.api.shapes import LARGEST_ID, Shape, Why
from holdfast.api.timing import timed_page
from holdfast.console.grid import grid_of
from holdfast.console.items import ItemFilter, ItemView, Position
from holdfast.console.value_search import Searched, Value, search, values_of
from holdfast.console.why import why_item_waits
from holdfast.errors import NotThere, UserError
from holdfast.model import OPEN, ItemStatus, Job, JobState
from holdfast.rulings import RulingKind

router = APIRouter(prefix="/api/jobs/{jobId}", tags=["items"])

_SUMMARY_CHARACTERS = 120
#: A text that is cut off counts as one: looked at again from each of its quotation marks, a long
#: one would take quadratic time.
_TEXT = re.compile(r'"((?:[^"\\]|\\[\s\S])*)(?:"\s*(:)?|\\?\Z)')
_SUMMARISED_CHARACTERS = 2_000

Statuses = Annotated[str, Query(description="E.g. PENDING,PROCESSING; none: all.", max_length=100)]
PageSize = Annotated[int, Query(alias="pageSize", ge=1, le=1000)]
After = Annotated[str | None, Query(description="The `next` of the page before.")]
From = Annotated[datetime | None, Query(alias="from", description="Changed at or after.")]
To = Annotated[datetime | None, Query(alias="to", description="Changed at or before.")]
Code = Annotated[str | None, Query(description="An error code.", pattern=r"^[A-Za-z0-9_.-]{1,60}$")]
Values = Annotated[
    list[str],
    Query(
        alias="value",
        max_length=10,
        description="A column and what it holds, whole and whatever the case, e.g. `brand:acme`; "
        "`*` stands for anything. Of several, all.",
    ),
]
RulingWord = Annotated[
    str,
    Query(
        max_length=40,
        description="Only items about which a decision counts: choose, edit, reject or any.",
    ),
]
#: Offsets are not served: they cost more the deeper they go.
NoOffset = Annotated[str | None, Query(include_in_schema=False)]


class ItemShape(Shape):
    seq: int
    status: ItemStatus
    input_summary: str = Field(examples=["Oak chair, ACME"])
    row: dict[str, Any] = Field(description="The values of `columns`, as an export has them.")
    result_too_large: bool = Field(description="See the item itself for its result.")
    error_code: str | None
    error_message: str | None
    attempts: int
    locked_by: str | None = Field(description="The worker that has it now.")
    job_type: str = Field(description="The job's pipeline.", examples=["prices"])
    updated_at: datetime | None


class ItemList(Shape):
    columns: list[str]
    items: list[ItemShape]
    next: str | None
    looked: int | None = Field(
        default=None,
        description="With `value`: how many rows were looked at. A page may hold fewer items than "
        "asked for, even none, and yet have a `next`: go on from there.",
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


class WholeItem(Shape):
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
    attempts_before: list[AttemptShape] = Field(description="Earlier tries, in order.")
    dead_letters: list[dict[str, Any]]
    evidence: list[dict[str, Any]]
    events: list[EventShape] = Field(description="What happened to its job.")
    why: Why | None = Field(description="Why it is not running now.")


@router.get("/items", summary="Page through a job's items")
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
    """By number; with a filter, finished ones by when they were, then open ones by how long they
    wait. An item that changes while you page may come twice."""
    refuse_offsets(page, sort)
    filter = ItemFilter(
        statuses_of(statuses or status), code, in_utc(since), in_utc(until), rulings_of(ruling)
    )
    values = values_of(value, job, parts.pipelines.get(job.pipeline))
    bound = {"job": job.id, "filter": _bound(filter, values)}
    cursors = Cursors(parts.secret, "items", person.name, bound)
    position = cursors.read(after)
    found = await found_items(job, filter, values, position, page_size, parts)
    grid = grid_of(job, found.items, await parts.console.rulings.any(job.id))
    return ItemList(
        columns=grid.columns,
        items=[item_shape(item, job.pipeline, grid.row(item)) for item in found.items],
        next=None if found.next is None else cursors.write(found.next),
        looked=found.looked if values else None,
    )


async def found_items(
    job: Job,
    filter: ItemFilter,
    values: Sequence[Value],
    position: Position | None,
    limit: int,
    parts: Parts,
) -> Searched:
    if values:
        async with timed_page(parts, "search", position):
            return await search(parts.console, job, filter, values, position, limit)
    async with timed_page(parts, "items", position):
        found = await parts.console.items.page(job, filter, position, limit)
    return Searched(found.items, found.next, len(found.items))


@router.get("/items/{seq}", summary="Show one item with everything about it")
async def show(
    job: ScopedJob,
    seq: Annotated[int, Path(ge=1, le=LARGEST_ID)],
    person: Someone,
    parts: PartsOf,
) -> WholeItem:
    told = await parts.console.items.item(job.id, seq)
    if told is None:
        raise NotThere(f"job {job.id} has no item {seq}", "GET …/items lists them.")
    return await _whole(told, job, parts)


async def _whole(told: dict[str, Any], job: Job, parts: Parts) -> WholeItem:
    seq = told["seq"]
    attempts = [
        AttemptShape(**{**each, "result": _parsed(each["result"])})
        for each in await parts.console.items.attempts(job.id, seq)
    ]
    events = [
        EventShape(**{**each, "detail": orjson.loads(each["detail"])})
        for each in await parts.console.audit.of_job(job.id)
    ]
    reason = await why_item_waits(parts.console, job, told, parts.options.worker_lost_seconds)
    status, code, message = _status_of(told, job)
    return WholeItem(
        job_id=job.id,
        seq=seq,
        key=told["key"],
        status=status,
        input=_parsed(told["input"]),
        normalized=_parsed(told["normalized"]),
        result=_parsed(told["result"]),
        error_code=code,
        error_message=message,
        tries=told["tries"] or 0,
        attempts=told["attempts"] or 0,
        misses=told["misses"] or 0,
        seconds=told["seconds"],
        locked_by=told["worker"],
        updated_at=told["updated_at"],
        attempts_before=attempts,
        dead_letters=await parts.console.dead_letters.of_item(job.id, seq),
        evidence=[],
        events=events,
        why=None if reason is None else Why(kind=reason.kind, text=reason.text, until=reason.until),
    )


def _status_of(told: dict[str, Any], job: Job) -> tuple[ItemStatus, str | None, str | None]:
    """In a cancelled job, what was open is SKIPPED."""
    status = ItemStatus(told["status"] or ItemStatus.PENDING)
    if status in OPEN and job.state is JobState.CANCELLED:
        return ItemStatus.SKIPPED, "CANCELLED", "the job was cancelled"
    return status, told["error_code"], told["error_message"]


def item_shape(item: ItemView, job_type: str, row: dict[str, Any]) -> ItemShape:
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
        job_type=job_type,
        updated_at=item.updated_at,
    )


def summary(text: str) -> str:
    """The first values of an input, in a few words; of a long one, only its head is here."""
    try:
        record = orjson.loads(text)
    except orjson.JSONDecodeError:
        values = [
            value for value, colon in _TEXT.findall(text[:_SUMMARISED_CHARACTERS]) if not colon
        ]
    else:
        values = list(record.values()) if isinstance(record, dict) else [record]
    words = ", ".join(" ".join(str(value).split()) for value in values if value not in (None, ""))
    short = len(words) <= _SUMMARY_CHARACTERS
    return words if short else words[: _SUMMARY_CHARACTERS - 1] + "…"


def statuses_of(text: str) -> tuple[ItemStatus, ...]:
    wanted = [word.strip() for word in text.upper().split(",") if word.strip()]
    unknown = [word for word in wanted if word not in set(ItemStatus)]
    if unknown:
        raise UserError(f"there is no status {unknown[0]!r}", f"Statuses: {', '.join(ItemStatus)}.")
    return tuple(ItemStatus(word) for word in dict.fromkeys(wanted))


def rulings_of(text: str) -> tuple[RulingKind, ...]:
    words = [word.strip() for word in text.lower().split(",") if word.strip()]
    known = [kind for kind in RulingKind if kind is not RulingKind.REVOKE]
    if words == ["any"]:
        return tuple(known)
    unknown = [word for word in words if word not in known]
    if unknown:
        raise UserError(f"there is no ruling {unknown[0]!r}", f"Rulings: {', '.join(known)}, any.")
    return tuple(RulingKind(word) for word in dict.fromkeys(words))


def refuse_offsets(page: str | None, sort: str | None) -> None:
    if page is not None or sort is not None:
        raise Malformed(
            "`page` and `sort` are not served", "Page with `after`, the `next` of the page before."
        )


def in_utc(value: datetime | None) -> datetime | None:
    """A time without a zone counts as UTC."""
    if value is None or value.tzinfo is None:
        return value and value.replace(tzinfo=UTC)
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise UserError(f"{value.isoformat()} is before or after all times") from None


def _bound(filter: ItemFilter, values: Sequence[Value]) -> list[str]:
    told = (
        filter.statuses, filter.code, filter.since, filter.until, filter.rulings, *values,
    )  # fmt: skip
    return [str(each) for each in told]


def _parsed(text: str | None) -> Any:
    return None if text is None else orjson.loads(text)
