"""A job's items as a grid: the pipeline's columns, page by page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from holdfast.features.items.filtering import GridFilter, parse_filter
from holdfast.features.items.grid import grid_of
from holdfast.features.items.item_lists import summary
from holdfast.features.items.items import ItemView
from holdfast.features.items.params import item_cursors
from holdfast.features.items.value_search import Value, searchable_columns, value_named
from holdfast.features.jobs.pages_job import JobVisit, VisitedJob
from holdfast.model import FINAL, ItemStatus, Job
from holdfast.server.context import Visit

router = APIRouter()

FilterText = Annotated[str, Query(max_length=500)]
_RANGES = 20
_FIRST_PAGE = 100
_PAGE = 1000
_OWN_COLUMNS = 2  # the last columns: status and error


@dataclass(frozen=True, slots=True)
class Row:
    item: ItemView
    summary: str
    cells: list[Any]


@dataclass(frozen=True, slots=True)
class GridPage:
    columns: list[str]  # all columns of the pipeline
    shown: list[str]
    rows: list[Row]
    next: str | None
    searched: int | None = None  # how many rows were searched, in a search by value


@router.get("/jobs/{job_id}")
async def results(
    visited: VisitedJob,
    q: FilterText = "",
    columns: Annotated[list[str], Query(max_length=200)] = [],  # noqa: B006
    after: str | None = None,
) -> Response:
    """Shows the grid; further pages are returned as rows only."""
    visit, job = visited.visit, visited.job
    filter = parse_filter(q, columns_of(visited))
    page = await grid_page(visit, job, filter, after, columns)
    if after is not None:
        context = {"grid": page, "filter": filter, "job": visited.shape}
        return visit.part("parts/item_rows.html", **context)
    matches = None if filter.values else await visit.parts.bulk.count(job, filter.items)
    statuses = [status for status in ItemStatus if status is not ItemStatus.PROCESSING]
    return await visited.page(
        "results", grid=page, filter=filter, matches=matches, statuses=statuses, final=FINAL
    )


@router.get("/jobs/{job_id}/pending")
async def pending(visited: VisitedJob, after: str | None = None) -> Response:
    filter = parse_filter("status:PENDING,PROCESSING")
    page = await grid_page(visited.visit, visited.job, filter, after, [])
    if after is not None:
        return visited.visit.part("parts/pending_rows.html", grid=page, job=visited.shape)
    reads = visited.visit.parts.console.ranges
    ranges = await reads.of_job(visited.job.id, _RANGES)
    count = await reads.count(visited.job.id)
    return await visited.page("pending", grid=page, ranges=ranges, ranges_count=count)


async def grid_page(
    visit: Visit, job: Job, filter: GridFilter, after: str | None, columns: list[str]
) -> GridPage:
    """Returns a page of the grid.

    `columns` are those to show; all if empty. The first page is short, to appear quickly."""
    parts, values = visit.parts, filter.values
    cursors = item_cursors(parts, "grid", visit.person.name, job, filter.items, values)
    position = cursors.read(after)
    size = _FIRST_PAGE if position is None else _PAGE
    if position is None and filter.row is not None:
        position = {"phase": "seq", "seq": filter.row - 1}
    page = await parts.item_lists.page(job, filter.items, values, position, size)
    grid = grid_of(job, page.items, await parts.console.rulings.any(job.id))
    known = grid.columns[1:-_OWN_COLUMNS]
    shown = [name for name in columns if name in known or not job.columns] or known
    return GridPage(
        columns=known,
        shown=shown,
        rows=[_row(item, grid.row(item), shown) for item in page.items],
        next=None if page.next is None else cursors.write(page.next),
        searched=page.looked if values else None,
    )


def _row(item: ItemView, values: dict[str, Any], shown: list[str]) -> Row:
    return Row(item, summary(item.input), [values.get(name) for name in shown])


def columns_of(visited: JobVisit) -> Callable[[str, str], Value]:
    """Returns what finds the column that a word of the filter names."""
    pipeline = visited.visit.parts.pipelines.get(visited.job.pipeline)
    columns = searchable_columns(visited.job, pipeline)
    return lambda name, value: value_named(name, value, visited.job, columns)
