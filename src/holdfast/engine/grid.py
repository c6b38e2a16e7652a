"""Results as tables: the same rows, columns and values in the grid and in every export."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from holdfast.export import open_writer
from holdfast.model import Job
from holdfast.store import Store
from holdfast.store.item_pages import RESULTS_ONLY, WHOLE, ItemFilter, ItemView

ALL_ITEMS = ItemFilter()
Told = Callable[[int], Awaitable[None]]


async def _told_nobody(_: int) -> None:
    """For exports whose progress nobody follows."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The columns of a job's table: the row's number, what went in if asked for, the pipeline's
    columns, and what became of it. A pipeline's own `status` keeps its name; ours gives way."""

    inputs: tuple[str, ...]
    results: tuple[str, ...]

    @property
    def columns(self) -> list[str]:
        inputs = [f"input.{name}" for name in self.inputs]
        return [self._own("row"), *inputs, *self.results, self._own("status"), self._own("error")]

    def row(self, item: ItemView) -> dict[str, Any]:
        row = result_of(item)
        if self.inputs:
            row |= {f"input.{name}": value for name, value in _input_of(item).items()}
        row[self._own("row")] = item.seq
        row[self._own("status")] = item.status
        row[self._own("error")] = _error_of(item)
        return row

    def _own(self, name: str) -> str:
        while name in self.results:
            name = f"item.{name}"
        return name


def grid_of(job: Job, items: Iterable[ItemView]) -> Grid:
    """The grid of these items; without declared columns it has whatever their results have."""
    results = dict.fromkeys(job.columns)
    if not job.columns:
        for item in items:
            results.update(dict.fromkeys(result_of(item)))
    return Grid((), tuple(results))


async def _whole_grid(store: Store, job: Job, filter: ItemFilter, with_input: bool) -> Grid:
    """The grid of these items. Only what was not declared has to be looked for."""
    inputs: dict[str, None] = {}
    results = dict.fromkeys(job.columns)
    if with_input or not job.columns:
        sizes = WHOLE if with_input else RESULTS_ONLY
        async for items in store.item_pages.every(job, filter, sizes=sizes):
            for item in items:
                if with_input:
                    inputs.update(dict.fromkeys(_input_of(item)))
                if not job.columns:
                    results.update(dict.fromkeys(result_of(item)))
    return Grid(tuple(inputs), tuple(results))


async def write_export(
    store: Store,
    job: Job,
    path: Path,
    format: str,
    filter: ItemFilter = ALL_ITEMS,
    with_input: bool = False,
    tell: Told = _told_nobody,
) -> list[str]:
    """Writes the job's items to a file; returns what the format could not hold, in sentences.
    Whoever serves requests meanwhile is not held up: rows are written in a thread."""
    grid = await _whole_grid(store, job, filter, with_input)
    written = 0
    with open_writer(path, format, grid.columns) as writer:
        async for rows in _grid_rows(store, job, grid, filter):
            await asyncio.to_thread(writer.write, rows)
            written += len(rows)
            await tell(written)
    return writer.notes


async def _grid_rows(
    store: Store, job: Job, grid: Grid, filter: ItemFilter
) -> AsyncIterator[list[dict[str, Any]]]:
    # Nothing that the table does not show is read.
    sizes = WHOLE if grid.inputs else RESULTS_ONLY
    async for items in store.item_pages.every(job, filter, sizes=sizes):
        yield [grid.row(item) for item in items]


def _input_of(item: ItemView) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(item.input)
    return found


def result_of(item: ItemView) -> dict[str, Any]:
    if item.result is None:
        return {}
    result = orjson.loads(item.result)
    return dict(result) if isinstance(result, dict) else {"result": result}


def _error_of(item: ItemView) -> str | None:
    if item.error_code is None:
        return item.error_message
    return f"{item.error_code}: {item.error_message}"
