"""A job's items: pages of them, and everything about one item."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import Field

from holdfast.features.items.grid import grid_of
from holdfast.features.items.item_filters import in_utc, rulings_of, statuses_of
from holdfast.features.items.items import ItemFilter
from holdfast.features.items.params import (
    After,
    Code,
    From,
    NoOffset,
    PageSize,
    RulingWord,
    Statuses,
    To,
    Values,
    item_cursors,
    refuse_offsets,
)
from holdfast.features.items.shapes import ItemDetail, ItemShape, item_detail, item_shape
from holdfast.features.items.value_search import values_of
from holdfast.features.jobs.scoped_job import ScopedJob
from holdfast.server.identity import PartsOf, Someone
from holdfast.server.shapes import LARGEST_ID, Shape

router = APIRouter(prefix="/api/jobs/{jobId}", tags=["items"])


class ItemList(Shape):
    columns: list[str]
    items: list[ItemShape]
    next: str | None
    looked: int | None = Field(
        default=None,
        description="With `value`: the number of rows that were searched. A page may hold fewer "
        "items than requested, even none, and still have a `next`: continue from there.",
    )


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
    return await item_detail(job, seq, parts)
