"""Results as tables: the same rows, columns and values in the grid and in every export."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import orjson

from holdfast.export import open_writer
from holdfast.model import ItemStatus, Job
from holdfast.store import Store
from holdfast.store.reads import ItemView

_SAMPLE = 1000


async def write_export(
    store: Store,
    job: Job,
    path: Path,
    format: str,
    statuses: Sequence[ItemStatus] = (),
    with_input: bool = False,
) -> list[str]:
    """Writes the job's items to a file; returns what the format could not hold, in sentences."""
    columns = await grid_columns(store, job, with_input)
    with open_writer(path, format, columns) as writer:
        async for rows in grid_rows(store, job, statuses, with_input):
            writer.write(rows)
        return writer.notes


async def print_export(
    store: Store,
    job: Job,
    format: str,
    statuses: Sequence[ItemStatus] = (),
    with_input: bool = False,
) -> None:
    """The same file on standard output."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"export.{format}"
        await write_export(store, job, path, format, statuses, with_input)
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                sys.stdout.buffer.write(block)
    sys.stdout.flush()


async def grid_columns(store: Store, job: Job, with_input: bool = False) -> list[str]:
    """The row's number, what went in if asked for, the pipeline's columns, and what became of
    it. A pipeline without declared columns shows what its first results have."""
    inputs: dict[str, None] = {}
    results: dict[str, None] = dict.fromkeys(job.columns)
    if with_input or not job.columns:
        async with aclosing(store.reads.items(job.id)) as pages:
            async for items in pages:
                for item in items[:_SAMPLE]:
                    inputs.update(dict.fromkeys(orjson.loads(item.input)))
                    if not job.columns:
                        results.update(dict.fromkeys(_result_of(item)))
                break
    shown = [f"input.{name}" for name in inputs] if with_input else []
    return ["row", *shown, *results, "status", "error"]


async def grid_rows(
    store: Store, job: Job, statuses: Sequence[ItemStatus] = (), with_input: bool = False
) -> AsyncIterator[list[dict[str, Any]]]:
    async with aclosing(store.reads.items(job.id, statuses)) as pages:
        async for items in pages:
            yield [grid_row(item, with_input) for item in items]


def grid_row(item: ItemView, with_input: bool = False) -> dict[str, Any]:
    row = _result_of(item)
    if with_input:
        values = orjson.loads(item.input)
        row |= {f"input.{name}": value for name, value in values.items()}
    row["row"] = item.seq
    row["status"] = item.status
    row["error"] = _error_of(item)
    return row


def _result_of(item: ItemView) -> dict[str, Any]:
    if item.result is None:
        return {}
    result = orjson.loads(item.result)
    return dict(result) if isinstance(result, dict) else {"result": result}


def _error_of(item: ItemView) -> str | None:
    if item.error_code is None:
        return item.error_message
    return f"{item.error_code}: {item.error_message}"
