"""A job's items as a grid: the pipeline's columns, page by page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holdfast.features.items.api import item_cursors
from holdfast.features.items.filtering import GridFilter
from holdfast.features.items.grid import grid_of
from holdfast.features.items.item_lists import summary
from holdfast.features.items.items import ItemView
from holdfast.model import Job
from holdfast.server.context import Visit

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
