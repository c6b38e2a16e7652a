"""Discovery: a source's pages become rows, cursor and rows together, within the caps.

Read it top to bottom: `Discovery` leases a stream of a job and reads it with `walk_stream`.
`pages.py` turns the pipeline's pages into rows, `file_pages.py` the rows of a file.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any, Protocol

from holdfast.clock import Clock
from holdfast.errors import (
    DatabaseGone,
    DiscoveryError,
    Failed,
    FilesGone,
    GateWait,
    HoldfastError,
    InputError,
    ItemError,
    LeaseLost,
    Retry,
    RetryClass,
    UserError,
    error_code,
)
from holdfast.kernel import DecisionRow, IngestPage, Store, StreamLease
from holdfast.kernel.database.driver import Transaction
from holdfast.kernel.jobs.planning import planner_at_end
from holdfast.kernel.pace.backpressure import Backpressure
from holdfast.kernel.pace.controllers import IngestBounds, IngestPace
from holdfast.kernel.pace.pipeline_pace import decision_rows, log_decisions
from holdfast.kernel.pace.retry import source_delay
from holdfast.kernel.record.file_pages import StoredTables, file_pages
from holdfast.kernel.record.ingest import Ingested
from holdfast.kernel.record.pages import Yielded, discovered_pages
from holdfast.kernel.worker.patience import patiently
from holdfast.model import Job, NothingYet, StreamState
from holdfast.observe.metrics import Metrics
from holdfast.observe.tracing import span
from holdfast.pipeline import Context, Facilities, Http, OpenGate, Pipeline, with_defaults


class WalkEnd(StrEnum):
    """Why reading a stream ended."""

    COMPLETE = "complete"
    CAPPED = "capped"
    TIME = "time"  # its time is up; the stream continues later
    WAITING = "waiting"  # for new records, a gate or a throttling source, or after an error
    FAILED = "failed"
    LOST = "lost"  # another worker has the lease, or the job accepts no more items


_LEAST_WAIT_SECONDS = 0.02  # between two looks at a source that has nothing yet

_ENDS = {
    StreamState.COMPLETE: WalkEnd.COMPLETE,
    StreamState.CAPPED: WalkEnd.CAPPED,
    StreamState.FAILED: WalkEnd.FAILED,
}


@dataclass(frozen=True, slots=True)
class DiscoverLimits:
    max_input_bytes: int
    max_failures: int
    retry_base_seconds: float
    ingest: IngestBounds  # bounds for the pages of files
    page_seconds: float = 300.0  # time for a source to return one page


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
    """A stream, and which worker reads it for which job.

    `pace` sizes the pages if that is up to us."""

    lease: StreamLease
    pipeline: Pipeline
    job: Job
    worker: str
    pace: IngestPace | None = None

    @property
    def reads_file(self) -> bool:
        return self.job.reference is not None


@dataclass(frozen=True, slots=True)
class Reach:
    """HTTP client and gates: how work of one job reaches out of the process."""

    http: Http
    gates: OpenGate


class Sources(Protocol):
    """The sources that streams read.

    `wait_seconds`: how long they have to wait before they bring more."""

    def pages(self, stream: LeasedStream) -> AsyncGenerator[Yielded]: ...

    async def wait_seconds(self) -> int | None: ...


@dataclass(frozen=True, slots=True)
class WorkerSources:
    """The sources of pipelines, which read what their `discover` uses, and stored files."""

    reach: Callable[[Job], Reach]
    facilities: Callable[[Pipeline, Job], Facilities]
    backpressure: Backpressure
    tables: StoredTables
    max_input_bytes: int
    log: Any

    def pages(self, stream: LeasedStream) -> AsyncGenerator[Yielded]:
        pipeline, job, lease = stream.pipeline, stream.job, stream.lease
        if stream.pace is not None:
            return file_pages(self.tables.open(job), pipeline, job, lease, stream.pace)
        return discovered_pages(pipeline, lease, self._context(stream), self.max_input_bytes)

    async def wait_seconds(self) -> int | None:
        return await self.backpressure.wait_seconds()

    def _context(self, stream: LeasedStream) -> Context:
        reach = self.reach(stream.job)
        return Context(
            with_defaults(stream.pipeline, stream.job),
            0,
            stream.lease.failures + 1,
            reach.http,
            reach.gates,
            self.log,
            self.facilities(stream.pipeline, stream.job),
        )


class Discovery:
    """Reads streams for one worker, or for `holdfast run` with its own file."""

    def __init__(
        self, parts: WalkParts, sources: Sources, worker: str, slice_seconds: float
    ) -> None:
        self._parts = parts
        self._sources = sources
        self._worker = worker
        self._slice_seconds = slice_seconds

    async def lease(self, pipeline: Pipeline, job: Job) -> LeasedStream | None:
        """Leases a stream of the job that is free, if there is one."""
        lease = await self._parts.store.ingest.lease_stream(job.id, self._worker)
        if lease is None:
            return None
        pace = None if job.reference is None else IngestPace(self._parts.limits.ingest)
        return LeasedStream(lease, pipeline, job, self._worker, pace)

    async def walk(
        self,
        stream: LeasedStream,
        stopped: Callable[[], bool],
        place_is_wanted: Callable[[], Awaitable[bool]],
    ) -> WalkEnd:
        """Reads a stream until it ends or has to wait; if its place is wanted, for a slice."""
        lease, pipeline, job = stream.lease, stream.pipeline, stream.job
        release = self._parts.store.ingest.release_stream
        if stopped():
            await release(lease)
            return WalkEnd.TIME
        wait = await self._sources.wait_seconds()
        if wait is not None:
            await release(lease, wait, waiting_for="open items to be processed")
            return WalkEnd.WAITING
        name, worker = pipeline.name, self._worker
        with span("walk", job.trace, job_id=job.id, pipeline=name, worker=worker):
            return await self._walk(stream, stopped, place_is_wanted)

    async def _walk(
        self,
        stream: LeasedStream,
        stopped: Callable[[], bool],
        place_is_wanted: Callable[[], Awaitable[bool]],
    ) -> WalkEnd:
        parts, clock = self._parts, self._parts.clock
        started = clock.monotonic()
        deadline: float | None = None

        async def may_continue() -> bool:
            nonlocal deadline
            if stopped():
                return False
            now = clock.monotonic()
            if deadline is None:
                # If it took long to reach its place in a large file, it has as long for its pages.
                deadline = now + max(self._slice_seconds, now - started)
            if now >= deadline:
                if await place_is_wanted() or await self._sources.wait_seconds() is not None:
                    return False
                deadline = now + self._slice_seconds
            return True

        end = await walk_stream(parts, stream, self._sources.pages(stream), may_continue)
        seconds = clock.monotonic() - started
        parts.metrics.walk_seconds.labels(stream.pipeline.name).observe(seconds)
        return end


async def walk_stream(
    parts: WalkParts,
    stream: LeasedStream,
    pages: AsyncGenerator[Yielded],
    may_continue: Callable[[], Awaitable[bool]],
) -> WalkEnd:
    """Writes the pages of a leased stream until they end, a cap is reached, something fails, or it
    may not continue; then ends the job if nothing of it is left."""
    try:
        end = await _Walk(parts, stream, may_continue).run(pages)
    finally:
        with suppress(Exception):  # a source's error at its close changes nothing
            await pages.aclose()
    if end in _ENDS.values():
        planner = planner_at_end(stream.pipeline, stream.job)
        await parts.store.outcomes.complete(stream.lease.job_id, planner)
    return end


class _Walk:
    """One walk along one leased stream: it fetches the next page while this one is written."""

    def __init__(
        self, parts: WalkParts, stream: LeasedStream, may_continue: Callable[[], Awaitable[bool]]
    ) -> None:
        self._parts = parts
        self._ingest = parts.store.ingest
        self._limits = parts.limits
        self._clock = parts.clock
        self._stream = stream
        self._lease = stream.lease
        self._may_continue = may_continue
        of_source = None if stream.reads_file else stream.pipeline.slice_pages
        self._pages_left = of_source or sys.maxsize
        self._log = parts.log.bind(
            job_id=stream.job.id, pipeline=stream.pipeline.name, worker=stream.worker
        )

    async def run(self, pages: AsyncGenerator[Yielded]) -> WalkEnd:
        try:
            end = await self._walk(pages)
        except LeaseLost as lost:
            self._log.warning("lease.lost", error=str(lost))
            return WalkEnd.LOST
        except GateWait as gate:
            return await self._wait(gate.seconds, f"the gate {gate.gate}: {gate.reason}")
        except asyncio.CancelledError:
            raise
        except Exception as error:
            return await self._after_error(error)
        self._log_end(end)
        if end is WalkEnd.TIME:
            await self._release()
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

    async def _walk(self, pages: AsyncGenerator[Yielded]) -> WalkEnd:
        ahead = asyncio.create_task(_next_page(pages))
        try:
            while True:
                page = await self._await_page(ahead)
                if isinstance(page, NothingYet):
                    return await self._wait_for_records(page)
                self._pages_left -= 1
                more = not page.end and self._pages_left > 0 and await self._may_continue()
                if more:
                    ahead = asyncio.create_task(_next_page(pages))
                ingested = await self._write(page)
                if ingested.state in _ENDS:
                    return _ENDS[ingested.state]
                if not more or ingested.held_back:
                    return WalkEnd.TIME
        finally:
            await _drop(ahead)

    async def _await_page(self, ahead: asyncio.Task[Yielded]) -> Yielded:
        await asyncio.wait([ahead], timeout=self._limits.page_seconds)
        if not ahead.done():
            raise TimeoutError(f"no page within {self._limits.page_seconds:g} s")
        return ahead.result()

    async def _write(self, page: IngestPage) -> Ingested:
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
        return ingested

    async def _send(self, page: IngestPage, decisions: list[DecisionRow]) -> Ingested:
        stream, pace = self._stream, self._stream.pace
        note = None if page.notes is None else partial(self._note, page.notes)
        started = self._clock.monotonic()
        try:
            ingested = await self._ingest.ingest(
                self._lease,
                page,
                stream.worker,
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
            pace.observe(page.records_count, size, seconds)
        self._log.debug(
            "ingest.page",
            source=self._lease.source,
            rows=ingested.accepted,
            bytes=size,
            seconds=seconds,
        )
        return ingested

    async def _note(self, notes: Any, tx: Transaction, taken: int) -> None:
        await self._stream.pipeline.note(tx, self._stream.job, notes, taken)

    # Ends of a walk.

    async def _wait_for_records(self, nothing: NothingYet) -> WalkEnd:
        self._lease.failures = 0  # the source answered
        return await self._wait(max(_LEAST_WAIT_SECONDS, nothing.after), nothing.waiting_for)

    async def _wait(self, seconds: float, waiting_for: str) -> WalkEnd:
        await self._release(seconds, waiting_for=waiting_for)
        return WalkEnd.WAITING

    async def _after_error(self, error: Exception) -> WalkEnd:
        """Decides what follows an error.

        It is never an end: the stream is tried again from its cursor, unless waiting cannot help. A
        stream that follows its source, or of a standing job, never gives up."""
        problem = _problem(error)
        retry = self._retry_class(problem)
        throttled = retry is RetryClass.THROTTLE
        failures = self._lease.failures
        if not (self._stream.pipeline.follows or self._stream.job.standing):
            tries_left = throttled or failures + 1 < self._limits.max_failures
            if retry is RetryClass.NEVER or not tries_left:
                return await self._fail(problem)
        retry_after = getattr(problem, "retry_after", None)
        base = self._limits.retry_base_seconds
        delay = source_delay(failures, base, retry_after, self._parts.rng)
        text = _text(problem)
        if isinstance(problem, FilesGone):
            self._log.warning("files.gone", error=text)
        self._log.warning("discovery.waits", source=self._lease.source, error=text, seconds=delay)
        if throttled:
            return await self._wait(delay, text)
        await self._release(delay, text)
        return WalkEnd.WAITING

    def _retry_class(self, problem: Exception) -> RetryClass:
        if isinstance(problem, DiscoveryError | InputError):
            return RetryClass.NEVER
        if isinstance(problem, DatabaseGone | FilesGone):
            return RetryClass.THROTTLE  # our gate: the source did not fail
        if not isinstance(problem, ItemError):
            return RetryClass.SOON
        return error_code(problem.code, dict(self._stream.pipeline.error_codes)).retry

    async def _release(
        self, delay: float = 0.0, error: str | None = None, waiting_for: str | None = None
    ) -> None:
        """Releases the stream; waits for the database, because a lease that is not given back keeps
        the stream from all others until the worker ends."""
        release = partial(self._ingest.release_stream, self._lease, delay, error, waiting_for)
        await patiently(release, self._log, self._parts.rng)

    async def _fail(self, problem: Exception) -> WalkEnd:
        text = _text(problem)
        self._log.error("discovery.failed", source=self._lease.source, error=text)
        fail = partial(self._ingest.fail_stream, self._lease, text)
        await patiently(fail, self._log, self._parts.rng)
        return WalkEnd.FAILED


def _problem(error: Exception) -> Exception:
    """Converts what a pipeline's `discover` raised to the error that decides what happens next."""
    match error:
        case Retry():
            after = None if error.after is None else max(0.0, float(error.after))
            return ItemError("UNKNOWN_ERROR", error.reason, retry_after=after)
        case Failed():
            return ItemError(error.code, error.message)
        case HoldfastError() | OSError():
            return error
    kind = type(error).__name__
    return ItemError("UNKNOWN_ERROR", f"{kind} in the pipeline's discover: {error}")


def _text(problem: Exception) -> str:
    hint = problem.hint if isinstance(problem, UserError) else None
    return f"{problem} {hint}" if hint else str(problem)


async def _next_page(pages: AsyncGenerator[Yielded]) -> Yielded:
    try:
        return await anext(pages)
    except StopAsyncIteration:
        raise DiscoveryError(
            "the source's pages ended without an end signal (Page(..., end=True)), or NothingYet()"
        ) from None
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise ItemError("UNKNOWN_ERROR", "CancelledError in the pipeline's discover") from None


async def _drop(ahead: asyncio.Task[Yielded]) -> None:
    ahead.cancel()
    with suppress(asyncio.CancelledError, Exception):
        await ahead
