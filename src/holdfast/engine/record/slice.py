"""The processing slice: claim, execute and settle, overlapping, on one job.

Read it top to bottom: `work` starts items until the slice ends, `finish` waits for those that still
run, settles them and gives the rest back.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from holdfast.clock import Clock
from holdfast.engine.pace.pipeline_pace import PipelinePace
from holdfast.engine.record.execute import Execute
from holdfast.engine.record.settle import FlushLimits, HeldLease, SettleParts, Settler
from holdfast.errors import DatabaseGone
from holdfast.model import JobState, Outcome
from holdfast.store import Claimed, Store
from holdfast.store.driver import Values
from holdfast.tasks import end_tasks

_YIELD_SECONDS = 0.005
_CONTROL_SECONDS = 0.5
_WATCH_SECONDS = 0.1
_CANCELS = 10
_LOOK_SECONDS = 0.2
#: A claim of a standing job that got less than this part of its size took all there is.
_FAR_FROM_FULL = 2
_BACKLOG_FLUSHES = 4
#: How long a slice of a standing job waits for more items before it asks whether another job needs
#: the worker. They start sooner than in a new slice, and are settled together.
_LINGER_SECONDS = 0.25
#: After several items of a standing job, or two claims in a row, it looks without being told.
_DENSE_ITEMS = 2
_DENSE_SECONDS = 0.25
_DENSE_LOOK_SECONDS = 0.01
#: The first items after a pause may be those of a burst, most of which give no notice.
_PAUSE_SECONDS = 0.05
_BURST_SECONDS = 0.03
_BURST_LOOK_SECONDS = 0.002


@dataclass(frozen=True, slots=True)
class WorkLimits:
    slice_seconds: float
    max_claim_bytes: int
    flush: FlushLimits


@dataclass(slots=True, eq=False)
class _Place:
    """One of the places where an item can run."""

    overdue_at: float = math.inf
    timed_out: bool = False
    cancels: int = 0
    given_up: bool = False
    item: tuple[HeldLease, Values] | None = None
    task: asyncio.Task[None] | None = None


@dataclass(frozen=True, slots=True)
class SliceParts:
    """What all slices of one worker share."""

    store: Store
    worker: str
    limits: WorkLimits
    clock: Clock
    rng: random.Random
    pressure: Callable[[], float]
    may_run_alone: Callable[[], bool]  # whether no other slice of the worker still runs items
    in_work: Callable[[], set[int]]  # the ranges that the worker holds, over all its slices
    linger_seconds: float = _LINGER_SECONDS  # of a standing job's slice, while no other job waits


class ProcessingSlice:
    def __init__(self, parts: SliceParts, execute: Execute, pace: PipelinePace, log: Any) -> None:
        self._parts = parts
        self._store = parts.store
        self._limits = parts.limits
        self._clock = parts.clock
        self._execute = execute
        self._job_id = execute.job.id
        self._pace = pace
        self._log = log
        self._ready: deque[tuple[HeldLease, Values]] = deque()
        self._places: set[_Place] = set()
        self._running = 0
        settling = SettleParts(
            parts.store, parts.worker, parts.limits.flush, parts.clock, parts.rng
        )
        self._settler = Settler(settling, execute, pace, log)
        self._settling: asyncio.Task[None] | None = None
        self._low = pace.claim_size // 2
        self._backlog = _BACKLOG_FLUSHES * max(parts.limits.flush.items, pace.claim_size)
        self._claiming: asyncio.Task[None] | None = None
        self._exhausted = False
        self._heard = False  # of new items, since the last claim began
        self._lingers_until = -math.inf
        self._claimed_at = -math.inf  # some items, the last time
        self._dense = False
        self._burst_until = -math.inf
        self.claimed_any = False
        self._deadline = math.inf
        self._alone: tuple[HeldLease, Sequence[Values]] | None = None
        self._stopping = ""
        self._wait_seconds = 0.0
        self._waiting_for: str | None = None
        self._more = asyncio.Event()
        self._changed = asyncio.Event()
        self._solo = False
        self._renewed_at = parts.clock.now()
        self._background: list[asyncio.Task[None]] = []
        self._failure: BaseException | None = None

    # The slice, step by step.

    async def work(self, others_wait: Callable[[], Coroutine[Any, Any, bool]]) -> None:
        """Starts items until the slice's time is up and another job waits, or nothing is due. The
        time counts from the first claim."""
        self._settling = asyncio.create_task(self._settle())
        self._settling.add_done_callback(partial(self._note_failure, "settle"))
        self._background = [
            asyncio.create_task(self._keep_leases()),
            asyncio.create_task(self._watch_controls()),
            asyncio.create_task(self._watch_timeouts()),
        ]
        for task in self._background:
            task.add_done_callback(partial(self._note_failure, "watch"))
        while not self._stopping:
            self._changed.clear()  # first: what comes during a wait below is not missed
            self._claim_ahead()
            self._open_places()
            if self._nothing_left() and not await self._lingers_on(others_wait):
                break
            if self._clock.monotonic() >= self._deadline:
                if await others_wait():
                    break
                self._begin_time()
            await self._change()
        self.stop("slice ended")

    def _begin_time(self) -> None:
        self._deadline = self._clock.monotonic() + self._limits.slice_seconds

    def stop(self, why: str) -> None:
        """No further item starts."""
        if not self._stopping:
            self._stopping = why
        self._more.set()
        self._changed.set()

    def range_ids(self) -> set[int]:
        return self._settler.range_ids()

    def look_again(self) -> None:
        """Something outside the slice changed that it may be waiting for."""
        self._changed.set()

    def hear(self, job_id: int | None) -> None:
        """Items came: of this job, of another one, or of one that is not known."""
        if job_id not in (None, self._job_id):
            self._lingers_until = -math.inf
        elif self._execute.job.standing and not self._solo:
            self._heard, self._exhausted = True, False
        self._changed.set()

    async def finish(self) -> None:
        """Lets running items end, settles them and releases the rest. Raises the error that made
        claiming or settling fail for good."""
        self.stop("finished")
        if self._claiming is not None:
            await asyncio.wait([self._claiming])
        self._ready.clear()
        try:
            # Read again now and then: a place may be given up in the meantime.
            while running := [place.task for place in self._places if place.task is not None]:
                await asyncio.wait(running, timeout=_LOOK_SECONDS)
            await self._end_settling()
            await self._release()
        finally:
            # Whatever happened: unused leases must not be renewed.
            await end_tasks(self._background)
        if self._failure is not None:
            raise self._failure

    async def _release(self) -> None:
        count = await self._settler.release(self._wait_seconds, self._waiting_for)
        if count:
            self._log.debug("slice.released", ranges=count, reason=self._stopping)

    def abandon(self) -> None:
        """Cancels what still runs; its items go back uncharged."""
        for place in self._places:
            if place.task is not None:
                place.task.cancel()

    async def _settle(self) -> None:
        async for _ in self._settler.flushes():
            self._more.set()
            self._changed.set()

    async def _end_settling(self) -> None:
        self._settler.close()
        if self._settling is not None:
            await asyncio.wait([self._settling])

    # Claiming.

    def _claim_ahead(self) -> None:
        """Claims the next items while the present ones are processed."""
        if self._claiming is not None or self._exhausted or self._alone or self._stopping:
            return
        if len(self._ready) > self._low:
            return
        self._claiming = asyncio.create_task(self._claim())
        self._claiming.add_done_callback(self._claimed)

    async def _claim(self) -> None:
        if self._renewal_is_late():
            await self._renew()
        self._heard = False
        size = self._pace.next_claim(self._parts.pressure())
        self._low = size // 2
        self._backlog = _BACKLOG_FLUSHES * max(self._limits.flush.items, size)
        claims = await self._store.leases.claim(
            self._job_id,
            self._parts.worker,
            size,
            self._limits.max_claim_bytes,
            self._pace.lease_seconds(),
            self._parts.in_work,
            self._execute.job.standing,
            brief=self.claimed_any,
        )
        items = sum(len(claimed.rows) for claimed in claims)
        if not claims or (self._execute.job.standing and self._took_all(claims, items, size)):
            self._exhausted = not (self._heard or self._store.leases.owes_look(self._job_id))
        if claims and not self.claimed_any:
            # Not before: where a claim takes longer than a slice, each turn would only give back
            # what it claimed.
            self.claimed_any = True
            self._begin_time()
        self._linger(items)
        self._log.debug("slice.claimed", items=items, ranges=len(claims))
        for claimed in claims:
            held = self._settler.hold(claimed)
            if claimed.lease.alone:
                self._alone = (held, claimed.rows)
            else:
                self._make_ready(held, claimed.rows)

    def _took_all(self, claims: Sequence[Claimed], items: int, size: int) -> bool:
        """Far from full in both measures: there was no more."""
        size_bytes = sum(len(row[1]) for claimed in claims for row in claimed.rows)
        most_bytes = self._limits.max_claim_bytes // _FAR_FROM_FULL
        return items < size // _FAR_FROM_FULL and size_bytes < most_bytes

    def _linger(self, items: int) -> None:
        """Of records that come fast, not all give notice."""
        if items and self._execute.job.standing:
            now = self._clock.monotonic()
            self._dense = items >= _DENSE_ITEMS or now < self._claimed_at + _DENSE_SECONDS
            if now > self._claimed_at + _PAUSE_SECONDS:
                self._burst_until = now + _BURST_SECONDS
            self._claimed_at, self._lingers_until = now, now + _LINGER_SECONDS

    async def _lingers_on(self, others_wait: Callable[[], Coroutine[Any, Any, bool]]) -> bool:
        """Whether more items of a standing job are worth waiting for: some came a short time ago,
        and no other job needs the worker."""
        now = self._clock.monotonic()
        # Minus infinity: another job has items.
        if self._lingers_until < 0 or now >= self._claimed_at + self._parts.linger_seconds:
            return False
        self._dense = False
        if await others_wait():
            return False
        self._lingers_until = now + _LINGER_SECONDS
        # Nothing gives notice of retries and other items that are due now, nor of a transaction
        # that was open for longer than its records were among many.
        self._exhausted = self._solo
        return True

    def _claimed(self, task: asyncio.Task[None]) -> None:
        self._claiming = None
        self._note_failure("claim", task)
        self._more.set()
        self._changed.set()

    def _note_failure(self, what: str, task: asyncio.Task[None]) -> None:
        """A lost database ends the slice; an error that waiting cannot fix ends the worker."""
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.stop(f"{what} failed: {error}")
            if not isinstance(error, DatabaseGone):
                self._failure = error

    def _make_ready(self, held: HeldLease, rows: Sequence[Values]) -> None:
        self._ready.extend((held, row) for row in rows)
        self._pace.claimed(len(rows))

    def _nothing_left(self) -> bool:
        """Whether nothing more can be started. Items that still run are left to `finish`, except
        those of a range that must run alone: it starts when nothing else runs, and nothing starts
        beside it."""
        if self._ready or self._claiming is not None:
            return False
        if self._alone is not None:
            held, rows = self._alone
            others_run = self._pace.running or self._settler.holds_more_than(held)
            if others_run or not self._parts.may_run_alone():
                return False
            self._alone = None
            self._solo = self._exhausted = True
            self._make_ready(held, rows)
            self._open_places()
            self._more.set()
            return False
        if self._solo and self._settler.holds_more_than(None):
            return False
        return self._exhausted and self._clock.monotonic() >= self._lingers_until

    # Executing.

    def _open_places(self) -> None:
        elsewhere = self._pace.running - self._running
        # At least one, whatever other slices of the pipeline still run: no slice may starve.
        free = max(1, self._pace.concurrency - elsewhere)
        want = min(free, len(self._ready) + self._running)
        while len(self._places) < want:
            place = _Place()
            self._places.add(place)
            place.task = asyncio.create_task(self._run_items(place))
            place.task.add_done_callback(partial(self._close_place, place))

    def _close_place(self, place: _Place, task: asyncio.Task[None]) -> None:
        self._places.discard(place)
        self._changed.set()
        if not task.cancelled() and task.exception() is not None:
            self._log.error("place.failed", exc_info=task.exception())
            if place.item is not None:
                held, row = place.item
                self._settler.hand_in(held, self._execute.cancelled(row))

    async def _run_items(self, place: _Place) -> None:
        """One place: item after item, until there are more places than needed."""
        execute, clock, timeout = self._execute, self._clock, self._execute.timeout
        yielded = clock.monotonic()
        while not self._stopping:
            if not self._may_start():
                if len(self._places) > self._pace.concurrency:
                    return
                await self._await_more()
                yielded = clock.monotonic()
                continue
            held, row = self._ready.popleft()
            if held.lost:
                continue
            started = clock.monotonic()
            place.overdue_at, place.timed_out = started + timeout, False
            place.item = (held, row)
            self._running += 1
            self._pace.running += 1
            try:
                outcome = await execute(row)
            except asyncio.CancelledError:
                outcome = self._stopped_outcome(place, row)
            finally:
                place.overdue_at = math.inf
                if not place.given_up:
                    self._running -= 1
                    self._pace.running -= 1
            if place.given_up:
                return
            place.item = None
            self._settler.hand_in(held, outcome)
            if self._solo or outcome.error_code == "GATE":
                self._handed_in(held, outcome)
            if len(self._ready) <= self._low and self._claiming is None:
                self._changed.set()
            if started - yielded > _YIELD_SECONDS:
                await asyncio.sleep(0)
                yielded = clock.monotonic()

    def _may_start(self) -> bool:
        return bool(self._ready) and not self._settler.behind(self._backlog)

    def _stopped_outcome(self, place: _Place, row: Values) -> Outcome:
        task = asyncio.current_task()
        assert task is not None
        if place.timed_out:
            while task.cancelling():
                task.uncancel()
            self._log.warning("item.timeout", seq=row[0], seconds=self._execute.timeout)
            return self._execute.timed_out(row)
        if task.cancelling():
            raise asyncio.CancelledError
        return self._execute.cancelled(row)

    async def _await_more(self) -> None:
        self._changed.set()
        self._more.clear()
        await self._more.wait()

    def _handed_in(self, held: HeldLease, outcome: Outcome) -> None:
        if self._solo and not held.open:
            self._settler.flush()
        if outcome.error_code == "GATE":
            self._stop_at_gate(outcome)

    def _stop_at_gate(self, outcome: Outcome) -> None:
        """A gate that every item of the pipeline passes is closed: what has not started goes back
        until it opens. Another host's gate holds back only the items that need it."""
        reason = outcome.error_message or ""
        declared = self._execute.pipeline.gates
        if any(reason.startswith(f"{gate.name}: ") for gate in declared):
            self._wait_seconds = max(self._wait_seconds, outcome.delay)
            self._waiting_for = outcome.error_message
            self.stop("gate closed")

    async def _watch_timeouts(self) -> None:
        """Checks all places ten times a second, instead of a timer for each item."""
        while True:
            await asyncio.sleep(min(_WATCH_SECONDS, self._execute.timeout / 2))
            moment = self._clock.monotonic()
            for place in list(self._places):
                if moment > place.overdue_at and place.task is not None:
                    place.timed_out = True
                    place.cancels += 1
                    if place.cancels > _CANCELS:
                        self._give_up(place)
                    else:
                        place.task.cancel()

    def _give_up(self, place: _Place) -> None:
        """An item that ignores cancellation keeps its coroutine, but not its place."""
        assert place.item is not None
        held, row = place.item
        place.given_up = True
        place.overdue_at = math.inf
        self._running -= 1
        self._pace.running -= 1
        self._places.discard(place)
        self._log.warning("item.timeout", seq=row[0], seconds=self._execute.timeout)
        self._settler.hand_in(held, self._execute.timed_out(row))
        self._changed.set()

    # Watching.

    async def _keep_leases(self) -> None:
        """Renews the leases well before they expire."""
        while True:
            await asyncio.sleep(self._pace.lease_seconds() / 3)
            with suppress(DatabaseGone):
                await self._renew()

    async def _renew(self) -> None:
        self._renewed_at = self._clock.now()
        await self._settler.renew(self._pace.lease_seconds())

    def _renewal_is_late(self) -> bool:
        away = (self._clock.now() - self._renewed_at).total_seconds()
        return away > self._pace.lease_seconds() * 0.6

    async def _watch_controls(self) -> None:
        """Pause, cancel and the kill switch, read twice a second."""
        while True:
            await asyncio.sleep(_CONTROL_SECONDS)
            with suppress(DatabaseGone):
                controls = await self._store.reads.job_controls([self._job_id])
                state, switch = controls.get(self._job_id, (JobState.CANCELLED, None))
                if state is not JobState.RUNNING:
                    self.stop(f"job is {state}")
                elif switch:
                    self.stop(f"kill switch {switch}")

    async def _change(self) -> None:
        """Waits until there is something to do: a claim, places, the end."""
        if self._may_start():
            self._more.set()
        now = self._clock.monotonic()
        left = max(0.01, self._deadline - now)
        if self._lingers_until > now:
            left = min(left, self._lingers_until - now)
        in_burst = now < self._burst_until
        looks = in_burst or (self._dense and self._lingers_until > now)
        soon = _BURST_LOOK_SECONDS if in_burst else _DENSE_LOOK_SECONDS
        try:
            await asyncio.wait_for(self._changed.wait(), min(left, soon if looks else 0.25))
        except TimeoutError:
            if looks:
                self._exhausted = self._solo
