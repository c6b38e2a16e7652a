"""A worker: it holds items of all its jobs at once, and keeps its heartbeat."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from enum import Enum, auto
from functools import partial
from typing import TypeVar

import psutil

from holdfast.errors import DatabaseGone, NotThere
from holdfast.files.trial import on_trial
from holdfast.kernel import DueJob
from holdfast.kernel.database.driver import WORK_CHANNEL
from holdfast.kernel.jobs.control import Control
from holdfast.kernel.pace.backpressure import Backpressure
from holdfast.kernel.pace.controllers import SpacingBounds
from holdfast.kernel.pace.fair_order import FairOrder
from holdfast.kernel.pace.pipeline_pace import PipelinePace, concurrency_of
from holdfast.kernel.record.discover import (
    Discovery,
    Reach,
    WalkParts,
    WorkerSources,
)
from holdfast.kernel.record.execute import Execute, ExecuteParts
from holdfast.kernel.record.file_pages import StoredTables
from holdfast.kernel.record.places import Places
from holdfast.kernel.record.running import Look, Running, RunningParts
from holdfast.kernel.worker.chores import Chore, begin
from holdfast.kernel.worker.facilities import FacilityParts, JobFacilities
from holdfast.kernel.worker.hands import REST, Hands
from holdfast.kernel.worker.lost_workers import this_machine
from holdfast.kernel.worker.patience import patiently
from holdfast.kernel.worker.presence import present
from holdfast.kernel.worker.threads import Threads
from holdfast.kernel.worker.upkeep import chores
from holdfast.kernel.worker.walks import Walks
from holdfast.kernel.worker.worker_parts import (
    WorkerOptions,
    WorkerParts,
    make_flags,
    make_gates,
    make_http,
    make_upkeep,
)
from holdfast.model import Job, JobState, Outcome
from holdfast.pipeline import Context, Facilities, Pipeline, with_defaults
from holdfast.tasks import end_tasks

_GATE_SECONDS = 2.0
_LISTEN_AGAIN_SECONDS = 1.0
_CLEAR_SECONDS = 600.0
#: How often pause, cancel and the kill switch are read.
_CONTROL_SECONDS = 0.5
_WATCH_SECONDS = 0.1
#: How many claims run at once; the fair order chooses among jobs that wait for one.
_CLAIMS = 4
#: How many unstarted items a worker holds, over all its jobs. Beyond that, a job of which it has
#: none gets one, up to the maximum.
_HELD_BYTES = 32 * 1024 * 1024
_MOST_BYTES = 8 * _HELD_BYTES
#: Shortest time between two looks, whatever is due: what is due cannot always be claimed at once.
_LEAST_SECONDS = 0.01
#: A standing job that gets nothing for this long is dropped from memory.
_IDLE_SECONDS = 10.0
_PRESSURE_SECONDS = 1.0
_BUSY = 0.7
T = TypeVar("T")


class Found(Enum):
    """The result of a look for work."""

    NOTHING = auto()
    SOME = auto()
    ALL_DONE = auto()


class Worker:
    """Claims ranges of any of its jobs, runs their items and settles them, until it is stopped."""

    def __init__(
        self, parts: WorkerParts, pipelines: Mapping[str, Pipeline], options: WorkerOptions
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
        self._look = Look(parts.clock)
        self._news = asyncio.Event()
        self._stop = asyncio.Event()
        self.started = asyncio.Event()  # set when the declared standing jobs are open
        self._gates = make_gates(parts, options)
        self._http = make_http(parts, self._gates, options)
        self._control = Control(parts.store, parts.owner, parts.log)
        self._upkeep = make_upkeep(parts, self._control, pipelines, options)
        self._flags = make_flags(parts, pipelines, options)
        self._walks = self._make_walks()
        self._execute_parts = self._make_execute_parts()
        self._running_parts = self._make_running_parts()
        self._paces: dict[str, PipelinePace] = {}
        self._places: dict[str, Places] = {}
        self._due: dict[int, DueJob] = {}  # jobs with work at the last look that hold nothing
        self._running: dict[int, Running] = {}
        self._finishing: dict[asyncio.Task[int], Running] = {}
        self._claims: set[asyncio.Task[None]] = set()
        self._order = FairOrder()
        self._hands = Hands(parts.store, parts.name, self._tokens)
        self._failure: BaseException | None = None
        self._pressed = 0.0
        self._cpu = 0.0

    def stop(self) -> None:
        """Stops the worker: nothing more starts; `run` then ends within the drain time."""
        self._stop.set()
        self._walks.stop()
        for running in self._running.values():
            running.stop("worker stops")
        self._news.set()

    async def run(self) -> None:
        """Works until stopped or, with `until_idle`, until nothing is left to do.

        Raises errors that waiting cannot fix."""
        await self._patiently(self._register)
        if self._options.only_job is None:
            await self._patiently(partial(self._control.open_declared, self._pipelines.values()))
        self.started.set()
        upkeep = begin(self._chores(), self._clock, self._log, lambda: self._cpu > _BUSY)
        self._log.info("worker.started", worker=self._name, pipelines=sorted(self._pipelines))
        try:
            await self._work()
        finally:
            await self._drain()
            await end_tasks(upkeep)
            await self._leave()
        if self._failure is not None:
            raise self._failure

    async def try_out(self, job: Job, texts: Sequence[str]) -> list[Outcome]:
        """Returns the outcomes of these inputs in a dry run, without storing anything."""
        rows = [(number, text, 0, 0, 0) for number, text in enumerate(texts, start=1)]
        async with self.trying(job):
            return await asyncio.gather(*map(self._make_execute(job).in_time, rows))

    @asynccontextmanager
    async def trying(self, job: Job) -> AsyncIterator[Context]:
        """Provides what a dry run of the job uses."""
        reach = self._reach(job)
        async with on_trial(self._options.files) as self._files, present(self._store, self._name):
            keeping = begin([self._keeping_gates()], self._clock, self._log)
            facilities = self._facilities(self._pipelines[job.pipeline], job)
            try:
                yield Context(job, 0, 1, reach.http, reach.gates, self._log, facilities)
            finally:
                await end_tasks(keeping)
                self._http.close()
                await self._leave()

    # The loop.

    async def _work(self) -> None:
        """Claims items for jobs that have room, and looks for other jobs: after news, and
        otherwise less and less often."""
        while not self._stop.is_set():
            self._news.clear()  # first, so that what comes during a step is not missed
            if self._look.is_due and await self._patiently(self._find_work) is Found.ALL_DONE:
                return
            self._end_stopped()
            self._start_alone()
            await self._claim()
            for places in self._places.values():
                places.fill()
            await self._await_news()

    async def _find_work(self) -> Found:
        """Looks once at all jobs and streams."""
        jobs = [
            job
            for job in await self._store.reads.runnable_jobs(list(self._pipelines))
            if self._options.may_run(job.job_id, job.lane)
        ]
        found = await self._walks.look()
        known = self._due.keys()
        self._due = {job.job_id: job for job in jobs if job.job_id not in self._running}
        found |= bool(self._due.keys() - known)
        for job in jobs:
            if running := self._running.get(job.job_id):
                found |= not running.expects_more
                running.expects_more = True
        self._look.done(found)
        if jobs or found or not self._options.until_idle or not await self._all_done():
            return Found.SOME if found else Found.NOTHING
        await self._upkeep.tending.tend_all()
        return Found.ALL_DONE

    async def _claim(self) -> None:
        """Begins claims, in fair order, while the worker's memory has room."""
        if any(job.alone or job.is_alone for job in self._held()):
            return
        wanting = [running for running in self._running.values() if running.wants_claim]
        waiting: list[Running | DueJob] = [*wanting, *self._due.values()]
        held = sum(running.ready_bytes() for running in self._running.values())
        room = max(1, (_HELD_BYTES - held) // _CLAIMS)
        while waiting and held < _MOST_BYTES and len(self._claims) < _CLAIMS:
            chosen = self._order.choose(waiting)
            waiting.remove(chosen)
            running = await self._begun(chosen) if isinstance(chosen, DueJob) else chosen
            if running is None or (held >= _HELD_BYTES and running.ready) or self._stop.is_set():
                continue
            task = running.begin_claim(room)
            self._claims.add(task)
            task.add_done_callback(self._claims.discard)

    async def _begun(self, due: DueJob) -> Running | None:
        """Begins a job; returns None if it was deleted since, or the worker is stopped."""
        del self._due[due.job_id]
        try:
            job = await self._patiently(partial(self._store.reads.job, due.job_id))
        except NotThere:
            return None
        return None if job is None else self._begin(job)

    def _begin(self, job: Job) -> Running:
        execute = self._make_execute(job)
        pace = self._pace_for(execute.pipeline)
        log = self._log.bind(job_id=job.id, pipeline=job.pipeline, worker=self._name)
        running = Running(self._running_parts, execute, pace, log)
        self._running[job.id] = running
        self._places_of(execute.pipeline).add(running)
        return running

    def _start_alone(self) -> None:
        """Starts an item that must run alone once nothing else is held: everything held is charged
        if it kills the worker. Nothing is claimed until then."""
        jobs = list(self._running.values())
        alone = [running for running in jobs if running.alone]
        if not alone or self._finishing or any(running.is_alone for running in jobs):
            return
        if all(running.is_quiet() for running in jobs):
            chosen = self._order.choose(alone)
            others = [running for running in alone if running is not chosen]
            for running in others:
                running.stop("another job's items run alone")
            if not others:
                chosen.start_alone()

    def _end_stopped(self) -> None:
        """Drops jobs that were stopped, and those that hold nothing: a standing job after some
        time. Slow items end while others run."""
        now = self._clock.monotonic()
        for running in list(self._running.values()):
            if not running.is_idle or running.expects_more:
                running.idle_since = now
            stays = _IDLE_SECONDS if running.execute.job.standing else 0.0
            if running.stopping or now > running.idle_since + stays:
                self._end(running)

    def _end(self, running: Running) -> None:
        del self._running[running.job_id]
        task = asyncio.create_task(running.finish())
        self._finishing[task] = running
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[int]) -> None:
        running = self._finishing.pop(task)
        self._places_of(running.execute.pipeline).remove(running)
        self._news.set()
        if task.cancelled():
            return
        if task.exception() is None:
            if task.result():
                self._look.now()  # for what went back
        else:
            # To continue would run the same items again and again without settling them.
            self._failure = task.exception()
            self._log.error("worker.failed", error=str(self._failure))
            self.stop()

    async def _await_news(self) -> None:
        """Waits for news, or until a look is due."""
        looks = [running.next_look for running in self._running.values()]
        seconds = min([self._look.due_at, *looks]) - self._clock.monotonic()
        with suppress(TimeoutError):
            async with asyncio.timeout(max(_LEAST_SECONDS, seconds)):
                await self._news.wait()

    async def _patiently(self, action: Callable[[], Awaitable[T]]) -> T | None:
        """Waits for the database; returns None if the worker is stopped before it is back."""
        with suppress(DatabaseGone):
            return await patiently(
                action, self._log, self._rng, give_up=self._stop.is_set, pause=self._pause
            )
        return None

    async def _all_done(self) -> bool:
        """Whether nothing of ours runs, and no job that we may work on has anything left to do."""
        held = any(not running.is_idle for running in self._running.values())
        if held or self._finishing or self._walks.any:
            return False
        unfinished = await self._store.reads.unfinished_jobs(list(self._pipelines))
        if self._options.only_job is not None:
            return self._options.only_job not in unfinished
        return not unfinished

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stop.wait()

    # Parts.

    def _make_execute_parts(self) -> ExecuteParts:
        return ExecuteParts(
            http=self._http,
            gates=self._gates.passing,
            facilities=self._facilities,
            retry=self._options.retry,
            limits=self._options.items,
            threads=Threads(self._options.items.threads),
            clock=self._clock,
            rng=self._rng,
        )

    def _make_running_parts(self) -> RunningParts:
        return RunningParts(
            store=self._store,
            worker=self._name,
            flush=self._options.flush,
            clock=self._clock,
            rng=self._rng,
            pressure=lambda: self._pressed,
            news=self._news.set,
        )

    def _make_walks(self) -> Walks:
        options = self._options
        parts = WalkParts(
            self._store, options.discover, self._clock, self._rng, self._metrics, self._log
        )
        backpressure = Backpressure(
            self._store, options.rules.backlog_max_items, self._clock, self._metrics
        )
        sources = WorkerSources(
            self._reach,
            self._facilities,
            backpressure,
            StoredTables(self._store, options.files, options.tables),
            options.discover.max_input_bytes,
            self._log,
        )
        discovery = Discovery(parts, sources, self._name, options.claim.target_slice_seconds)
        return Walks(parts, discovery, self._pipelines, options.may_run, self._look_at_once)

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
            self._options.items.timeout_seconds,
            self._options.items.max_result_bytes,
            self._log,
        )
        return JobFacilities(parts, pipeline, job)

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
                concurrency_of(pipeline, self._options.concurrency, self._options.items.threads),
                SpacingBounds(),
                self._metrics,
            )
        return self._paces[pipeline.name]

    def _places_of(self, pipeline: Pipeline) -> Places:
        if pipeline.name not in self._places:
            is_strict = pipeline.threaded or pipeline.max_concurrency is not None
            self._places[pipeline.name] = Places(
                self._pace_for(pipeline), is_strict, self._clock, self._log, self._news.set
            )
        return self._places[pipeline.name]

    # Start and end.

    def _chores(self) -> list[Chore]:
        seconds = self._options.upkeep.heartbeat_seconds
        return [
            Chore("heartbeat", seconds, self._heartbeat),
            Chore("hands", seconds, self._compare_hands, rest=REST),
            Chore("controls", _CONTROL_SECONDS, self._watch_controls),
            Chore("timeouts", _WATCH_SECONDS, self._watch_timeouts),
            self._keeping_gates(),
            Chore("local copies", _CLEAR_SECONDS, self._clear_copies),
            Chore("listen", _LISTEN_AGAIN_SECONDS, self._listen),
            Chore("pressure", _PRESSURE_SECONDS, self._measure_pressure),
            *chores(self._upkeep),
        ]

    def _keeping_gates(self) -> Chore:
        return Chore("gates", _GATE_SECONDS, self._gates.keep)

    async def _listen(self) -> None:
        """Learns of new items within milliseconds. A worker that serves one job polls instead."""
        if self._options.only_job is not None:
            await asyncio.Event().wait()
        await self._store.database.driver.listen(WORK_CHANNEL, self.hear)

    def hear(self, text: str) -> None:
        """Notes that a job, named by its number, has new items; or, with "", that some job may
        have."""
        running = self._running.get(int(text)) if text.isdecimal() else None
        if running is None:
            self._look_at_once()
        else:
            running.hear()
            self._news.set()

    def _look_at_once(self) -> None:
        self._look.now()
        self._news.set()

    async def _watch_timeouts(self) -> None:
        for places in self._places.values():
            places.end_overdue()

    async def _watch_controls(self) -> None:
        """Stops jobs that were paused or cancelled, or that a kill switch covers."""
        held = [running for running in self._running.values() if not running.is_idle]
        if not held:
            return
        controls = await self._store.reads.job_controls([running.job_id for running in held])
        for running in held:
            state, switch = controls.get(running.job_id, (JobState.CANCELLED, None))
            if state is not JobState.RUNNING:
                running.stop(f"job is {state}")
            elif switch:
                running.stop(f"kill switch {switch}")

    async def _measure_pressure(self) -> None:
        """Samples load once a second: more often would measure noise, and sampling during a claim
        would delay its items."""
        self._cpu = psutil.cpu_percent(None) / 100
        self._pressed = psutil.virtual_memory().percent / 100

    async def _clear_copies(self) -> None:
        await self._options.files.local.clear(self._clock.now())

    def _held(self) -> list[Running]:
        return [*self._running.values(), *self._finishing.values()]

    def _tokens(self) -> set[str]:
        """Returns the tokens of all claims and walks that this worker makes or has."""
        held = {token for running in self._held() for token in running.tokens()}
        return (
            held
            | self._walks.tokens()
            | self._store.leases.in_flight
            | self._store.ingest.in_flight
        )

    async def _register(self) -> None:
        await self._store.workers.add_worker(
            self._name,
            socket.gethostname(),
            os.getpid(),
            sorted(self._pipelines),
            machine=this_machine(),
            lost_after_seconds=self._lost_after_seconds(),
        )

    async def _heartbeat(self) -> None:
        """Gives one sign of life.

        A database that was gone may come back as an older one, in which other jobs have the numbers
        of those that we know: they are begun again."""
        try:
            is_known = await self._store.workers.beat(self._name, self._lost_after_seconds())
        except DatabaseGone:
            self._stop_all("the database was gone")
            raise
        if not is_known:
            await self._register()
            self._stop_all("the database was restored")

    def _stop_all(self, why: str) -> None:
        for running in self._running.values():
            running.stop(why)

    async def _compare_hands(self) -> None:
        """Drops what is no longer in the worker's name, and frees what is only there."""
        before = {token for running in self._held() for token in running.tokens()}
        tokens = await self._hands.compare()
        for running in self._held():
            running.drop_lost(before, tokens)

    def _lost_after_seconds(self) -> float:
        times = [pace.lost_after_seconds() for pace in self._paces.values()]
        return max(times, default=self._options.upkeep.lost_after_seconds)

    async def _drain(self) -> None:
        """Lets running items end within the drain time and gives back the rest, uncharged."""
        grace = self._options.drain_seconds
        self._log.info("worker.stopping", worker=self._name)
        walks = asyncio.create_task(self._walks.drain(grace))
        for running in list(self._running.values()):
            self._end(running)
        if self._finishing:
            await asyncio.wait(list(self._finishing), timeout=grace)
        for running in self._finishing.values():
            self._places_of(running.execute.pipeline).abandon(running)
        if self._finishing:
            await asyncio.wait(list(self._finishing), timeout=1.0)
        await walks
        await end_tasks(list(self._finishing))
        for places in self._places.values():
            await places.close()
        self._http.close()

    async def _leave(self) -> None:
        try:
            async with asyncio.timeout(1.0):
                await self._store.workers.stop_worker(self._name)
                await self._gates.keep()  # counts what passed last
        except (TimeoutError, DatabaseGone) as error:
            self._log.warning("database.gone", error=str(error))
        self._log.info("worker.stopped", worker=self._name)
