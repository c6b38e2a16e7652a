"""Discovery: a source's pages become rows, cursor and rows together, within the caps."""

from __future__ import annotations

import asyncio
import hashlib
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from holdfast.clock import Clock
from holdfast.engine.pace.controllers import IngestPace
from holdfast.errors import (
    DatabaseGone,
    DiscoveryError,
    GateWait,
    HoldfastError,
    InputError,
    ItemError,
    LeaseLost,
    RetryClass,
    UserError,
    error_code,
)
from holdfast.json_depth import DEEPEST, is_too_deep
from holdfast.model import Page, Record, StreamState
from holdfast.observe.metrics import Metrics
from holdfast.pipeline import Context, Pipeline
from holdfast.store import IngestPage, NewItem, Store, StreamLease
from holdfast.tables.files import TableFile, TableOptions

_UPLOAD_PAGE_BYTES = 4 * 1024 * 1024


class WalkEnd(StrEnum):
    """Why a walk along a stream ended."""

    COMPLETE = "complete"
    CAPPED = "capped"
    TIME = "time"  # the slice is over; the stream goes on later
    WAITING = "waiting"  # a gate, a throttle or a passing error: later
    FAILED = "failed"
    LOST = "lost"  # the lease is another's, or the job takes no more items


@dataclass(frozen=True, slots=True)
class DiscoverLimits:
    lease_seconds: float
    max_input_bytes: int
    max_failures: int
    page_seconds: float
    retry_cap_seconds: float


class Walk:
    """One walk along one leased stream: fetches the next page while this one is written."""

    def __init__(
        self,
        store: Store,
        stream: StreamLease,
        pipeline: Pipeline,
        worker: str,
        limits: DiscoverLimits,
        pace: IngestPace,
        clock: Clock,
        metrics: Metrics,
        log: Any,
        keep_on: Callable[[], bool],
        note: Callable[..., Awaitable[None]] | None = None,
    ) -> None:
        self._store = store
        self._stream = stream
        self._pipeline = pipeline
        self._note = note
        self._pages_left = pipeline.slice_pages or sys.maxsize
        self._worker = worker
        self._limits = limits
        self._pace = pace
        self._clock = clock
        self._metrics = metrics
        self._log = log
        self._keep_on = keep_on

    async def run(self, pages: AsyncIterator[IngestPage]) -> WalkEnd:
        try:
            end = await self._walk(pages)
        except LeaseLost as lost:
            self._log.warning("lease.lost", error=str(lost))
            return WalkEnd.LOST
        except (GateWait, ItemError, OSError) as error:
            return await self._later(error)
        except (DiscoveryError, InputError) as error:
            return await self._fail(error)
        except HoldfastError:
            raise
        except Exception as error:
            return await self._fail(
                DiscoveryError(f"{type(error).__name__} in the pipeline's discover: {error}")
            )
        self._tell(end)
        if end is WalkEnd.TIME:
            await self._store.ingest.release_stream(self._stream)
        return end

    def _tell(self, end: WalkEnd) -> None:
        stream = self._stream
        if end is WalkEnd.COMPLETE:
            self._log.info(
                "discovery.complete",
                source=stream.source,
                pages=stream.pages_count,
                rows=stream.items_count,
            )
        elif end is WalkEnd.CAPPED:
            self._log.info("discovery.capped", source=stream.source, rows=stream.items_count)

    async def _walk(self, pages: AsyncIterator[IngestPage]) -> WalkEnd:
        ahead = asyncio.create_task(_next_page(pages))
        try:
            while True:
                page = await self._await_page(ahead)
                self._pages_left -= 1
                more = not page.end and self._pages_left > 0 and self._keep_on()
                if more:
                    ahead = asyncio.create_task(_next_page(pages))
                state = await self._write(page)
                if state is StreamState.COMPLETE:
                    return WalkEnd.COMPLETE
                if state is StreamState.CAPPED:
                    return WalkEnd.CAPPED
                if state is StreamState.FAILED:
                    return WalkEnd.FAILED
                if not more:
                    return WalkEnd.TIME
        finally:
            await _forget(ahead)

    async def _await_page(self, ahead: asyncio.Task[IngestPage]) -> IngestPage:
        """Keeps the lease while the source takes its time, which has an end."""
        give_up_at = self._clock.monotonic() + self._limits.page_seconds
        while not ahead.done():
            await asyncio.wait([ahead], timeout=self._limits.lease_seconds / 3)
            if ahead.done():
                break
            if self._clock.monotonic() >= give_up_at:
                raise TimeoutError(f"no page within {self._limits.page_seconds:g} s")
            with suppress(DatabaseGone):
                await self._store.ingest.renew_stream(self._stream, self._limits.lease_seconds)
        return ahead.result()

    async def _write(self, page: IngestPage) -> StreamState:
        """Writes a page; where the database is gone, waits and sends the same page again."""
        size = sum(len(item.input) for item in page.items) + sum(map(len, page.inputs))
        note = None
        if self._note is not None and page.notes is not None:
            note = partial(self._note, notes=page.notes)
        while True:
            started = self._clock.monotonic()
            try:
                done = await self._store.ingest.ingest(
                    self._stream,
                    page,
                    self._worker,
                    self._limits.lease_seconds,
                    self._pipeline.dedupe,
                    note,
                )
                break
            except DatabaseGone as error:
                self._pace.failed()
                self._log.warning("database.gone", error=str(error))
                await asyncio.sleep(0.5)
        self._pace.observe(page.records_count, size, self._clock.monotonic() - started)
        seconds = self._clock.monotonic() - started
        self._metrics.ingest_rows.labels(self._pipeline.name).inc(done.accepted)
        stream = self._stream
        self._log.debug(
            "ingest.page", source=stream.source, rows=done.accepted, bytes=size, seconds=seconds
        )
        stream.pages_count += 1
        stream.records_count += page.records_count
        stream.items_count += done.accepted
        stream.cursor = {"page": page.next_cursor, "skip": 0}
        stream.failures = 0
        return done.state

    async def _later(self, error: Exception) -> WalkEnd:
        """An HTTP error is never an end: the stream is tried again from where it stands."""
        if isinstance(error, GateWait):
            await self._store.ingest.release_stream(self._stream, error.seconds)
            return WalkEnd.WAITING
        retry = self._retry_class(error)
        if retry is RetryClass.NEVER:
            return await self._fail(error)
        throttled = retry is RetryClass.THROTTLE
        if not throttled and self._stream.failures + 1 >= self._limits.max_failures:
            return await self._fail(error)
        asked = getattr(error, "retry_after", None) or 0.0
        delay = max(asked, min(self._limits.retry_cap_seconds, 2.0**self._stream.failures))
        self._log.warning(
            "discovery.waits", source=self._stream.source, error=str(error), seconds=delay
        )
        await self._store.ingest.release_stream(
            self._stream, delay, None if throttled else str(error)
        )
        return WalkEnd.WAITING

    def _retry_class(self, error: Exception) -> RetryClass:
        if not isinstance(error, ItemError):
            return RetryClass.SOON
        return error_code(error.code, dict(self._pipeline.error_codes)).retry

    async def _fail(self, error: Exception) -> WalkEnd:
        hint = error.hint if isinstance(error, UserError) else None
        text = f"{error} {hint}" if hint else str(error)
        self._log.error("discovery.failed", source=self._stream.source, error=text)
        await self._store.ingest.fail_stream(self._stream, text)
        return WalkEnd.FAILED


async def _next_page(pages: AsyncIterator[IngestPage]) -> IngestPage:
    try:
        return await anext(pages)
    except StopAsyncIteration:
        raise DiscoveryError(
            "the source's pages ended without an end signal (Page(..., end=True))"
        ) from None
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise DiscoveryError("CancelledError in the pipeline's discover") from None


async def _forget(ahead: asyncio.Task[IngestPage]) -> None:
    ahead.cancel()
    with suppress(asyncio.CancelledError, Exception):
        await ahead


async def discovered_pages(
    pipeline: Pipeline, stream: StreamLease, ctx: Context, max_input_bytes: int
) -> AsyncIterator[IngestPage]:
    """The pages that the pipeline's `discover` yields from the stream's cursor on."""
    cursor = stream.cursor or {"page": None, "skip": 0}
    skip = cursor["skip"]
    async with aclosing(pipeline.discover(stream.source, cursor["page"], ctx)) as pages:  # type: ignore[type-var]
        async for page in pages:
            yield _ingest_page(pipeline, page, skip, max_input_bytes)
            if page.end:
                return
            skip = 0


def _ingest_page(pipeline: Pipeline, page: Page, skip: int, max_input_bytes: int) -> IngestPage:
    if not page.end and page.next_cursor is None:
        raise DiscoveryError("a page has neither a next cursor nor an end signal")
    items = [_new_item(pipeline, record, max_input_bytes) for record in page.records[skip:]]
    return IngestPage(items, page.next_cursor, page.end, page.expected_count, notes=page.notes)


def _new_item(pipeline: Pipeline, record: Record, max_input_bytes: int) -> NewItem:
    try:
        written = orjson.dumps(record.input)
    except (TypeError, ValueError) as error:
        raise DiscoveryError(f"a record is not JSON: {error}") from error
    if len(written) > max_input_bytes:
        raise DiscoveryError(
            f"a record has {len(written):,} bytes, more than HOLDFAST_MAX_INPUT_BYTES="
            f"{max_input_bytes}; raise it and resume the job"
        )
    text = written.decode()
    if is_too_deep(text):
        raise DiscoveryError(f"a record nests deeper than {DEEPEST} levels")
    key = record.key or (pipeline.key(record.input) if pipeline.dedupe else None)
    key = storable_key(key)
    return NewItem(text, key, content_hash(written) if key else "")


def content_hash(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:32]


async def uploaded_pages(
    file: TableFile, pipeline: Pipeline, stream: StreamLease, pace: IngestPace
) -> AsyncIterator[IngestPage]:
    """The rows of an uploaded file from the stream's cursor on, read in a thread."""
    cursor = stream.cursor or {"page": None, "skip": 0}
    row = (cursor["page"] or {"row": 0})["row"] + cursor["skip"]
    batches = file.pages(row, lambda: pace.rows, _UPLOAD_PAGE_BYTES)
    while True:
        batch = await asyncio.to_thread(next, batches)
        cursor = {"row": batch.next_row}
        if pipeline.dedupe is None:
            yield IngestPage((), cursor, batch.end, inputs=batch.inputs)
        else:
            items = [_keyed(pipeline, text) for text in batch.inputs]
            yield IngestPage(items, cursor, batch.end)
        if batch.end:
            return


def _keyed(pipeline: Pipeline, text: str) -> NewItem:
    key = storable_key(pipeline.key(orjson.loads(text)))
    return NewItem(text, key, content_hash(text.encode()) if key else "")


def open_upload(path: Path, options: dict[str, Any]) -> TableFile:
    return TableFile(path, TableOptions(**options))


def storable_key(key: str | None) -> str | None:
    """A key that any database takes; one that had to be changed stays apart from all others."""
    if key is None or ("\0" not in key and key.isprintable()):
        return key
    return key.encode("unicode_escape").decode()
