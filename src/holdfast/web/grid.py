"""A job's items as a grid: the pipeline's columns, in pages that follow one another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holdfast.api.cursors import Cursors
from holdfast.api.items import found_items, summary
from holdfast.console.grid import grid_of
from holdfast.console.items import ItemFilter, ItemView
from holdfast.model import Job
from holdfast.web.filtering import Wanted
from holdfast.web.visit import Visit

_FIRST_PAGE = 100
_PAGE = 1000
_OWN = 2  # the columns that stand last: status and error


@dataclass(frozen=True, slots=True)
class Row:
    item: ItemView
    summary: str
    cells: list[Any]


@dataclass(frozen=True, slots=True)
class GridPage:
    columns: list[str]  # all that the pipeline has
    shown: list[str]
    rows: list[Row]
    next: str | None
    looked: int | None = None  # at so many rows, where a column's value was looked for


async def grid_page(
    visit: Visit, job: Job, wanted: Wanted, after: str | None, chosen: list[str]
) -> GridPage:
    """`chosen` are the columns to show; none: all. The first page is short and quick."""
    parts = visit.parts
    bound = {"job": job.id, "filter": f"{wanted.items} {wanted.values}"}
    cursors = Cursors(parts.secret, "grid", visit.person.name, bound)
    position = cursors.read(after)
    size = _FIRST_PAGE if position is None else _PAGE
    if position is None and wanted.row is not None:
        position = {"phase": "seq", "seq": wanted.row - 1}
    found = await found_items(job, wanted.items, wanted.values, position, size, parts)
    grid = grid_of(job, found.items, await parts.console.rulings.any(job.id))
    columns = grid.columns[1:-_OWN]
    shown = [name for name in chosen if name in columns or not job.columns] or columns
    rows = []
    for item in found.items:
        values = grid.row(item)
        rows.append(Row(item, summary(item.input), [values.get(name) for name in shown]))
    following = None if found.next is None else cursors.write(found.next)
    looked = found.looked if wanted.values else None
    return GridPage(columns, shown, rows, following, looked)


async def matching(visit: Visit, job: Job, wanted: Wanted) -> tuple[int, bool]:
    """How many items the filter means, whatever their columns hold, and whether that is exact."""
    (counted,) = await visit.parts.console.jobs.counted([job])
    counters, items = counted.counters, wanted.items
    if items.is_empty:
        return counters.accepted, True
    if items.rulings:
        kinds = [str(kind) for kind in items.rulings]
        exact = items == ItemFilter(rulings=items.rulings)
        return await visit.parts.console.rulings.count(job.id, kinds), exact
    if items.code is None and items.since is None and items.until is None:
        names = {str(status).lower() for status in items.statuses}
        final = names - {"pending", "processing"}
        total = sum(getattr(counters, name) for name in final)
        is_open = final != names
        return total + (counters.open if is_open else 0), not is_open or len(names - final) == 2
    total = 0
    for status in items.final:
        total += await visit.parts.console.operations.count(job.id, status, items)
    return total, not items.open or items.code is not None
