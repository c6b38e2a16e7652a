"""Places: where the items of one pipeline run in a worker, whichever of its jobs they belong to.

A place runs item after item. Several times a second it asks whose turn it is among the jobs that
have items ready, so that a job never waits for the end of another.
"""

from __future__ import annotations

import asyncio
import contextvars
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from holdfast.clock import Clock
from holdfast.kernel.database.driver import Values
from holdfast.kernel.pace.fair_order import FairOrder
from holdfast.kernel.pace.lanes import WEIGHTS
from holdfast.kernel.pace.pipeline_pace import PipelinePace
from holdfast.kernel.record.running import Running
from holdfast.kernel.record.settle import HeldLease
from holdfast.model import Outcome
from holdfast.observe.tracing import received
from holdfast.tasks import end_tasks

#: How long a place serves the most urgent lane before it asks again; others by their weight.
_TURN_SECONDS = 0.005
_TURNS = {lane: _TURN_SECONDS * weight / max(WEIGHTS.values()) for lane, weight in WEIGHTS.items()}
_CANCELS = 10


@dataclass(slots=True, eq=False)
class _Place:
    overdue_at: float = math.inf
    timed_out: bool = False
    cancels: int = 0
    given_up: bool = False
    job: Running | None = None
    item: tuple[HeldLease, Values] | None = None
    task: asyncio.Task[None] | None = None


class Places:
    def __init__(
        self, pace: PipelinePace, is_strict: bool, clock: Clock, log: Any, news: Callable[[], None]
    ) -> None:
        """Takes as `is_strict` whether never to have more places than the pace allows, because the
        pipeline's author limits them. Otherwise a job that runs nothing gets one beyond that.
        `news` is called when a job may need another claim."""
        self._pace = pace
        self._is_strict = is_strict
        self._clock = clock
        self._log = log
        self._news = news
        self._jobs: set[Running] = set()
        self._places: set[_Place] = set()
        self._order = FairOrder()
        self._more = asyncio.Event()

    def add(self, job: Running) -> None:
        self._jobs.add(job)

    def remove(self, job: Running) -> None:
        self._jobs.discard(job)

    def fill(self) -> None:
        """Opens places for items that are ready, and wakes places that wait for items."""
        waiting = self._waiting()
        if not waiting:
            return
        ready = sum(len(job.ready) for job in waiting)
        wanted = min(self._most(waiting), self._pace.running + ready)
        while len(self._places) < wanted:
            place = _Place()
            self._places.add(place)
            # In its own context: what a place does belongs to the job that it serves.
            place.task = asyncio.create_task(self._work(place), context=contextvars.Context())
            place.task.add_done_callback(partial(self._close, place))
        self._more.set()

    async def close(self) -> None:
        """Ends the places, in which nothing may run any more."""
        tasks = [place.task for place in self._places if place.task is not None]
        if tasks:
            await end_tasks(tasks)

    def abandon(self, job: Running) -> None:
        """Cancels the running items of a job; they go back uncharged."""
        for place in self._places:
            if place.job is job and place.task is not None:
                place.task.cancel()

    def end_overdue(self) -> None:
        """Stops items that have taken longer than their timeout. Called several times a second,
        instead of a timer for each item."""
        moment = self._clock.monotonic()
        for place in list(self._places):
            if moment > place.overdue_at and place.task is not None:
                place.timed_out = True
                place.cancels += 1
                if place.cancels > _CANCELS:
                    self._give_up(place)
                else:
                    place.task.cancel()

    # Whose turn it is.

    def _waiting(self) -> list[Running]:
        return [job for job in self._jobs if job.may_start]

    def _most(self, waiting: list[Running]) -> int:
        """Returns how many places there may be."""
        limit = self._pace.concurrency
        if self._is_strict or all(job.running for job in waiting):
            return limit
        return limit + 1

    def _next(self) -> Running | None:
        """Returns the job to serve: first one that runs nothing."""
        waiting = self._waiting()
        if not waiting:
            return None
        return self._order.choose([job for job in waiting if not job.running] or waiting)

    # Executing.

    async def _work(self, place: _Place) -> None:
        while not place.given_up:
            if len(self._places) > self._most(self._waiting()):
                return
            place.job = self._next()
            if place.job is None:
                self._news()
                self._more.clear()
                await self._more.wait()
                continue
            with received(place.job.trace):
                await self._serve(place, place.job)

    async def _serve(self, place: _Place, job: Running) -> None:
        """Runs items of one job, until its turn is over or none is ready."""
        execute, clock, timeout = job.execute, self._clock, job.execute.timeout
        turn_ends_at = clock.monotonic() + _TURNS[job.lane]
        while job.may_start:
            started = clock.monotonic()
            if started >= turn_ends_at:
                await asyncio.sleep(0)
                return
            held, row = job.ready.popleft()
            if held.lost:
                continue
            place.overdue_at, place.timed_out, place.cancels = started + timeout, False, 0
            place.item = (held, row)
            job.running += 1
            self._pace.running += 1
            try:
                outcome = await execute(row)
            except asyncio.CancelledError:
                outcome = self._stopped_outcome(place, job, row)
            finally:
                place.overdue_at = math.inf
                if not place.given_up:
                    self._ended(job)
            if place.given_up:
                return
            place.item = None
            job.hand_in(held, outcome)
            if place.timed_out:
                await _swallow_cancellation()
            if len(job.ready) <= job.low and job.has_room:
                self._news()

    def _ended(self, job: Running) -> None:
        self._pace.running -= 1
        job.item_ended()

    def _stopped_outcome(self, place: _Place, job: Running, row: Values) -> Outcome:
        task = asyncio.current_task()
        assert task is not None
        if place.timed_out:
            job.log.warning("item.timeout", seq=row[0], seconds=job.execute.timeout)
            return job.execute.timed_out(row)
        if task.cancelling():
            raise asyncio.CancelledError
        return job.execute.cancelled(row)

    def _give_up(self, place: _Place) -> None:
        """Replaces a place whose item ignores cancellation; the item keeps its coroutine, but not
        its place."""
        assert place.item is not None and place.job is not None
        (held, row), job = place.item, place.job
        place.given_up = True
        place.overdue_at = math.inf
        self._places.discard(place)
        job.log.warning("item.timeout", seq=row[0], seconds=job.execute.timeout)
        job.hand_in(held, job.execute.timed_out(row))
        self._ended(job)
        self.fill()
        self._news()

    def _close(self, place: _Place, task: asyncio.Task[None]) -> None:
        self._places.discard(place)
        self._news()
        if not task.cancelled() and task.exception() is not None:
            self._log.error("place.failed", exc_info=task.exception())
            if place.item is not None and place.job is not None:
                held, row = place.item
                place.job.hand_in(held, place.job.execute.cancelled(row))


async def _swallow_cancellation() -> None:
    """Swallows a cancellation that was meant for an item that has ended: it must not reach the next
    one."""
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(0)
    task = asyncio.current_task()
    while task is not None and task.cancelling():
        task.uncancel()
