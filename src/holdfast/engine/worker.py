"""A worker: takes jobs in turn, a slice of each, and keeps itself seen."""

from __future__ import annotations

import asyncio
import os
import random
import socket
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import psutil

from holdfast.clock import Clock
from holdfast.engine.control import Control
from holdfast.engine.gates import Gates
from holdfast.engine.pace.backpressure import BacklogBounds, Backpressure
from holdfast.engine.pace.concurrency import ConcurrencyBounds
from holdfast.engine.pace.controllers import (
    ClaimBounds,
    IngestBounds,
    IngestPace,
    SpacingBounds,
    pressure,
)
from holdfast.engine.pace.pipeline_pace import PipelinePace
from holdfast.engine.pace.retry import RetryPolicy
from holdfast.engine.planning import ending_of
from holdfast.engine.record.discover import DiscoverLimits, Walk, WalkEnd, discovered_pages
from holdfast.engine.record.execute import Execute, ExecuteLimits
from holdfast.engine.record.slice import ProcessingSlice, WorkLimits
from holdfast.engine.threads import Threads
from holdfast.engine.turns import PollingTurns, Turn, Turns
from holdfast.engine.upkeep import Upkeep, UpkeepLimits, every
from holdfast.errors import DatabaseGone
from holdfast.http import HttpClient, HttpOptions
from holdfast.model import Job, JobState, Lane, Outcome, SliceKind
from holdfast.observe.metrics import Metrics
from holdfast.observe.tracing import span
from holdfast.pipeline import Context, Pipeline
from holdfast.store import Store
from holdfast.tasks import end_tasks

_HEARTBEAT_SECONDS = 5.0
_IDLE_SECONDS = (0.05, 0.5)
_GONE_SECONDS = (0.2, 5.0)
_TURN_TAIL_SECONDS = 0.5
_GATE_SECONDS = 2.0
_EXECUTES = 32
_PRESSURE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """Values, not settings: the composition root reads those."""

    work: WorkLimits
    execute: ExecuteLimits
    discover: DiscoverLimits
    claim: ClaimBounds
    ingest: IngestBounds
    concurrency: ConcurrencyBounds
    spacing: SpacingBounds
    retry: RetryPolicy
    http: HttpOptions
    gate_max_wait_seconds: float
    backlog: BacklogBounds
    upkeep: UpkeepLimits
    drain_seconds: float
    backfill_enabled: bool
    threads: int
    only_job: int | None = None
    until_idle: bool = False

    def may_run(self, job_id: int, lane: str) -> bool:
        if self.only_job not in (None, job_id):
            return False
        return self.backfill_enabled or lane != Lane.BACKFILL


class Worker:
    def __init__(
        self,
        store: Store,
        name: str,
        pipelines: Mapping[str, Pipeline],
        options: WorkerOptions,
        owner: str,
        clock: Clock,
        rng: random.Random,
        metrics: Metrics,
        log: Any,
        turns: Turns | None = None,
    ) -> None:
        self._store = store
        self._name = name
        self._pipelines = pipelines
        self._options = options
        self._clock = clock
        self._rng = rng
        self._metrics = metrics
        self._log = log
        self._gates = Gates(
            store,
            name,
            options.gate_max_wait_seconds,
            clock,
            metrics.gate_wait_seconds.observe,
            log,
        )
        self._http = HttpClient(self._gates, options.http, clock, rng)
        self._control = Control(store, owner, log)
        self._upkeep = Upkeep(store, self._control, pipelines, options.upkeep, name, metrics, log)
        self._backpressure = Backpressure(store, options.backlog, clock, metrics)
        self._threads = Threads(options.threads)
        self._turns = turns or PollingTurns(store, pipelines, options.may_run, clock)
        self._paces: dict[str, PipelinePace] = {}
        self._executes: dict[int, Execute] = {}
        self._tails: set[asyncio.Task[None]] = set()
        self._slice: ProcessingSlice | None = None
        self._finishing: set[ProcessingSlice] = set()
        self._walks: dict[int, asyncio.Task[None]] = {}
        self._stop = asyncio.Event()
        self._failure: BaseException | None = None
        self._pressed_at, self._pressed = 0.0, 0.0

    def stop(self) -> None:
        """Starts nothing more; `run` then hands over within the drain time."""
        self._stop.set()
        if self._slice is not None:
            self._slice.stop("worker stops")

    async def run(self) -> None:
        """Works until stopped or, with `until_idle`, until nothing is left to do. Raises what
        waiting cannot mend."""
        await self._while_gone(self._register)
        upkeep = [asyncio.create_task(task) for task in self._upkeep_tasks()]
        self._log.info("worker.started", worker=self._name, pipelines=sorted(self._pipelines))
        try:
            await self._work_in_turns()
        finally:
            await self._drain()
            await end_tasks(upkeep)
            await self._leave()
        if self._failure is not None:
            raise self._failure

    async def try_out(self, job: Job, texts: Sequence[str]) -> list[Outcome]:
        """A dry run: what would come of these inputs. Nothing of it is kept."""
        execute = self._make_execute(job)

        async def tried(row: tuple[int, str, int, int, int]) -> Outcome:
            try:
                async with asyncio.timeout(execute.timeout):
                    return await execute(row)
            except TimeoutError:
                return execute.timed_out(row)

        rows = [(number, text, 0, 0, 0) for number, text in enumerate(texts, start=1)]
        try:
            return await asyncio.gather(*map(tried, rows))
        finally:
            await self._http.aclose()
            await self._leave()

    # Turns.

    async def _work_in_turns(self) -> None:
        idle = _IDLE_SECONDS[0]
        while not self._stop.is_set():
            worked = False
            try:
                turn = await self._next_turn(idle)
                if turn is not None:
                    worked = await self._take(turn)
                elif self._options.until_idle and await self._all_done():
                    await self._upkeep.tend_all()
                    return
            except DatabaseGone as error:
                self._log.warning("database.gone", error=str(error))
                await self._pause(_GONE_SECONDS[1] / 5)
            idle = _IDLE_SECONDS[0] if worked else min(_IDLE_SECONDS[1], idle * 1.5)

    async def _next_turn(self, seconds: float) -> Turn | None:
        """None also when the worker is stopped meanwhile."""
        coming = asyncio.ensure_future(self._turns.next(seconds, self._walks.keys()))
        stopped = asyncio.ensure_future(self._stop.wait())
        await asyncio.wait([coming, stopped], return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if not coming.done():
            coming.cancel()
            await asyncio.wait([coming])
        return None if coming.cancelled() else coming.result()

    async def _take(self, turn: Turn) -> bool:
        """Follows a turn; False when it came to nothing, and looking again at once would too."""
        if turn.kind is SliceKind.DISCOVER:
            self._start_walk(turn)
            return True
        try:
            execute = await self._execute_for(turn.job_id)
        except BaseException:
            await self._turns.ended(turn, worked=False)
            raise
        worked = await self._work_slice(turn, execute)
        if not worked:
            await self._pause(_IDLE_SECONDS[0])
        return worked

    async def _work_slice(self, turn: Turn, execute: Execute) -> bool:
        started = self._clock.monotonic()
        current = ProcessingSlice(
            self._store,
            self._name,
            execute,
            self._pace_for(execute.pipeline),
            self._options.work,
            self._clock,
            self._log.bind(job_id=turn.job_id, pipeline=execute.pipeline.name, worker=self._name),
            self._pressure,
            lambda: not self._finishing,
            self._in_work,
        )
        self._slice = current
        if self._stop.is_set():  # said while the turn was on its way here
            current.stop("worker stops")
        with self._span("slice.process", execute.job, turn.trace):
            try:
                await current.work(lambda: self._turns.others_wait(turn))
            finally:
                self._slice = None
                self._finish_later(current, turn)
                seconds = self._clock.monotonic() - started
                name = execute.pipeline.name
                self._metrics.slice_seconds.labels(name, "process").observe(seconds)
        return current.claimed_any

    def _span(self, name: str, job: Job, trace: str | None = None) -> AbstractContextManager[str]:
        """Joins the trace of the message, or of whoever made the job, across processes."""
        parent = trace or job.trace
        return span(name, parent, job_id=job.id, pipeline=job.pipeline, worker=self._name)

    def _finish_later(self, current: ProcessingSlice, turn: Turn) -> None:
        """Slow items come to their end while the next slice is under way."""
        self._finishing.add(current)
        task = asyncio.create_task(self._finish(current, turn))
        self._tails.add(task)

        def done(finished: asyncio.Task[None]) -> None:
            self._tails.discard(finished)
            self._finishing.discard(current)
            if self._slice is not None:
                self._slice.look_again()
            if not finished.cancelled() and finished.exception() is not None:
                # Going on would do the same items again and again, and never settle them.
                self._failure = finished.exception()
                self._log.error("slice.failed", error=str(self._failure))
                self.stop()

        task.add_done_callback(done)

    async def _finish(self, current: ProcessingSlice, turn: Turn) -> None:
        """The turn ends with its last item, but does not wait long for it: the leases, not the
        turn, keep the items."""
        tail = asyncio.create_task(current.finish())
        try:
            await asyncio.wait([tail], timeout=_TURN_TAIL_SECONDS)
            await self._turns.ended(turn, current.claimed_any)
            await asyncio.shield(tail)
        except asyncio.CancelledError:
            tail.cancel()
            raise

    async def _all_done(self) -> bool:
        """Nothing of ours runs, and no job that we may work on is still RUNNING."""
        if self._tails or self._walks:
            return False
        if self._options.only_job is not None:
            job = await self._store.reads.job(self._options.only_job)
            return job.state is not JobState.RUNNING
        return not await self._store.reads.running_jobs(list(self._pipelines))

    async def _pause(self, seconds: float) -> None:
        waiting = asyncio.ensure_future(self._stop.wait())
        await asyncio.wait([waiting], timeout=seconds)
        waiting.cancel()

    # Discovery.

    def _start_walk(self, turn: Turn) -> None:
        task = asyncio.create_task(self._walk_and_end(turn))
        self._walks[turn.job_id] = task
        task.add_done_callback(partial(self._walked, turn.job_id))

    def _walked(self, job_id: int, done: asyncio.Task[None]) -> None:
        self._walks.pop(job_id, None)
        error = None if done.cancelled() else done.exception()
        if isinstance(error, DatabaseGone):
            self._log.warning("database.gone", error=str(error))
        elif error is not None:
            self._log.error("discovery.failed", source=str(job_id), exc_info=error)

    async def _walk_and_end(self, turn: Turn) -> None:
        """Slice after slice until the turn's time is up and another job waits."""
        deadline = self._clock.monotonic() + self._options.work.slice_seconds
        walked, end = False, None
        try:
            while not self._stop.is_set():
                end = await self._walk(turn.job_id)
                walked = walked or end is not None
                if end is not WalkEnd.TIME:
                    break
                if self._clock.monotonic() >= deadline and await self._turns.others_wait(turn):
                    break
        finally:
            await self._turns.ended(turn, walked)

    async def _walk(self, job_id: int) -> WalkEnd | None:
        """A discovery slice; None if no stream of the job was free."""
        limits = self._options.discover
        stream = await self._store.ingest.lease_stream(job_id, self._name, limits.lease_seconds)
        if stream is None:
            return None
        wait = await self._backpressure.wait_seconds()
        if wait is not None:
            await self._store.ingest.release_stream(stream, wait)
            return WalkEnd.WAITING
        execute = await self._execute_for(job_id)
        pipeline, job = execute.pipeline, execute.job
        if stream.fingerprint != pipeline.fingerprint(stream.source, job.given_options):
            await self._store.ingest.fail_stream(
                stream, f"the query behind {stream.source} changed since its cursor was stored"
            )
            await self._store.outcomes.complete(job_id, ending_of(pipeline, job))
            return WalkEnd.FAILED
        started = self._clock.monotonic()
        deadline = started + self._options.work.slice_seconds
        walk = Walk(
            self._store,
            stream,
            pipeline,
            self._name,
            limits,
            IngestPace(self._options.ingest),
            self._clock,
            self._metrics,
            self._log.bind(job_id=job_id, pipeline=pipeline.name, worker=self._name),
            lambda: self._clock.monotonic() < deadline and not self._stop.is_set(),
            partial(pipeline.note, job=job),
        )
        ctx = Context(job, 0, stream.failures + 1, self._http, self._gates.passing, self._log)
        with self._span("slice.discover", job):
            end = await walk.run(discovered_pages(pipeline, stream, ctx, limits.max_input_bytes))
        seconds = self._clock.monotonic() - started
        self._metrics.slice_seconds.labels(pipeline.name, "discover").observe(seconds)
        if end in (WalkEnd.COMPLETE, WalkEnd.CAPPED, WalkEnd.FAILED):
            await self._store.outcomes.complete(job_id, ending_of(pipeline, job))
        return end

    # Parts.

    async def _execute_for(self, job_id: int) -> Execute:
        """Kept from slice to slice; after a restore of the database, another job may have its
        number."""
        job = await self._store.reads.job(job_id)
        kept = self._executes.get(job_id)
        if kept is None or kept.job.created_at != job.created_at:
            while len(self._executes) >= _EXECUTES:
                del self._executes[next(iter(self._executes))]
            self._executes[job_id] = self._make_execute(job)
        return self._executes[job_id]

    def _make_execute(self, job: Job) -> Execute:
        pipeline = self._pipelines[job.pipeline]
        return Execute(
            pipeline,
            job,
            self._http,
            self._gates.passing,
            _policy_of(pipeline, self._options.retry),
            self._pace_for(pipeline).spacing,
            self._options.execute,
            self._threads,
            self._clock,
            self._rng,
            self._log.bind(job_id=job.id, pipeline=pipeline.name),
        )

    def _pace_for(self, pipeline: Pipeline) -> PipelinePace:
        if pipeline.name not in self._paces:
            self._paces[pipeline.name] = PipelinePace(
                pipeline,
                self._options.claim,
                _concurrency_of(pipeline, self._options.concurrency, self._options.threads),
                self._options.spacing,
                self._metrics,
            )
        return self._paces[pipeline.name]

    def _pressure(self) -> float:
        """Measured once a second: more often, it would measure noise."""
        now = self._clock.monotonic()
        if now >= self._pressed_at + _PRESSURE_SECONDS:
            cpu, memory = psutil.cpu_percent(None), psutil.virtual_memory().percent
            self._pressed_at, self._pressed = now, pressure(cpu / 100, memory / 100)
        return self._pressed

    # Coming and going.

    def _upkeep_tasks(self) -> list[Coroutine[Any, Any, None]]:
        return [
            every(_HEARTBEAT_SECONDS, self._heartbeat, self._log, "heartbeat"),
            every(_GATE_SECONDS, self._gates.keep, self._log, "gates"),
            *self._upkeep.loops(self._in_work),
        ]

    def _in_work(self) -> set[int]:
        """The ranges that the worker must not take from itself when their leases ran out."""
        slices = {self._slice, *self._finishing}
        return {range_id for one in slices if one is not None for range_id in one.range_ids()}

    async def _register(self) -> None:
        await self._store.upkeep.add_worker(
            self._name,
            socket.gethostname(),
            os.getpid(),
            sorted(self._pipelines),
            self._turns.listens,
        )

    async def _heartbeat(self) -> None:
        if not await self._store.upkeep.see_worker(self._name):
            await self._register()

    async def _drain(self) -> None:
        """Lets what runs end within the drain time and gives the rest back, uncharged."""
        grace = self._options.drain_seconds
        self._log.info("worker.stopping", worker=self._name)
        await self._turns.close()
        if self._tails:
            await asyncio.wait(self._tails, timeout=grace)
        for left in self._finishing:
            left.abandon()
        if self._tails:
            await asyncio.wait(self._tails, timeout=1.0)
        if self._walks:
            await asyncio.wait(list(self._walks.values()), timeout=grace)
            for task in self._walks.values():
                task.cancel()
        for task in self._tails:
            task.cancel()
        await self._http.aclose()

    async def _leave(self) -> None:
        try:
            async with asyncio.timeout(1.0):
                await self._store.upkeep.stop_worker(self._name)
        except (TimeoutError, DatabaseGone) as error:
            self._log.warning("database.gone", error=str(error))
        self._log.info("worker.stopped", worker=self._name)

    async def _while_gone(self, action: Callable[[], Coroutine[Any, Any, None]]) -> None:
        wait = _GONE_SECONDS[0]
        while not self._stop.is_set():
            try:
                await action()
                return
            except DatabaseGone as error:
                self._log.warning("database.gone", error=str(error))
                await self._pause(wait)
                wait = min(_GONE_SECONDS[1], wait * 2)


def _policy_of(pipeline: Pipeline, policy: RetryPolicy) -> RetryPolicy:
    return replace(
        policy,
        max_attempts_error=pipeline.max_attempts or policy.max_attempts_error,
        max_attempts_not_found=pipeline.max_attempts_not_found or policy.max_attempts_not_found,
    )


def _concurrency_of(
    pipeline: Pipeline, bounds: ConcurrencyBounds, threads: int
) -> ConcurrencyBounds:
    """No more plain `def` items at once than threads: an item's time must not run in a queue."""
    maximum = pipeline.max_concurrency or bounds.maximum
    if pipeline.threaded:
        maximum = min(maximum, threads)
    minimum = min(maximum, max(bounds.minimum, pipeline.min_concurrency))
    return replace(bounds, minimum=minimum, maximum=maximum)
