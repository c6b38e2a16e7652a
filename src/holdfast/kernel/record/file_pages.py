"""Reads table files as sources: their rows in pages, in their own threads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import orjson

from holdfast.columns import BAD_ROW, mapped_row
from holdfast.errors import HoldfastError, InputError, ItemError, NotThere, TooLarge, TwinColumns
from holdfast.files import FileAccess
from holdfast.kernel import IngestPage, NewItem, Store, StreamLease
from holdfast.kernel.jobs.admission import require_table
from holdfast.kernel.pace.controllers import IngestPace
from holdfast.kernel.record.pages import Yielded
from holdfast.model import Job
from holdfast.pipeline import Pipeline
from holdfast.reading import Reading
from holdfast.tables.files import TableFile, open_table
from holdfast.tables.threads import take_in
from holdfast_client.records import content_hash
from holdfast_client.storable import storable_key

_PAGE_BYTES = 4 * 1024 * 1024
_MESSAGE_CHARACTERS = 500

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StoredTables:
    """Opens stored files, each as a local copy.

    `limits`: limits of reading a table, by the names of TableOptions."""

    store: Store
    files: FileAccess
    limits: Mapping[str, Any]

    @asynccontextmanager
    async def open(self, job: Job) -> AsyncIterator[TableFile]:
        file = await self.store.reads.stored_file(job.file_id or 0)
        async with AsyncExitStack() as stack:
            copy = self.files.local.copy(
                self.files.store, file.key, file.name, size=file.size, sha256=file.sha256
            )
            try:
                path = await stack.enter_async_context(copy)
            except NotThere as gone:
                raise NotThere(
                    f"{file.name} is no longer in the file store",
                    "If it should be, workers have another file store than the API.",
                ) from gone
            table = await _in_thread(self._open, path, job.reading)
            stack.callback(table.close)
            yield table

    def _open(self, path: Path, reading: Reading) -> TableFile:
        require_table(reading)
        marks = {"marks_bad_rows": reading.images}
        return open_table(path, {**reading.table_options, **self.limits, **marks})


async def file_pages(
    opening: AbstractAsyncContextManager[TableFile],
    pipeline: Pipeline,
    job: Job,
    lease: StreamLease,
    pace: IngestPace,
) -> AsyncGenerator[Yielded]:
    """Yields the rows of a job's file in pages, starting at the stream's cursor."""
    cursor = lease.cursor or {"page": None, "skip": 0}
    page = cursor["page"] or {"row": 0}
    row = page["row"] + cursor["skip"]
    names = job.reading.column_names
    with _failures_of_files():
        async with opening as file:
            batches = file.pages(row, lambda: pace.rows, _PAGE_BYTES, page.get("bad", 0))
            while True:
                batch = await _in_thread(next, batches)
                cursor = {"row": batch.next_row, "bad": batch.bad_rows}
                if pipeline.dedupe is None:
                    yield IngestPage((), cursor, batch.end, inputs=batch.inputs)
                else:
                    items = [_keyed(pipeline, text, names) for text in batch.inputs]
                    yield IngestPage(items, cursor, batch.end)
                if batch.end:
                    return


@contextmanager
def _failures_of_files() -> Iterator[None]:
    """Translates errors of files: one that is gone or too large stays so; an unforeseen error may
    not come again."""
    try:
        yield
    except (NotThere, TooLarge) as error:
        raise InputError(error.message, error.hint) from error
    except (HoldfastError, OSError):
        raise
    except Exception as error:
        message = f"the file cannot be read: {type(error).__name__}: {error}"
        raise ItemError("UNKNOWN_ERROR", message[:_MESSAGE_CHARACTERS]) from error


async def _in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Runs a function in a thread; waits for it even if cancelled: a file is not closed while it is
    read."""
    step = asyncio.ensure_future(take_in(function, *args, **kwargs))
    try:
        return await asyncio.shield(step)
    except asyncio.CancelledError:
        await asyncio.wait([step])
        if not step.cancelled():
            step.exception()  # no one else looks at it
        raise


def _keyed(pipeline: Pipeline, text: str, column_names: Mapping[str, str]) -> NewItem:
    row = orjson.loads(text)
    if BAD_ROW in row:
        return NewItem(text)
    try:
        named = mapped_row(row, column_names)
    except TwinColumns:  # its item says so
        return NewItem(text)
    key = storable_key(pipeline.key(named))
    return NewItem(text, key, content_hash(text.encode()) if key else "")
