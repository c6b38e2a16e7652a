"""Results as tables: the same rows, columns and values in the grid and in every export."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from holdfast.export import open_writer
from holdfast.model import ItemStatus, Job
from holdfast.store import Store
from holdfast.store.reads import ItemView


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
        row = _result_of(item)
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
            results.update(dict.fromkeys(_result_of(item)))
    return Grid((), tuple(results))


async def _whole_grid(store: Store, job: Job, with_input: bool) -> Grid:
    """The grid of all items. Only what was not declared has to be looked for."""
    inputs: dict[str, None] = {}
    results = dict.fromkeys(job.columns)
    if with_input or not job.columns:
        async with aclosing(store.reads.items(job.id)) as pages:
            async for items in pages:
                for item in items:
                    if with_input:
                        inputs.update(dict.fromkeys(_input_of(item)))
                    if not job.columns:
                        results.update(dict.fromkeys(_result_of(item)))
    return Grid(tuple(inputs), tuple(results))


async def write_export(
    store: Store,
    job: Job,
    path: Path,
    format: str,
    statuses: Sequence[ItemStatus] = (),
    with_input: bool = False,
) -> list[str]:
    """Writes the job's items to a file; returns what the format could not hold, in sentences."""
    grid = await _whole_grid(store, job, with_input)
    with open_writer(path, format, grid.columns) as writer:
        async for rows in _grid_rows(store, job, grid, statuses):
            writer.write(rows)
    return writer.notes


async def print_export(
    store: Store,
    job: Job,
    format: str,
    statuses: Sequence[ItemStatus] = (),
    with_input: bool = False,
) -> list[str]:
    """The same file on standard output."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"export.{format}"
        notes = await write_export(store, job, path, format, statuses, with_input)
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                sys.stdout.buffer.write(block)
    sys.stdout.flush()
    return notes


async def _grid_rows(
    store: Store, job: Job, grid: Grid, statuses: Sequence[ItemStatus]
) -> AsyncIterator[list[dict[str, Any]]]:
    async with aclosing(store.reads.items(job.id, statuses)) as pages:
        async for items in pages:
            yield [grid.row(item) for item in items]


def _input_of(item: ItemView) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(item.input)
    return found


def _result_of(item: ItemView) -> dict[str, Any]:
    if item.result is None:
        return {}
    result = orjson.loads(item.result)
    return dict(result) if isinstance(result, dict) else {"result": result}


def _error_of(item: ItemView) -> str | None:
    if item.error_code is None:
        return item.error_message
    return f"{item.error_code}: {item.error_message}"
