"""The processing slice: claim, execute and settle, overlapping, on one job.

Read it top to bottom: `work` starts items until the slice ends, `finish` waits for those still
running, settles them and gives the rest back.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import orjson

from holdfast.clock import Clock
from holdfast.engine.execute import Execute
from holdfast.engine.pacing import PipelinePace
from holdfast.errors import DatabaseGone
from holdfast.model import ItemStatus, JobState, Lease, Outcome
from holdfast.pipeline import Settled
from holdfast.store import Claimed, DecisionRow, SaveFailed, Settlement, Store
from holdfast.store.driver import Row, Transaction

T = TypeVar("T")
_YIELD_SECONDS = 0.005
_GONE_SECONDS = 0.5
_CONTROL_SECONDS = 0.5
_WATCH_SECONDS = 0.1
_BACKLOG_FLUSHES = 4


@dataclass(frozen=True, slots=True)
class WorkLimits:
    slice_seconds: float
    flush_items: int
    flush_seconds: float
    max_claim_bytes: int


@dataclass(slots=True, eq=False)
class _Held:
    """A lease and what is still to be handed in under it."""

    lease: Lease
    open: int
    outcomes: list[Outcome] = field(default_factory=list)
    lost: bool = False
    inputs: dict[int, str] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class _Place:
    """One of the places where an item can run."""

    overdue_at: float = math.inf
    timed_out: bool = False
    task: asyncio.Task[None] | None = None


class ProcessingSlice:
    def __init__(
        self,
        store: Store,
        worker: str,
        execute: Execute,
        pace: PipelinePace,
        limits: WorkLimits,
        clock: Clock,
        log: Any,
        pressure: Callable[[], float],
        may_run_alone: Callable[[], bool],
    ) -> None:
        self._store = store
        self._worker = worker
        self._execute = execute
        self._job_id = execute.job.id
        self._pace = pace
        self._limits = limits
        self._clock = clock
        self._log = log
        self._pressure = pressure
        self._may_run_alone = may_run_alone
        self._ready: deque[tuple[_Held, Row]] = deque()
        self._held: set[_Held] = set()
        self._places: set[_Place] = set()
        self._running = 0
        self._unsettled = 0
        self._low = pace.claim_size // 2
        self._backlog = _BACKLOG_FLUSHES * max(limits.flush_items, pace.claim_size)
        self._claiming: asyncio.Task[None] | None = None
        self._exhausted = False
        self._alone: Claimed | None = None
        self._stopping = ""
        self._wait_seconds = 0.0
        self._waiting_for: str | None = None
        self._more = asyncio.Event()
        self._flush = asyncio.Event()
        self._changed = asyncio.Event()
        self._solo = False
        self._closing = False
        self._settler: asyncio.Task[None] | None = None
        self._background: list[asyncio.Task[None]] = []
        self._failure: BaseException | None = None
        self.items = 0

    # The slice, step by step.

    async def work(self, others_wait: Callable[[], Coroutine[Any, Any, bool]]) -> None:
        """Starts items until the slice's time is up and another job waits, or nothing is due."""
        self._settler = asyncio.create_task(self._settle_as_they_come())
        self._settler.add_done_callback(partial(self._note_failure, "settle"))
        self._background = [
            asyncio.create_task(self._keep_leases()),
            asyncio.create_task(self._watch_controls()),
            asyncio.create_task(self._watch_timeouts()),
        ]
        deadline = self._clock.monotonic() + self._limits.slice_seconds
        while not self._stopping:
            self._claim_ahead()
            self._open_places()
            if self._nothing_left():
                break
            if self._clock.monotonic() >= deadline:
                if await others_wait():
                    break
                deadline = self._clock.monotonic() + self._limits.slice_seconds
            await self._change(deadline)
        self.stop("slice ended")
        if self._failure is not None:
            raise self._failure

    def stop(self, why: str) -> None:
        """No further item starts."""
        if not self._stopping:
            self._stopping = why
        self._more.set()
        self._changed.set()

    def look_again(self) -> None:
        """Something outside changed that the slice may wait for."""
        self._changed.set()

    async def finish(self) -> None:
        """Lets what runs come to its end, settles it and releases the rest."""
        self.stop("finished")
        if self._claiming is not None:
            await asyncio.wait([self._claiming])
        self._ready.clear()
        running = [place.task for place in self._places if place.task is not None]
        try:
            if running:
                await asyncio.wait(running)
            await self._end_settling()
            await self._release()
        finally:
            # Whatever happened, nobody renews leases that nobody works on.
            for task in self._background:
                task.cancel()
            await asyncio.gather(*self._background, return_exceptions=True)

    async def _release(self) -> None:
        left = [held.lease for held in self._held if not held.lost]
        if self._alone is not None:
            left.append(self._alone.lease)
        if left:
            release = self._store.leases.release
            await self._insist(partial(release, left, self._wait_seconds, self._waiting_for))
            self._log.debug("slice.released", ranges=len(left), reason=self._stopping)

    def abandon(self) -> None:
        """Stops what still runs; its items go back uncharged."""
        for place in self._places:
            if place.task is not None:
                place.task.cancel()

    async def _end_settling(self) -> None:
        """Not by cancelling: a settlement under way is let through."""
        self._closing = True
        self._flush.set()
        if self._settler is not None:
            await asyncio.wait([self._settler])

    # Claiming.

    def _claim_ahead(self) -> None:
        """Keeps one claim in hand while another is worked on."""
        if self._claiming is not None or self._exhausted or self._alone or self._stopping:
            return
        if len(self._ready) > self._low:
            return
        self._claiming = asyncio.create_task(self._claim())
        self._claiming.add_done_callback(self._claimed)

    async def _claim(self) -> None:
        size = self._pace.next_claim(self._pressure())
        self._low = size // 2
        self._backlog = _BACKLOG_FLUSHES * max(self._limits.flush_items, size)
        claims = await self._store.leases.claim(
            self._job_id,
            self._worker,
            size,
            self._limits.max_claim_bytes,
            self._pace.lease_seconds(),
        )
        if not claims:
            self._exhausted = True
        items = sum(len(claimed.rows) for claimed in claims)
        self._log.debug("slice.claimed", items=items, ranges=len(claims))
        for claimed in claims:
            if claimed.lease.alone:
                self._alone = claimed
            else:
                self._take(claimed)

    def _claimed(self, task: asyncio.Task[None]) -> None:
        self._claiming = None
        self._note_failure("claim", task)
        self._more.set()
        self._changed.set()

    def _note_failure(self, what: str, task: asyncio.Task[None]) -> None:
        """A database that is gone ends the slice; what waiting cannot mend ends the worker."""
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.stop(f"{what} failed: {error}")
            if not isinstance(error, DatabaseGone):
                self._failure = error

    def _take(self, claimed: Claimed) -> None:
        held = _Held(claimed.lease, len(claimed.rows))
        if self._execute.pipeline.saves:
            held.inputs = {row[0]: row[1] for row in claimed.rows}
        self._held.add(held)
        if not claimed.rows:
            self._flush.set()
        self._ready.extend((held, row) for row in claimed.rows)
        self._pace.claimed(len(claimed.rows))

    def _nothing_left(self) -> bool:
        """Whether nothing more can be started. Items that still run are left to `finish`, except
        those of a range that must run alone: that one is let in when nothing else runs, and
        nothing starts beside it."""
        if self._ready or self._claiming is not None:
            return False
        if self._alone is not None:
            if self._pace.running or self._held or not self._may_run_alone():
                return False
            alone, self._alone = self._alone, None
            self._solo = self._exhausted = True
            self._take(alone)
            self._open_places()
            self._more.set()
            return False
        if self._solo and self._held:
            return False
        return self._exhausted

    # Executing.

    def _open_places(self) -> None:
        elsewhere = self._pace.running - self._running
        want = min(self._pace.concurrency - elsewhere, len(self._ready) + self._running)
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

    async def _run_items(self, place: _Place) -> None:
        """One place: item after item, until there are more places than wanted."""
        execute, clock, timeout = self._execute, self._clock, self._execute.timeout
        yielded = clock.monotonic()
        while not self._stopping:
            if not self._ready or self._unsettled > self._backlog:
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
            self._running += 1
            self._pace.running += 1
            try:
                outcome = await execute(row)
            except asyncio.CancelledError:
                if not place.timed_out:
                    raise
                asyncio.current_task().uncancel()  # type: ignore[union-attr]
                outcome = execute.timed_out(row)
                self._log.warning("item.timeout", seq=row[0], seconds=timeout)
            finally:
                self._running -= 1
                self._pace.running -= 1
                place.overdue_at = math.inf
            self._hand_in(held, outcome)
            if started - yielded > _YIELD_SECONDS:
                await asyncio.sleep(0)
                yielded = clock.monotonic()

    async def _await_more(self) -> None:
        self._changed.set()
        self._more.clear()
        await self._more.wait()

    def _hand_in(self, held: _Held, outcome: Outcome) -> None:
        if held.lost:
            return
        held.outcomes.append(outcome)
        held.open -= 1
        self._unsettled += 1
        self.items += 1
        if self._unsettled >= self._limits.flush_items or (self._solo and not held.open):
            self._flush.set()
        if len(self._ready) <= self._low and self._claiming is None:
            self._changed.set()
        if outcome.error_code == "GATE":
            self._give_way(outcome)

    def _give_way(self, outcome: Outcome) -> None:
        """A gate that every item of the pipeline passes is shut: what has not started goes back
        until it opens. Another host's gate holds back only the items that need it."""
        gate = (outcome.error_message or "").partition(":")[0]
        if any(gate == declared.name for declared in self._execute.pipeline.gates):
            self._wait_seconds = max(self._wait_seconds, outcome.delay)
            self._waiting_for = outcome.error_message
            self.stop("gate closed")

    async def _watch_timeouts(self) -> None:
        """One look at all places ten times a second, instead of a timer for each item."""
        while True:
            await asyncio.sleep(min(_WATCH_SECONDS, self._execute.timeout / 2))
            moment = self._clock.monotonic()
            for place in list(self._places):
                if moment > place.overdue_at and place.task is not None:
                    place.timed_out = True
                    place.overdue_at = math.inf
                    place.task.cancel()

    # Settling.

    async def _settle_as_they_come(self) -> None:
        """Flushes by count or time, while items go on."""
        while not self._closing:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._flush.wait(), self._limits.flush_seconds)
            self._flush.clear()
            await self._settle_until_written()
        await self._settle_until_written()

    async def _settle_until_written(self) -> None:
        while due := [held for held in self._held if held.outcomes or held.open == 0]:
            await self._settle(due)

    async def _insist(self, send: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Sends the very same until the database answers. A settlement whose commit was not
        answered must not grow meanwhile: its number may be taken, and it then counts as written."""
        while True:
            try:
                return await send()
            except DatabaseGone as error:
                self._log.warning("database.gone", error=str(error))
                await asyncio.sleep(_GONE_SECONDS)

    async def _settle(self, due: Sequence[_Held]) -> None:
        """One transaction for all that was handed in. What comes in meanwhile waits for the
        next; if the commit's reply is lost, the same is sent again and counts once."""
        batches = [(held, Settlement(held.lease, held.outcomes[:], not held.open)) for held in due]
        settlements = [settlement for _, settlement in batches]
        decisions = self._pace.decisions()
        started = self._clock.monotonic()
        settle = partial(
            self._store.settling.settle,
            self._job_id,
            self._worker,
            settlements,
            save=self._save(batches) if self._execute.pipeline.saves else None,
            decisions=decisions,
        )
        try:
            lost = await self._insist(settle)
        except SaveFailed as failure:
            self._log.warning("save.failed", error=str(failure))
            lost = await self._settle_one_by_one(batches)
        for held, settlement in batches:
            self._settled_batch(held, settlement, held.lease in lost)
        self._tell_settled(settlements, decisions, self._clock.monotonic() - started)
        self._more.set()
        self._changed.set()
        if any(settlement.last for settlement in settlements):
            # The sweeper completes it if the database goes just now.
            with suppress(DatabaseGone):
                await self._complete()

    async def _complete(self) -> None:
        ended = await self._store.settling.complete(self._job_id)
        if ended is not None:
            self._log.info("job.ended", state=ended)

    def _tell_settled(
        self, settlements: Sequence[Settlement], decisions: Sequence[DecisionRow], seconds: float
    ) -> None:
        items = sum(len(settlement.outcomes) for settlement in settlements)
        again = [
            outcome
            for settlement in settlements
            for outcome in settlement.outcomes
            if outcome.status is ItemStatus.PENDING
        ]
        self._log.debug("slice.settled", items=items, retried=len(again), seconds=seconds)
        for one in again:
            self._log.debug("item.retried", seq=one.seq, code=one.error_code, delay=one.delay)
        for decision in decisions:
            self._log.info(
                "pace.decided",
                controller=decision.what,
                was=decision.was,
                became=decision.became,
                why=decision.why,
            )

    def _settled_batch(self, held: _Held, settlement: Settlement, lost: bool) -> None:
        del held.outcomes[: len(settlement.outcomes)]
        self._unsettled -= len(settlement.outcomes)
        if lost:
            self._lose(held)
            return
        held.lease.settled += 1
        if settlement.last:
            self._held.discard(held)
        self._pace.settled(settlement.outcomes, self._running)

    def _lose(self, held: _Held) -> None:
        """Another has the range now: nothing of it is started or handed in any more."""
        held.lost = True
        self._unsettled -= len(held.outcomes)
        held.outcomes.clear()
        self._held.discard(held)
        self._log.warning("lease.lost", range_id=held.lease.range_id)

    def _save(
        self, batches: Sequence[tuple[_Held, Settlement]]
    ) -> Callable[[Transaction, Sequence[Settlement]], Coroutine[Any, Any, None]]:
        inputs = {settlement.lease.range_id: held.inputs for held, settlement in batches}

        async def save(tx: Transaction, settlements: Sequence[Settlement]) -> None:
            rows = [
                _settled(outcome, inputs[settlement.lease.range_id])
                for settlement in settlements
                for outcome in settlement.outcomes
                if outcome.status is not ItemStatus.PENDING
            ]
            if rows:
                await self._execute.pipeline.save(tx, rows)

        return save

    async def _settle_one_by_one(self, batches: Sequence[tuple[_Held, Settlement]]) -> list[Lease]:
        """One record's rows were refused: each is settled on its own, so that it harms only
        itself."""
        lost: list[Lease] = []
        for held, settlement in batches:
            for number, outcome in enumerate(settlement.outcomes):
                last = settlement.last and number == len(settlement.outcomes) - 1
                one = Settlement(held.lease, [outcome], last)
                if await self._settle_alone(held, one):
                    lost.append(held.lease)
                    break
                held.lease.settled += 1
            else:
                # `_settled_batch` counts the whole batch as one more settlement.
                held.lease.settled -= 1
        return lost

    async def _settle_alone(self, held: _Held, one: Settlement) -> list[Lease]:
        settle = partial(self._store.settling.settle, self._job_id, self._worker)
        try:
            return await self._insist(partial(settle, [one], save=self._save([(held, one)])))
        except SaveFailed as failure:
            failed = self._execute.save_failed(one.outcomes[0], failure)
            return await self._insist(partial(settle, [Settlement(one.lease, [failed], one.last)]))

    # Watching.

    async def _keep_leases(self) -> None:
        """Renews leases while work goes on, well before they run out."""
        while True:
            await asyncio.sleep(self._pace.lease_seconds() / 3)
            held = list(self._held)
            leases = [one.lease for one in held]
            if self._alone is not None:
                leases.append(self._alone.lease)
            if not leases:
                continue
            try:
                lost = await self._store.leases.renew(leases, self._pace.lease_seconds())
            except DatabaseGone:
                continue
            for one in held:
                # Not one that was settled and ended meanwhile, nor one that is in a settlement
                # now: the fence tells that.
                if one.lease in lost and one in self._held and not one.outcomes:
                    self._lose(one)

    async def _watch_controls(self) -> None:
        """Pause, cancel and the kill switch, read anew twice a second."""
        while True:
            await asyncio.sleep(_CONTROL_SECONDS)
            with suppress(DatabaseGone):
                controls = await self._store.reads.job_controls([self._job_id])
                state, switch = controls.get(self._job_id, (JobState.CANCELLED, None))
                if state is not JobState.RUNNING:
                    self.stop(f"job is {state}")
                elif switch:
                    self.stop(f"kill switch {switch}")

    async def _change(self, deadline: float) -> None:
        """Waits until something is to be done: a claim, places, the end."""
        self._changed.clear()
        if self._ready:
            self._more.set()
        with suppress(TimeoutError):
            left = max(0.01, deadline - self._clock.monotonic())
            await asyncio.wait_for(self._changed.wait(), min(left, 0.25))


def _settled(outcome: Outcome, inputs: dict[int, str]) -> Settled:
    result = None if outcome.result is None else orjson.loads(outcome.result)
    return Settled(outcome.seq, outcome.status, orjson.loads(inputs[outcome.seq]), result)
