"""A worker: takes jobs in turn, a slice of each, and keeps its heartbeat."""

from __future__ import annotations

import asyncio
import os
import random
import socket
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import psutil

from holdfast.clock import Clock
from holdfast.engine.control import Control
from holdfast.engine.facilities import FacilityParts, JobFacilities
from holdfast.engine.lost_workers import this_machine
from holdfast.engine.pace.backpressure import Backpressure
from holdfast.engine.pace.concurrency import ConcurrencyBounds
from holdfast.engine.pace.controllers import ClaimBounds, SpacingBounds, pressure
from holdfast.engine.pace.pipeline_pace import PipelinePace, concurrency_of
from holdfast.engine.pace.retry import RetryPolicy
from holdfast.engine.patience import patiently
from holdfast.engine.record.discover import (
    DiscoverLimits,
    Discovery,
    Reach,
    WalkParts,
    WorkerSources,
)
from holdfast.engine.record.execute import Execute, ExecuteLimits, ExecuteParts
from holdfast.engine.record.file_pages import StoredTables
from holdfast.engine.record.slice import ProcessingSlice, SliceParts, WorkLimits
from holdfast.engine.threads import Threads
from holdfast.engine.turns import PollingTurns, Turn, Turns
from holdfast.engine.upkeep import UpkeepLimits, every
from holdfast.engine.walks import Walks
from holdfast.engine.worker_setup import make_flags, make_gates, make_http, make_upkeep
from holdfast.errors import DatabaseGone, NotThere
from holdfast.files import FileAccess
from holdfast.files.trial import on_trial
from holdfast.flags import ServedFlag
from holdfast.http import HttpOptions
from holdfast.model import Job, Lane, Outcome, SliceKind
from holdfast.observe.metrics import Metrics
from holdfast.observe.tracing import span
from holdfast.pipeline import Context, Facilities, Pipeline, with_defaults
from holdfast.store import Store
from holdfast.store.admission import BacklogBounds
from holdfast.store.driver import WORK_CHANNEL
from holdfast.store.retention import Policies
from holdfast.tasks import end_tasks

_IDLE_SECONDS = (0.05, 0.5)
_TURN_TAIL_SECONDS = 0.5
_GATE_SECONDS = 2.0
_LISTEN_AGAIN_SECONDS = 1.0
_CLEAR_SECONDS = 600.0
_EXECUTES = 32
_LINGER_SECONDS = (0.25, 10.0)
_PRESSURE_SECONDS = 1.0
_BUSY = 0.7
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """Values, not settings: the composition root reads those."""

    work: WorkLimits
    execute: ExecuteLimits
    files: FileAccess
    tables: Mapping[str, Any]  # limits of reading a file, by the names of TableOptions
    discover: DiscoverLimits
    claim: ClaimBounds
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
    flags: Callable[[Iterable[str]], Mapping[str, ServedFlag]]  # of these extensions
    policies: Policies
    only_job: int | None = None
    until_idle: bool = False
    stores_robots: bool = True  # for the other workers

    def may_run(self, job_id: int, lane: str) -> bool:
        if self.only_job not in (None, job_id):
            return False
        return self.backfill_enabled or lane != Lane.BACKFILL


@dataclass(frozen=True, slots=True)
class WorkerParts:
    """`name` is the worker's own; `owner` owns the jobs that its schedules make."""

    store: Store
    name: str
    owner: str
    clock: Clock
    rng: random.Random
    metrics: Metrics
    log: Any
    network: Any = None  # None: hosts are reached as the system does it


class Worker:
    def __init__(
        self,
        parts: WorkerParts,
        pipelines: Mapping[str, Pipeline],
        options: WorkerOptions,
        turns: Turns | None = None,
    ) -> None:
        self._store = parts.store
        self._name = parts.name
        self._clock = parts.clock
        self._rng = parts.rng
        self._metrics = parts.metrics
        self._log = parts.log
        self._pipelines = pipelines
        self._options = options
        self._files = options.files
        self._gates = make_gates(parts, options)
        self._http = make_http(parts, self._gates, options)
        self._control = Control(parts.store, parts.owner, parts.log)
        self._upkeep = make_upkeep(parts, self._control, pipelines, options)
        self._flags = make_flags(parts, pipelines, options)
        self._turns = turns or PollingTurns(parts.store, pipelines, options.may_run, parts.clock)
        self._walks = self._make_walks()
        self._execute_parts = self._make_execute_parts()
        self._slice_parts = self._make_slice_parts()
        self._paces: dict[str, PipelinePace] = {}
        self._executes: dict[int, Execute] = {}
        self._tails: set[asyncio.Task[None]] = set()
        self._slice: ProcessingSlice | None = None
        self._finishing: set[ProcessingSlice] = set()
        self._stop = asyncio.Event()
        self._failure: BaseException | None = None
        self._pressed = 0.0
        self._cpu = 0.0

    def stop(self) -> None:
        """Starts nothing more; `run` then ends within the drain time."""
        self._stop.set()
        self._walks.stop()
        if self._slice is not None:
            self._slice.stop("worker stops")

    async def run(self) -> None:
        """Works until stopped or, with `until_idle`, until nothing is left to do. Raises
        errors that waiting cannot fix."""
        await self._patiently(self._register)
        if self._options.only_job is None:
            await self._patiently(partial(self._control.open_declared, self._pipelines.values()))
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
        """A dry run: the outcomes of these inputs, without storing anything."""
        rows = [(number, text, 0, 0, 0) for number, text in enumerate(texts, start=1)]
        async with self.trying(job):
            return await asyncio.gather(*map(self._make_execute(job).in_time, rows))

    @asynccontextmanager
    async def trying(self, job: Job) -> AsyncIterator[Context]:
        """What a dry run of the job uses."""
        reach = self._reach(job)
        async with on_trial(self._options.files) as self._files:
            facilities = self._facilities(self._pipelines[job.pipeline], job)
            try:
                yield Context(job, 0, 1, reach.http, reach.gates, self._log, facilities)
            finally:
                self._http.close()
                await self._leave()

    # Turns.

    async def _work_in_turns(self) -> None:
        idle = _IDLE_SECONDS[0]
        while not self._stop.is_set():
            worked = await self._patiently(partial(self._take_next, idle))
            if worked is None:
                return
            idle = _IDLE_SECONDS[0] if worked else min(_IDLE_SECONDS[1], idle * 1.5)

    async def _take_next(self, idle: float) -> bool | None:
        """Whether there was something to do; None when everything is done, with `until_idle`."""
        turn = await self._next_turn(idle)
        if turn is not None:
            return await self._take(turn)
        if self._options.until_idle and await self._all_done():
            await self._upkeep.tend_all()
            return None
        return False

    async def _patiently(self, action: Callable[[], Awaitable[T]]) -> T | None:
        """Waits for the database; None if the worker is stopped before it is back."""
        with suppress(DatabaseGone):
            return await patiently(
                action, self._log, self._rng, give_up=self._stop.is_set, pause=self._pause
            )
        return None

    async def _next_turn(self, seconds: float) -> Turn | None:
        """None also when the worker is stopped in the meantime."""
        turn = asyncio.ensure_future(self._turns.next(seconds, self._walks.places))
        stopped = asyncio.ensure_future(self._stop.wait())
        await asyncio.wait([turn, stopped], return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if not turn.done():
            turn.cancel()
            await asyncio.wait([turn])
        return None if turn.cancelled() else turn.result()

    async def _take(self, turn: Turn) -> bool:
        """Follows a turn; False if nothing could be claimed."""
        try:
            if turn.kind is SliceKind.DISCOVER:
                worked = await self._walks.start(turn)
            else:
                execute = await self._execute_for(turn.job_id)
        except NotThere:  # deleted since the turn was given
            await self._turns.ended(turn, worked=False)
            return False
        except BaseException:
            await self._turns.ended(turn, worked=False)
            raise
        if turn.kind is SliceKind.PROCESS:
            worked = await self._work_slice(turn, execute)
        if not worked:
            await self._turns.rest(_IDLE_SECONDS[0])
        return worked

    async def _work_slice(self, turn: Turn, execute: Execute) -> bool:
        started = self._clock.monotonic()
        name = execute.pipeline.name
        log = self._log.bind(job_id=turn.job_id, pipeline=name, worker=self._name)
        pace = self._pace_for(execute.pipeline)
        current = ProcessingSlice(self._slice_parts, execute, pace, log)
        self._slice = current
        if self._stop.is_set():  # while the turn was on its way here
            current.stop("worker stops")
        with self._span("slice.process", execute.job, turn.trace):
            try:
                await current.work(lambda: self._turns.others_wait(turn))
            finally:
                self._slice = None
                self._finish_later(current, turn)
                seconds = self._clock.monotonic() - started
                self._metrics.slice_seconds.labels(name, "process").observe(seconds)
        return current.claimed_any

    def _span(self, name: str, job: Job, trace: str | None = None) -> AbstractContextManager[str]:
        """Joins the trace of the message, or of the request that made the job, across processes."""
        parent = trace or job.trace
        return span(name, parent, job_id=job.id, pipeline=job.pipeline, worker=self._name)

    def _finish_later(self, current: ProcessingSlice, turn: Turn) -> None:
        """Slow items end while the next slice is in progress."""
        self._finishing.add(current)
        task = asyncio.create_task(self._finish(current, turn))
        self._tails.add(task)

        def done(finished: asyncio.Task[None]) -> None:
            self._tails.discard(finished)
            self._finishing.discard(current)
            if self._slice is not None:
                self._slice.look_again()
            if not finished.cancelled() and finished.exception() is not None:
                # To continue would run the same items again and again without settling them.
                self._failure = finished.exception()
                self._log.error("slice.failed", error=str(self._failure))
                self.stop()

        task.add_done_callback(done)

    async def _finish(self, current: ProcessingSlice, turn: Turn) -> None:
        """The turn ends with its last item, but does not wait long for it: the items are held by
        their leases, not by the turn."""
        tail = asyncio.create_task(current.finish())
        try:
            await asyncio.wait([tail], timeout=_TURN_TAIL_SECONDS)
            await self._turns.ended(turn, current.claimed_any)
            await asyncio.shield(tail)
        except asyncio.CancelledError:
            tail.cancel()
            raise

    async def _all_done(self) -> bool:
        """Nothing of ours runs, and no job that we may work on has anything left to do."""
        if self._tails or self._walks.any:
            return False
        unfinished = await self._store.reads.unfinished_jobs(list(self._pipelines))
        if self._options.only_job is not None:
            return self._options.only_job not in unfinished
        return not unfinished

    async def _pause(self, seconds: float) -> None:
        waiting = asyncio.ensure_future(self._stop.wait())
        await asyncio.wait([waiting], timeout=seconds)
        waiting.cancel()

    # Parts.

    def _make_execute_parts(self) -> ExecuteParts:
        return ExecuteParts(
            http=self._http,
            gates=self._gates.passing,
            facilities=self._facilities,
            retry=self._options.retry,
            limits=self._options.execute,
            threads=Threads(self._options.threads),
            clock=self._clock,
            rng=self._rng,
        )

    def _make_slice_parts(self) -> SliceParts:
        return SliceParts(
            store=self._store,
            worker=self._name,
            limits=self._options.work,
            clock=self._clock,
            rng=self._rng,
            pressure=lambda: self._pressed,
            may_run_alone=lambda: not self._finishing,
            in_work=self._in_work,
            # With messages a turn ends for the next one; and who waits for the end, waits for it.
            linger_seconds=_LINGER_SECONDS[not (self._options.until_idle or self._turns.listens)],
        )

    def _make_walks(self) -> Walks:
        options = self._options
        parts = WalkParts(
            self._store, options.discover, self._clock, self._rng, self._metrics, self._log
        )
        backpressure = Backpressure(self._store, options.backlog, self._clock, self._metrics)
        sources = WorkerSources(
            self._reach,
            self._facilities,
            backpressure,
            StoredTables(self._store, options.files, options.tables),
            options.discover.max_input_bytes,
            self._log,
        )
        discovery = Discovery(parts, sources, self._name, options.work.slice_seconds)
        return Walks(parts, discovery, self._pipelines, self._turns)

    def _reach(self, job: Job) -> Reach:
        gates = self._gates.of(job.lane, job.id)
        return Reach(self._http.through(gates), gates.passing)

    def _facilities(self, pipeline: Pipeline, job: Job) -> Facilities:
        reach = self._reach(job)
        parts = FacilityParts(
            self._store,
            reach.http,
            reach.gates,
            self._flags.get,
            self._files,
            self._options.execute.timeout_seconds,
            self._options.execute.max_result_bytes,
            self._log,
        )
        return JobFacilities(parts, pipeline, job)

    async def _execute_for(self, job_id: int) -> Execute:
        """Reused from slice to slice. After a restore of the database, another job may have the
        same number."""
        job = await self._store.reads.job(job_id)
        cached = self._executes.get(job_id)
        if cached is None or cached.job.created_at != job.created_at:
            while len(self._executes) >= _EXECUTES:
                del self._executes[next(iter(self._executes))]
            self._executes[job_id] = self._make_execute(job)
        return self._executes[job_id]

    def _make_execute(self, job: Job) -> Execute:
        pipeline = self._pipelines[job.pipeline]
        spacing = self._pace_for(pipeline).spacing
        log = self._log.bind(job_id=job.id, pipeline=pipeline.name)
        reach = self._reach(job)
        parts = replace(self._execute_parts, http=reach.http, gates=reach.gates)
        return Execute(parts, pipeline, with_defaults(pipeline, job), spacing, log)

    def _pace_for(self, pipeline: Pipeline) -> PipelinePace:
        if pipeline.name not in self._paces:
            self._paces[pipeline.name] = PipelinePace(
                pipeline,
                self._options.claim,
                concurrency_of(pipeline, self._options.concurrency, self._options.threads),
                self._options.spacing,
                self._metrics,
            )
        return self._paces[pipeline.name]

    # Start and end.

    def _upkeep_tasks(self) -> list[Coroutine[Any, Any, None]]:
        return [
            every(self._options.upkeep.heartbeat_seconds, self._heartbeat, self._log, "heartbeat"),
            every(_GATE_SECONDS, self._gates.keep, self._log, "gates"),
            every(_CLEAR_SECONDS, self._clear_copies, self._log, "local copies"),
            every(_LISTEN_AGAIN_SECONDS, self._listen, self._log, "listen"),
            every(_PRESSURE_SECONDS, self._measure_pressure, self._log, "pressure"),
            *self._upkeep.loops(self._clock, self._in_work, lambda: self._cpu > _BUSY),
        ]

    async def _listen(self) -> None:
        """Of new items, within milliseconds. A worker for one job looks for them instead."""
        if self._options.only_job is not None:
            await asyncio.Event().wait()
        await self._store.database.driver.listen(WORK_CHANNEL, self._hear)

    def _hear(self, text: str) -> None:
        job_id = int(text) if text.isdecimal() else None
        self._turns.hear(job_id)
        if self._slice is not None:
            self._slice.hear(job_id)

    async def _measure_pressure(self) -> None:
        """Not more often, which would measure noise; nor at a claim, which items wait for."""
        self._cpu = psutil.cpu_percent(None) / 100
        self._pressed = pressure(self._cpu, psutil.virtual_memory().percent / 100)

    async def _clear_copies(self) -> None:
        await self._options.files.local.clear(self._clock.now())

    def _in_work(self) -> set[int]:
        """The ranges that the worker must not take from itself when their leases expire."""
        slices = {self._slice, *self._finishing}
        return {
            range_id
            for current in slices
            if current is not None
            for range_id in current.range_ids()
        }

    async def _register(self) -> None:
        await self._store.workers.add_worker(
            self._name,
            socket.gethostname(),
            os.getpid(),
            sorted(self._pipelines),
            self._turns.listens,
            this_machine(),
        )

    async def _heartbeat(self) -> None:
        if not await self._store.workers.see_worker(self._name):
            await self._register()

    async def _drain(self) -> None:
        """Lets what runs end within the drain time and gives back the rest, uncharged."""
        grace = self._options.drain_seconds
        self._log.info("worker.stopping", worker=self._name)
        await self._turns.close()
        if self._tails:
            await asyncio.wait(self._tails, timeout=grace)
        for current in self._finishing:
            current.abandon()
        if self._tails:
            await asyncio.wait(self._tails, timeout=1.0)
        await self._walks.drain(grace)
        for task in self._tails:
            task.cancel()
        self._http.close()

    async def _leave(self) -> None:
        try:
            async with asyncio.timeout(1.0):
                await self._store.workers.stop_worker(self._name)
                await self._gates.keep()  # counts what passed last
        except (TimeoutError, DatabaseGone) as error:
            self._log.warning("database.gone", error=str(error))
        self._log.info("worker.stopped", worker=self._name)
