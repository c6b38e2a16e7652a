"""Shows results as tables: the same rows, columns and values in the grid and in every export."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from holdfast.features.items.items import RESULTS_ONLY, WHOLE, ItemFilter, ItemView
from holdfast.model import Job
from holdfast.tables.writers import open_writer

if TYPE_CHECKING:
    from holdfast.features.console import Console

ALL_ITEMS = ItemFilter()
#: Returns those of some items that are selected.
Sift = Callable[[Sequence[ItemView]], Awaitable[list[ItemView]]]
Told = Callable[[int], Awaitable[None]]


async def _told_nobody(_: int) -> None:
    """Does nothing: for exports whose progress is not followed."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The columns of a job's table: the row's number, the input if requested, the pipeline's
    columns, and the outcome. A pipeline's own `status` or `Status` keeps its name; ours is
    renamed."""

    inputs: tuple[str, ...]
    results: tuple[str, ...]
    ruled: bool = False  # whether people have decided about items of the job

    @property
    def columns(self) -> list[str]:
        inputs = [f"input.{name}" for name in self.inputs]
        rulings = [self._own("ruling"), self._own("ruled_by")] if self.ruled else []
        last = [self._own("status"), self._own("error")]
        return [self._own("row"), *inputs, *self.results, *rulings, *last]

    def row(self, item: ItemView) -> dict[str, Any]:
        row = result_of(item)
        if self.inputs:
            row |= {f"input.{name}": value for name, value in _input_of(item).items()}
        if self.ruled:
            ruling = item.ruling
            row[self._own("ruling")] = None if ruling is None else str(ruling.kind)
            row[self._own("ruled_by")] = None if ruling is None else ruling.author
        row[self._own("row")] = item.seq
        row[self._own("status")] = item.status
        row[self._own("error")] = _error_of(item)
        return row

    def _own(self, name: str) -> str:
        return _own_name(name, self.results)


@lru_cache(maxsize=256)
def _own_name(name: str, results: tuple[str, ...]) -> str:
    """Returns a free name for our column: programs that read a table take Status and status for the
    same column."""
    taken = {each.casefold() for each in results}
    while name in taken:
        name = f"item.{name}"
    return name


def grid_of(job: Job, items: Iterable[ItemView], ruled: bool = False) -> Grid:
    """Returns the grid of these items; without declared columns it has whatever their results
    have."""
    results = dict.fromkeys(job.columns)
    if not job.columns:
        for item in items:
            results.update(dict.fromkeys(result_of(item)))
    return Grid((), tuple(results), ruled)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The items of a job that are written; `sift` keeps those of a page that are selected."""

    filter: ItemFilter = ALL_ITEMS
    sift: Sift | None = None

    async def items(
        self, console: Console, job: Job, inputs: bool
    ) -> AsyncIterator[list[ItemView]]:
        # Nothing is read that is not needed.
        sizes = WHOLE if inputs or self.sift else RESULTS_ONLY
        async for items in console.items.every(job, self.filter, sizes=sizes):
            matching = items if self.sift is None else await self.sift(items)
            if matching:
                yield matching


EVERYTHING = Chosen()


async def _whole_grid(console: Console, job: Job, chosen: Chosen, with_input: bool) -> Grid:
    """Returns the grid of these items. Only undeclared columns have to be searched for."""
    inputs: dict[str, None] = {}
    results = dict.fromkeys(job.columns)
    if with_input or not job.columns:
        async for items in chosen.items(console, job, with_input):
            for item in items:
                if with_input:
                    inputs.update(dict.fromkeys(_input_of(item)))
                if not job.columns:
                    results.update(dict.fromkeys(result_of(item)))
    return Grid(tuple(inputs), tuple(results), await console.rulings.any(job.id))


async def write_export(
    console: Console,
    job: Job,
    path: Path,
    format: str,
    chosen: Chosen = EVERYTHING,
    with_input: bool = False,
    tell: Told = _told_nobody,
) -> list[str]:
    """Writes the job's items to a file; returns what the format could not hold, in sentences.

    Rows are written in a thread, so that requests are served at the same time."""
    grid = await _whole_grid(console, job, chosen, with_input)
    written = 0
    with open_writer(path, format, grid.columns) as writer:
        async for items in chosen.items(console, job, bool(grid.inputs)):
            await asyncio.to_thread(writer.write, [grid.row(item) for item in items])
            written += len(items)
            await tell(written)
    return writer.notes


def _input_of(item: ItemView) -> dict[str, Any]:
    row: dict[str, Any] = orjson.loads(item.input)
    return row


def result_of(item: ItemView) -> dict[str, Any]:
    """Returns the values of an item's columns; those that a person decided on take precedence."""
    row: dict[str, Any] = {}
    if item.result is not None:
        result = orjson.loads(item.result)
        row = dict(result) if isinstance(result, dict) else {"result": result}
    if item.ruling is not None:
        row |= item.ruling.changes
    return row


def _error_of(item: ItemView) -> str | None:
    if item.error_code is None:
        return item.error_message
    return f"{item.error_code}: {item.error_message}"
