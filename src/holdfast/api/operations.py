"""Operations on everything that matches a filter: looked at first, then carried out in steps."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import Field

from holdfast.api.cursors import Cursors
from holdfast.api.dependencies import Parts
from holdfast.api.idempotency import AnsweredOnce, request_key
from holdfast.api.identity import Operator, PartsOf, Person, Someone, parts_of
from holdfast.api.items import in_utc
from holdfast.api.shapes import Id, Shape, Text
from holdfast.console.items import ItemFilter
from holdfast.console.operations import NewOperation, Operation
from holdfast.console.value_search import MOST_ROWS, Value, search, values_of
from holdfast.errors import NotThere, UserError
from holdfast.model import FINAL, OPEN, Counters, ItemStatus, Job, JobState
from holdfast.store.idempotency import RequestKey


class _MadeOnce(AnsweredOnce):
    async def retell(self, request: Request, person: Person, made: int) -> str:
        found = await parts_of(request).console.operations.operation(made)
        return operation_shape(found).model_dump_json(by_alias=True)


router = APIRouter(prefix="/api/operations", tags=["operations"], route_class=_MadeOnce)

_MOST_JOBS = 1000
_COUNTERS = {
    ItemStatus.DONE: "done",
    ItemStatus.ERROR: "error",
    ItemStatus.NOT_FOUND: "not_found",
    ItemStatus.SKIPPED: "skipped",
}
Code = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,60}$")]
ColumnValue = Annotated[str, Field(max_length=1000, pattern=r"^[^\x00]*$")]
PipelineName = Annotated[str, Field(max_length=200, pattern=r"^[^\x00]*$")]


class Filter(Shape):
    job_ids: list[Id] = Field(default=[], max_length=_MOST_JOBS, examples=[[12]])
    pipeline: PipelineName | None = None
    states: list[JobState] = Field(default=[], description="Of the jobs.")
    statuses: list[ItemStatus] = Field(default=[], examples=[["ERROR", "NOT_FOUND"]])
    code: Code | None = Field(default=None, description="An error code.")
    since: datetime | None = Field(default=None, alias="from")
    until: datetime | None = Field(default=None, alias="to")
    values: list[ColumnValue] = Field(
        default=[],
        max_length=10,
        description="Columns and what they hold, as `value` of the items' list.",
        examples=[["brand:acme"]],
    )

    @property
    def items(self) -> ItemFilter:
        statuses = tuple(self.statuses)
        return ItemFilter(statuses, self.code, in_utc(self.since), in_utc(self.until))


class NewOperationBody(Shape):
    kind: Literal["reprocess", "skip", "cancel", "export"]
    filter: Filter
    reset_attempts: bool = Field(
        default=False, description="Count attempts from zero; without it, exhausted items stay."
    )
    include_permanent: bool = Field(default=False, description="Also errors that never pass.")
    items_per_second: float | None = Field(default=None, gt=0, le=1_000_000)
    format: Literal["csv", "xlsx", "jsonl"] = "csv"
    with_input: bool = False
    reason: Text = ""


class Preview(Shape):
    jobs: int
    count: int = Field(description="Items that match; for `cancel` and `export`, jobs.")
    exact: bool = Field(description="False where it was counted no further.")
    looked: int | None = Field(
        default=None, description="With `values`: among how many rows they were counted."
    )


class OperationShape(Shape):
    id: int
    owner_id: str
    kind: str
    target: dict[str, Any]
    job_ids: list[int]
    state: Literal["QUEUED", "RUNNING", "DONE", "FAILED", "CANCELLED"]
    expected_count: int
    done_count: int
    left_count: int = Field(description="Looked at and left alone: permanent, or exhausted.")
    result: list[int] = Field(description="Ids of the exports it asked for.")
    error: str | None
    created_at: datetime | None
    finished_at: datetime | None


class OperationList(Shape):
    operations: list[OperationShape]
    next: str | None


@router.post("/preview", summary="What an operation would touch")
async def preview(body: NewOperationBody, person: Operator, parts: PartsOf) -> Preview:
    return await _count(body, await _jobs(body, person, parts), parts)


@router.post("", status_code=202, summary="Begin an operation")
async def make(
    body: NewOperationBody, request: Request, person: Operator, parts: PartsOf
) -> OperationShape:
    """On the filter as it matches now; finished items are left alone unless their status is
    named. It goes on after any restart; what it did stays done when it is cancelled."""
    return operation_shape(await begin(body, person, parts, request_key(request)))


@router.get("", summary="List the operations")
async def index(
    person: Someone,
    parts: PartsOf,
    page_size: Annotated[int, Query(alias="pageSize", ge=1, le=200)] = 50,
    after: str | None = None,
) -> OperationList:
    cursors = Cursors(parts.secret, "operations", person.name, {})
    found = await parts.console.operations.page(person.scope, page_size + 1, cursors.read(after))
    more = cursors.write(found[page_size - 1].id) if len(found) > page_size else None
    shapes = [operation_shape(each) for each in found[:page_size]]
    return OperationList(operations=shapes, next=more)


@router.get("/{operation_id}", summary="Show an operation")
async def show(operation_id: Id, person: Someone, parts: PartsOf) -> OperationShape:
    return operation_shape(await parts.console.operations.operation(operation_id, person.scope))


@router.post("/{operation_id}/cancel", summary="Stop an operation")
async def cancel(operation_id: Id, person: Operator, parts: PartsOf) -> OperationShape:
    await parts.console.operations.operation(operation_id, person.scope)
    await parts.console.operations.cancel(operation_id, person.name)
    return operation_shape(await parts.console.operations.operation(operation_id))


async def begin(
    body: NewOperationBody, person: Person, parts: Parts, key: RequestKey | None = None
) -> Operation:
    jobs = await _jobs(body, person, parts)
    counted = await _count(body, jobs, parts)
    items = body.filter.items
    target = {
        "statuses": [str(status) for status in items.statuses],
        **narrowing(items, _values(body, jobs, parts)),
        "reset_attempts": body.reset_attempts,
        "include_permanent": body.include_permanent,
        "items_per_second": body.items_per_second,
        "format": body.format,
        "with_input": body.with_input,
        "reason": body.reason,
    }
    ids = [job.id for job in jobs]
    if body.kind == "export":
        await parts.console.quotas.require(person.name, exports=len(ids))
    new = NewOperation(person.name, body.kind, target, ids, counted.count, key)
    return await parts.console.operations.operation(await parts.console.operations.add(new))


def narrowing(items: ItemFilter, values: Sequence[Value]) -> dict[str, Any]:
    """What is said of items besides their statuses, as it is kept."""
    return {
        "code": items.code,
        "since": None if items.since is None else items.since.isoformat(),
        "until": None if items.until is None else items.until.isoformat(),
        "values": [[value.column, value.pattern] for value in values],
        "rulings": [str(kind) for kind in items.rulings],
    }


async def _jobs(body: NewOperationBody, person: Person, parts: Parts) -> list[Job]:
    """Those that the filter names and the person may change."""
    filter = body.filter
    _refuse_unfitting(body)
    if filter.job_ids:
        jobs = [
            await parts.console.jobs.job(job_id, person.scope)
            for job_id in dict.fromkeys(filter.job_ids)
        ]
    else:
        pipelines = [] if filter.pipeline is None else [filter.pipeline]
        states = [str(state) for state in filter.states]
        found = await parts.console.jobs.page(person.scope, _MOST_JOBS + 1, None, states, pipelines)
        jobs = [counted.job for counted in found]
    if len(jobs) > _MOST_JOBS:
        raise UserError(f"more than {_MOST_JOBS} jobs match", "Narrow the filter.")
    chosen = [job for job in jobs if _matches(job, filter)]
    if not chosen:
        raise NotThere("no job matches the filter", "GET /api/jobs lists yours.")
    return sorted(chosen, key=lambda job: job.id)


def _matches(job: Job, filter: Filter) -> bool:
    fits = filter.pipeline in (None, job.pipeline)
    return fits and (not filter.states or job.state in filter.states)


def _refuse_unfitting(body: NewOperationBody) -> None:
    filter = body.filter
    if not (filter.job_ids or filter.pipeline or filter.states):
        raise UserError("the filter is empty", "Name jobIds, a pipeline or states of jobs.")
    wanted = {"reprocess": FINAL, "skip": frozenset({ItemStatus.PENDING})}.get(body.kind)
    if body.kind == "cancel":
        _refuse_item_filter(filter)
    if wanted is None:
        return
    if not filter.statuses:
        raise UserError(f"{body.kind} needs statuses", f"Choose among {', '.join(sorted(wanted))}.")
    refused = [status for status in filter.statuses if status not in wanted]
    if refused:
        raise UserError(
            f"{body.kind} does not take {refused[0]} items",
            f"Choose among {', '.join(sorted(wanted))}.",
        )


def _refuse_item_filter(filter: Filter) -> None:
    """Whole jobs are cancelled: to do so in spite of a filter of items would be a surprise."""
    if not filter.items.is_empty or filter.values:
        raise UserError("cancel takes no filter of items", "To end some items, skip them.")


async def _count(body: NewOperationBody, jobs: list[Job], parts: Parts) -> Preview:
    values = _values(body, jobs, parts)
    if body.kind in ("cancel", "export"):
        return Preview(jobs=len(jobs), count=len(jobs), exact=True)
    filter = body.filter.items
    if values:
        return await _count_found(filter, values, jobs, parts)
    total, exact = 0, True
    for counted in await parts.console.jobs.counted(jobs):
        plain = filter.code is None and filter.since is None and filter.until is None
        for status in filter.statuses:
            if plain:
                total += _counter(counted.counters, status)
            else:
                total += await parts.console.operations.count(counted.job.id, status, filter)
                exact = exact and status not in OPEN
    return Preview(jobs=len(jobs), count=total, exact=exact)


async def _count_found(
    filter: ItemFilter, values: Sequence[Value], jobs: list[Job], parts: Parts
) -> Preview:
    """Among as many rows as one search looks at: to count them all would take as long as to change
    them."""
    total = looked = 0
    for job in jobs:
        found = await search(parts.console, job, filter, values, None, MOST_ROWS)
        total, looked = total + len(found.items), looked + found.looked
        if found.next is not None or looked >= MOST_ROWS:
            exact = found.next is None and job is jobs[-1]
            return Preview(jobs=len(jobs), count=total, exact=exact, looked=looked)
    return Preview(jobs=len(jobs), count=total, exact=True, looked=looked)


def _values(body: NewOperationBody, jobs: list[Job], parts: Parts) -> tuple[Value, ...]:
    """All the jobs have to have the columns."""
    values: tuple[Value, ...] = ()
    for job in jobs:
        values = values_of(body.filter.values, job, parts.pipelines.get(job.pipeline))
    return values


def _counter(counters: Counters, status: ItemStatus) -> int:
    value: int = getattr(counters, _COUNTERS.get(status, "open"))
    return value


def operation_shape(operation: Operation) -> OperationShape:
    told = {name: getattr(operation, name) for name in OperationShape.model_fields}
    told["target"] = dict(operation.target)
    return OperationShape(**told)
