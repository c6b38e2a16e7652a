"""Discovery: a source's pages become rows, cursor and rows together, within the caps.

Read it top to bottom: `Discovery` leases a stream of a job, `walk_stream` walks it (uploads use it
too), `discovered_pages` turns the pipeline's pages into rows.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any

import orjson

from holdfast.clock import Clock
from holdfast.engine.pace.backpressure import Backpressure
from holdfast.engine.pace.controllers import IngestPace
from holdfast.engine.pace.pipeline_pace import decision_rows, log_decisions
from holdfast.engine.pace.retry import source_delay
from holdfast.engine.patience import patiently
from holdfast.engine.planning import planner_at_end
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
from holdfast.model import Job, Page, Record, StreamState
from holdfast.observe.metrics import Metrics
from holdfast.observe.tracing import span
from holdfast.pipeline import Context, Facilities, Http, Pipeline
from holdfast.store import DecisionRow, IngestPage, NewItem, Store, StreamLease
from holdfast.store.enqueue import content_hash
from holdfast.store.ingest import Ingested
from holdfast.store.storable import storable_key


class WalkEnd(StrEnum):
    """Why a walk along a stream ended."""

    COMPLETE = "complete"
    CAPPED = "capped"
    TIME = "time"  # the slice is over; the stream continues later
    WAITING = "waiting"  # for a gate, a throttling source or after a temporary error
    FAILED = "failed"
    LOST = "lost"  # another worker has the lease, or the job accepts no more items


_FINAL = (WalkEnd.COMPLETE, WalkEnd.CAPPED, WalkEnd.FAILED)


@dataclass(frozen=True, slots=True)
class DiscoverLimits:
    lease_seconds: float
    max_input_bytes: int
    max_failures: int
    page_seconds: float
    retry_cap_seconds: float


@dataclass(frozen=True, slots=True)
class WalkParts:
    """What all walks of one process share."""

    store: Store
    limits: DiscoverLimits
    clock: Clock
    rng: random.Random
    metrics: Metrics
    log: Any


@dataclass(frozen=True, slots=True)
class LeasedStream:
    """A stream, and who walks it for which job. `pace` sizes the pages where that is up to us."""

    lease: StreamLease
    pipeline: Pipeline
    job: Job
    worker: str
    pace: IngestPace | None = None


@dataclass(frozen=True, slots=True)
class SourceAccess:
    """What a pipeline's `discover` uses, and what holds it back."""

    http: Http
    gates: Callable[[str], Any]
    facilities: Callable[[Pipeline, Job], Facilities]
    backpressure: Backpressure


class Discovery:
    """The discovery slices of one worker."""

    def __init__(
        self, parts: WalkParts, access: SourceAccess, worker: str, slice_seconds: float
    ) -> None:
        self._parts = parts
        self._access = access
        self._worker = worker
        self._slice_seconds = slice_seconds

    async def walk(
        self, pipeline: Pipeline, job: Job, stopped: Callable[[], bool]
    ) -> WalkEnd | None:
        """One slice; None if no stream of the job was free."""
        store, limits = self._parts.store, self._parts.limits
        lease = await store.ingest.lease_stream(job.id, self._worker, limits.lease_seconds)
        if lease is None:
            return None
        wait = await self._access.backpressure.wait_seconds()
        if wait is not None:
            await store.ingest.release_stream(lease, wait)
            return WalkEnd.WAITING
        stream = LeasedStream(lease, pipeline, job, self._worker)
        if lease.fingerprint != pipeline.fingerprint(lease.source, job.given_options):
            return await self._refuse(stream)
        name, worker = pipeline.name, self._worker
        with span("slice.discover", job.trace, job_id=job.id, pipeline=name, worker=worker):
            return await self._walk(stream, stopped)

    async def _refuse(self, stream: LeasedStream) -> WalkEnd:
        store, lease = self._parts.store, stream.lease
        reason = f"the query behind {lease.source} changed since its cursor was stored"
        await store.ingest.fail_stream(lease, reason)
        planner = planner_at_end(stream.pipeline, stream.job)
        await store.outcomes.complete(lease.job_id, planner)
        return WalkEnd.FAILED

    async def _walk(self, stream: LeasedStream, stopped: Callable[[], bool]) -> WalkEnd:
        parts, access, clock = self._parts, self._access, self._parts.clock
        started = clock.monotonic()
        deadline = started + self._slice_seconds
        ctx = Context(
            stream.job,
            0,
            stream.lease.failures + 1,
            access.http,
            access.gates,
            parts.log,
            access.facilities(stream.pipeline, stream.job),
        )
        pages = discovered_pages(stream, ctx, parts.limits.max_input_bytes)
        end = await walk_stream(
            parts, stream, pages, lambda: clock.monotonic() < deadline and not stopped()
        )
        seconds = clock.monotonic() - started
        parts.metrics.slice_seconds.labels(stream.pipeline.name, "discover").observe(seconds)
        return end


async def walk_stream(
    parts: WalkParts,
    stream: LeasedStream,
    pages: AsyncIterator[IngestPage],
    may_continue: Callable[[], bool],
) -> WalkEnd:
    """Writes the pages of a leased stream until they end, a cap is reached, something fails, or it
    may not continue; then ends the job if nothing of it is left."""
    end = await _Walk(parts, stream, may_continue).run(pages)
    if end in _FINAL:
        planner = planner_at_end(stream.pipeline, stream.job)
        await parts.store.outcomes.complete(stream.lease.job_id, planner)
    return end


class _Walk:
    """One walk along one leased stream: fetches the next page while this one is written."""

    def __init__(
        self, parts: WalkParts, stream: LeasedStream, may_continue: Callable[[], bool]
    ) -> None:
        self._parts = parts
        self._ingest = parts.store.ingest
        self._limits = parts.limits
        self._clock = parts.clock
        self._stream = stream
        self._lease = stream.lease
        self._may_continue = may_continue
        self._pages_left = stream.pipeline.slice_pages or sys.maxsize
        self._log = parts.log.bind(
            job_id=stream.job.id, pipeline=stream.pipeline.name, worker=stream.worker
        )

    async def run(self, pages: AsyncIterator[IngestPage]) -> WalkEnd:
        try:
            end = await self._walk(pages)
        except LeaseLost as lost:
            self._log.warning("lease.lost", error=str(lost))
            return WalkEnd.LOST
        except (GateWait, ItemError, OSError) as error:
            return await self._wait(error)
        except (DiscoveryError, InputError) as error:
            return await self._fail(error)
        except HoldfastError:
            raise
        except Exception as error:
            return await self._fail(
                DiscoveryError(f"{type(error).__name__} in the pipeline's discover: {error}")
            )
        self._log_end(end)
        if end is WalkEnd.TIME:
            await self._ingest.release_stream(self._lease)
        return end

    def _log_end(self, end: WalkEnd) -> None:
        lease = self._lease
        if end is WalkEnd.COMPLETE:
            self._log.info(
                "discovery.complete",
                source=lease.source,
                pages=lease.pages_count,
                rows=lease.items_count,
            )
        elif end is WalkEnd.CAPPED:
            self._log.info("discovery.capped", source=lease.source, rows=lease.items_count)

    async def _walk(self, pages: AsyncIterator[IngestPage]) -> WalkEnd:
        ahead = asyncio.create_task(_next_page(pages))
        try:
            while True:
                page = await self._await_page(ahead)
                self._pages_left -= 1
                more = not page.end and self._pages_left > 0 and self._may_continue()
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
            await _drop(ahead)

    async def _await_page(self, ahead: asyncio.Task[IngestPage]) -> IngestPage:
        """Renews the lease while the source is slow, up to a limit."""
        give_up_at = self._clock.monotonic() + self._limits.page_seconds
        while not ahead.done():
            await asyncio.wait([ahead], timeout=self._limits.lease_seconds / 3)
            if ahead.done():
                break
            if self._clock.monotonic() >= give_up_at:
                raise TimeoutError(f"no page within {self._limits.page_seconds:g} s")
            with suppress(DatabaseGone):
                await self._ingest.renew_stream(self._lease, self._limits.lease_seconds)
        return ahead.result()

    async def _write(self, page: IngestPage) -> StreamState:
        """Writes a page. While the database is gone, the same page is sent again and again."""
        pace = self._stream.pace
        decisions = [] if pace is None else decision_rows(pace.decisions())
        send = partial(self._send, page, decisions)
        ingested = await patiently(send, self._log, self._parts.rng)
        log_decisions(self._log, decisions)
        self._parts.metrics.ingest_rows.labels(self._stream.pipeline.name).inc(ingested.accepted)
        lease = self._lease
        lease.pages_count += 1
        lease.records_count += page.records_count
        lease.items_count += ingested.accepted
        lease.cursor = {"page": page.next_cursor, "skip": 0}
        lease.failures = 0
        return ingested.state

    async def _send(self, page: IngestPage, decisions: list[DecisionRow]) -> Ingested:
        stream, pace = self._stream, self._stream.pace
        note = None
        if page.notes is not None:
            note = partial(stream.pipeline.note, job=stream.job, notes=page.notes)
        started = self._clock.monotonic()
        try:
            ingested = await self._ingest.ingest(
                self._lease,
                page,
                stream.worker,
                self._limits.lease_seconds,
                stream.pipeline.dedupe,
                note,
                decisions,
            )
        except DatabaseGone:
            if pace is not None:
                pace.failed()
            raise
        seconds = self._clock.monotonic() - started - ingested.waited_seconds
        size = sum(len(item.input) for item in page.items) + sum(map(len, page.inputs))
        if pace is not None:
            pace.observe(page.records_count, size, seconds, ingested.waited_seconds)
        self._log.debug(
            "ingest.page",
            source=self._lease.source,
            rows=ingested.accepted,
            bytes=size,
            seconds=seconds,
        )
        return ingested

    async def _wait(self, error: Exception) -> WalkEnd:
        """An HTTP error is never an end: the stream is tried again from its cursor."""
        if isinstance(error, GateWait):
            await self._ingest.release_stream(self._lease, error.seconds)
            return WalkEnd.WAITING
        retry = self._retry_class(error)
        if retry is RetryClass.NEVER:
            return await self._fail(error)
        throttled = retry is RetryClass.THROTTLE
        failures = self._lease.failures
        if not throttled and failures + 1 >= self._limits.max_failures:
            return await self._fail(error)
        retry_after = getattr(error, "retry_after", None)
        cap = self._limits.retry_cap_seconds
        delay = source_delay(failures, cap, retry_after, self._parts.rng)
        self._log.warning(
            "discovery.waits", source=self._lease.source, error=str(error), seconds=delay
        )
        await self._ingest.release_stream(self._lease, delay, None if throttled else str(error))
        return WalkEnd.WAITING

    def _retry_class(self, error: Exception) -> RetryClass:
        if not isinstance(error, ItemError):
            return RetryClass.SOON
        return error_code(error.code, dict(self._stream.pipeline.error_codes)).retry

    async def _fail(self, error: Exception) -> WalkEnd:
        hint = error.hint if isinstance(error, UserError) else None
        text = f"{error} {hint}" if hint else str(error)
        self._log.error("discovery.failed", source=self._lease.source, error=text)
        await self._ingest.fail_stream(self._lease, text)
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


async def _drop(ahead: asyncio.Task[IngestPage]) -> None:
    ahead.cancel()
    with suppress(asyncio.CancelledError, Exception):
        await ahead


async def discovered_pages(
    stream: LeasedStream, ctx: Context, max_input_bytes: int
) -> AsyncIterator[IngestPage]:
    """The pages that the pipeline's `discover` yields, starting at the stream's cursor."""
    pipeline, source = stream.pipeline, stream.lease.source
    cursor = stream.lease.cursor or {"page": None, "skip": 0}
    skip = cursor["skip"]
    async with aclosing(pipeline.discover(source, cursor["page"], ctx)) as pages:  # type: ignore[type-var]
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
        encoded = orjson.dumps(record.input)
    except (TypeError, ValueError) as error:
        raise DiscoveryError(f"a record is not JSON: {error}") from error
    if len(encoded) > max_input_bytes:
        raise DiscoveryError(
            f"a record has {len(encoded):,} bytes, more than HOLDFAST_MAX_INPUT_BYTES="
            f"{max_input_bytes}; raise it and resume the job"
        )
    text = encoded.decode()
    if is_too_deep(text):
        raise DiscoveryError(f"a record nests deeper than {DEEPEST} levels")
    key = record.key or (pipeline.key(record.input) if pipeline.dedupe else None)
    key = storable_key(key)
    return NewItem(text, key, content_hash(encoded) if key else "")
