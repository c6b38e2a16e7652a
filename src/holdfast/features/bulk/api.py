"""Operations on everything that matches a filter: previewed, then carried out step by step."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from pydantic import Field

from holdfast.features.accounts.person import Person
from holdfast.features.bulk.bulk import MOST_JOBS, BulkRequest
from holdfast.features.bulk.shapes import (
    OperationList,
    OperationShape,
    operation_shape,
    operations_page,
)
from holdfast.features.exports.shapes import Format
from holdfast.features.items.item_filters import in_utc
from holdfast.features.items.items import ItemFilter
from holdfast.model import ItemStatus, JobState
from holdfast.server.idempotency import IdempotentRoute, request_key
from holdfast.server.identity import Operator, PartsOf, Someone, parts_of
from holdfast.server.shapes import Id, Shape, Text


class _OperationRoute(IdempotentRoute):
    async def describe(self, request: Request, person: Person, made: int) -> str:
        operation = await parts_of(request).console.operations.operation(made)
        return operation_shape(operation).model_dump_json(by_alias=True)


router = APIRouter(prefix="/api/operations", tags=["operations"], route_class=_OperationRoute)

Code = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,60}$")]
ColumnValue = Annotated[str, Field(max_length=1000, pattern=r"^[^\x00]*$")]
PipelineName = Annotated[str, Field(max_length=200, pattern=r"^[^\x00]*$")]


class Filter(Shape):
    job_ids: list[Id] = Field(default=[], max_length=MOST_JOBS, examples=[[12]])
    pipeline: PipelineName | None = None
    states: list[JobState] = Field(default=[], description="States of the jobs.")
    statuses: list[ItemStatus] = Field(default=[], examples=[["ERROR", "NOT_FOUND"]])
    code: Code | None = Field(default=None, description="An error code.")
    since: datetime | None = Field(default=None, alias="from")
    until: datetime | None = Field(default=None, alias="to")
    values: list[ColumnValue] = Field(
        default=[],
        max_length=10,
        description="Columns and their values, like `value` when listing items.",
        examples=[["brand:acme"]],
    )


class NewOperationBody(Shape):
    kind: Literal["reprocess", "skip", "cancel", "export"]
    filter: Filter
    reset_attempts: bool = Field(
        default=False,
        description="Count attempts from zero; otherwise items without attempts left are skipped.",
    )
    include_permanent: bool = Field(default=False, description="Include permanent errors.")
    items_per_second: float | None = Field(default=None, gt=0, le=1_000_000)
    format: Format = "csv"
    with_input: bool = False
    reason: Text = ""

    @property
    def request(self) -> BulkRequest:
        filter = self.filter
        return BulkRequest(
            kind=self.kind,
            job_ids=filter.job_ids,
            pipeline=filter.pipeline,
            states=filter.states,
            items=ItemFilter(
                tuple(filter.statuses), filter.code, in_utc(filter.since), in_utc(filter.until)
            ),
            values=filter.values,
            reset_attempts=self.reset_attempts,
            include_permanent=self.include_permanent,
            items_per_second=self.items_per_second,
            format=self.format,
            with_input=self.with_input,
            reason=self.reason,
        )


class Preview(Shape):
    jobs: int
    count: int = Field(description="Matching items; for `cancel` and `export`, jobs.")
    exact: bool = Field(description="False if not everything was counted.")
    looked: int | None = Field(
        default=None, description="With `values`: the number of rows that were searched."
    )


@router.post("/preview", summary="Preview what an operation would affect")
async def preview(body: NewOperationBody, person: Operator, parts: PartsOf) -> Preview:
    preview = await parts.bulk.preview(body.request, person)
    matches = preview.matches
    return Preview(
        jobs=preview.jobs, count=matches.count, exact=matches.exact, looked=matches.examined
    )


@router.post("", status_code=202, summary="Start an operation")
async def make(
    body: NewOperationBody, request: Request, person: Operator, parts: PartsOf
) -> OperationShape:
    """Applies to what the filter matches now; finished items are left unchanged unless their
    status is named. It continues after a restart; cancelling it does not undo what it did."""
    operation = await parts.bulk.start(body.request, person, request_key(request))
    return operation_shape(operation)


@router.get("", summary="List the operations")
async def index(
    person: Someone,
    parts: PartsOf,
    page_size: Annotated[int, Query(alias="pageSize", ge=1, le=200)] = 50,
    after: str | None = None,
) -> OperationList:
    return await operations_page(person, parts, page_size, after)


@router.get("/{operation_id}", summary="Show an operation")
async def show(operation_id: Id, person: Someone, parts: PartsOf) -> OperationShape:
    return operation_shape(await parts.console.operations.operation(operation_id, person.scope))


@router.post("/{operation_id}/cancel", summary="Stop an operation")
async def cancel(operation_id: Id, person: Operator, parts: PartsOf) -> OperationShape:
    return operation_shape(await parts.bulk.cancel(operation_id, person))
