"""A worker's side of the shared gates: it reserves permits in batches, counts requests in flight,
and learns how many may be in flight from how they end."""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.clock import Clock
from holdfast.errors import Category, Failed, GateWait, ItemError, PipelineError, error_code
from holdfast.kernel import Store
from holdfast.kernel.gates.lane_lock import LaneLock
from holdfast.kernel.gates.table import Passes, Reservation, Want
from holdfast.kernel.pace.concurrency import ConcurrencyBounds, ConcurrencyPace
from holdfast.kernel.pace.lanes import WEIGHTS
from holdfast.kernel.pace.pipeline_pace import decision_rows, log_decisions
from holdfast.kernel.record.decisions import DecisionRow
from holdfast.model import Gate, Lane
from holdfast.observe.metrics import Metrics

# A request may start this much late and still keep its distance to the next.
_SLACK_SECONDS = 0.1
# How long a reservation without spacing is used: a kill switch or a closed gate is noticed after
# it.
_FRESH_SECONDS = 1.0
_LARGEST_COST = 10**15
_BATCH = 64
# A start asks whether the gate was closed about as long before its time as the answer takes, so
# that it does not miss its time; at most this long.
_MOST_LEAD_SECONDS = 0.25
# How long a throttle closes a gate if it does not say.
_THROTTLE_SECONDS = 1.0
# How many successes are measured together.
_ROUND = 8
_NO_JOB = 0


class Passage:
    """One request through a gate. Its sender reports how it ended, unless by an exception."""

    __slots__ = ("failures", "telling", "throttles", "timeouts")

    def __init__(self) -> None:
        self.throttles = self.failures = self.timeouts = 0
        self.telling = True  # whether its end says anything about the provider

    def throttled(self) -> None:
        """Notes that the provider asked to wait."""
        self.throttles = 1

    def failed(self) -> None:
        """Notes that the provider could not answer."""
        self.failures = 1

    def judge(self, error: BaseException) -> None:
        code = error.code if isinstance(error, ItemError | Failed) else ""
        if code == "RATE_LIMITED":
            self.throttles = 1
        elif code == "TIMEOUT" or isinstance(error, TimeoutError):
            self.timeouts = 1
        elif isinstance(error, OSError) or error_code(code).category is Category.NETWORK:
            self.failures = 1
        else:
            self.telling = False

    @property
    def was_fine(self) -> bool:
        return not (self.throttles or self.failures or self.timeouts)


@dataclass(frozen=True, slots=True)
class _Waiter:
    cost: float
    lane: Lane


@dataclass(slots=True)
class _Local:
    """The places and permits of a gate that this worker holds."""

    pace: ConcurrencyPace
    windows: deque[tuple[float, float]] = field(default_factory=deque)
    spaced: bool = False
    slots: int | None = 0
    is_listed: bool = False  # whether the database lists it as a worker that has or wants places
    budgeted: bool | None = None  # whether the gate has a budget; None: not known yet
    requests: int = 0  # requests that the budget covers and that were not sent yet
    units: float = 0.0
    concurrency: int = 0
    fresh_until: float = 0.0
    looked_at: float = -math.inf  # when it was last asked whether somebody has closed the gate
    looking: asyncio.Lock = field(default_factory=asyncio.Lock)
    look_seconds: float = 0.005  # how long an answer took recently
    closed_until: float = 0.0
    closed_at: float = -math.inf  # when the database knew that this worker closed the gate
    shut_until: float = 0.0  # closed, or nothing more to give out before then
    shut_reason: str = ""
    in_flight: int = 0
    waiters: list[_Waiter] = field(default_factory=list)
    lock: LaneLock = field(default_factory=LaneLock)
    passes: dict[int, Passes] = field(default_factory=dict)  # by job
    successes: int = 0
    seconds: float = 0.0

    @property
    def most(self) -> int:
        """How many requests may be in flight: the worker's share, and what the provider can
        take."""
        limit = self.pace.limit
        return limit if self.slots is None else min(self.slots, limit)

    @property
    def weight(self) -> int:
        """The weight of the most urgent lane that waits here."""
        return max((WEIGHTS[waiter.lane] for waiter in self.waiters), default=1)

    def lacks(self, waiter: _Waiter) -> bool:
        """Whether the budget must be asked for this request."""
        if self.budgeted is None:
            return True
        return self.budgeted and (self.requests < 1 or self.units < waiter.cost)

    def observe(self, passage: Passage, seconds: float) -> None:
        if not passage.telling:
            return
        if passage.was_fine:
            self.successes += 1
            self.seconds += seconds
            if self.successes < _ROUND:
                return
        mean = self.seconds / self.successes if self.successes else 0.0
        self.pace.observe(
            self.successes,
            mean,
            passage.throttles,
            passage.failures,
            passage.timeouts,
            self.in_flight + 1,
        )
        self.successes, self.seconds = 0, 0.0


@dataclass(frozen=True, slots=True)
class GateLimits:
    max_wait_seconds: float
    concurrency: ConcurrencyBounds


class Gates:
    def __init__(
        self,
        store: Store,
        worker: str,
        limits: GateLimits,
        clock: Clock,
        metrics: Metrics,
        log: Any,
    ) -> None:
        self._store = store
        self._worker = worker
        self._max_wait = limits.max_wait_seconds
        self._bounds = limits.concurrency
        self._clock = clock
        self._metrics = metrics
        self._log = log
        self._gates: dict[str, _Local] = {}
        self._declared: dict[str, Gate] = {}

    def of(self, lane: Lane, job_id: int = _NO_JOB) -> LaneGates:
        """Returns the gates as work of a lane, and of a job, passes them."""
        return LaneGates(self, lane, job_id)

    @asynccontextmanager
    async def passing(
        self, gate: str | Gate, cost: float = 0.0, lane: Lane = Lane.UPLOAD, job_id: int = _NO_JOB
    ) -> AsyncIterator[Passage]:
        """Waits briefly for a permit, or raises GateWait, so that the item gives up its place."""
        _require_cost(cost)
        name = await self._declare(gate)
        local, waiter, requested = self._local(name), _Waiter(cost, lane), self._clock.monotonic()
        local.waiters.append(waiter)
        try:
            await self._enter(name, local, waiter, requested + self._max_wait)
        finally:
            local.waiters.remove(waiter)
        started = self._clock.monotonic()
        passes = local.passes.setdefault(job_id, Passes())
        self._count_entry(name, passes, waiter, started - requested)
        passage = Passage()
        try:
            yield passage
        except BaseException as error:
            passage.judge(error)
            if passage.throttles:
                await self._throttled(name, error)
            raise
        finally:
            local.in_flight -= 1
            local.lock.open()
            passes = local.passes.setdefault(job_id, Passes())
            self._count_exit(name, local, passes, passage, self._clock.monotonic() - started)

    async def _declare(self, gate: str | Gate) -> str:
        """Returns the gate's name; limits that come with it are declared once per process."""
        if isinstance(gate, str):
            return gate
        if self._declared.get(gate.name) != gate:
            await self._store.gates.declare(gate)
            self._declared[gate.name] = gate
        return gate.name

    async def close(self, name: str, seconds: float, reason: str) -> None:
        local = self._local(name)
        self._shut(local, seconds, reason)
        local.closed_at = math.inf
        self._log.warning("gate.closed", gate=name, seconds=seconds, reason=reason)
        try:
            await self._store.gates.close(name, seconds, reason)
        finally:
            local.closed_at = self._clock.monotonic()

    async def slow_down(self, name: str, spacing: float) -> None:
        await self._store.gates.slow_down(name, spacing)
        self._local(name).fresh_until = 0.0

    async def keep(self) -> None:
        """Notes the places of requests in flight, gives back idle ones, which another worker may
        need, and counts what passed."""
        decisions: defaultdict[int, list[DecisionRow]] = defaultdict(list)
        for name, local in list(self._gates.items()):
            decided = self._decisions(name, local)
            for job_id in local.passes:
                decisions[job_id] += decided
            if local.in_flight or local.waiters:
                slots = max(local.slots or 0, local.in_flight)
                await self._store.gates.keep_slots(
                    name, self._worker, slots, local.pace.limit, local.weight
                )
            elif local.is_listed and local.slots is not None:
                local.slots, local.fresh_until, local.is_listed = 0, 0.0, False
                await self._store.gates.leave_gate(name, self._worker)
        await self._count_passes(decisions)

    def _decisions(self, name: str, local: _Local) -> list[DecisionRow]:
        """Returns the decisions that changed how many requests may be in flight at a provider."""
        decisions = decision_rows(
            replace(decision, what=f"{decision.what} at {name}")
            for decision in local.pace.decisions()
        )
        log_decisions(self._log, decisions)
        return decisions

    async def _count_passes(self, decisions: Mapping[int, Sequence[DecisionRow]]) -> None:
        counts = {
            (name, job_id): passes
            for name, local in self._gates.items()
            for job_id, passes in local.passes.items()
        }
        for local in self._gates.values():
            local.passes = {}
        if counts:
            await self._store.gates.count_passes(counts, self._worker, decisions)

    def _local(self, name: str) -> _Local:
        if name not in self._gates:
            self._gates[name] = _Local(ConcurrencyPace(self._bounds))
        return self._gates[name]

    def _count_entry(self, name: str, passes: Passes, waiter: _Waiter, waited: float) -> None:
        passes.passed += 1
        passes.units += waiter.cost
        if waited >= _SLACK_SECONDS:
            passes.waits += 1
            passes.wait_seconds += waited
        self._metrics.gate_passed(name, waited)

    def _count_exit(
        self, name: str, local: _Local, passes: Passes, passage: Passage, seconds: float
    ) -> None:
        local.observe(passage, seconds)
        passes.throttles += passage.throttles
        passes.failures += passage.failures + passage.timeouts
        if passage.throttles:
            self._metrics.gate_throttled(name)
        self._metrics.gate_limit_is(name, local.pace.limit)

    async def _throttled(self, name: str, error: BaseException) -> None:
        """Closes the gate for all workers after the body raised RATE_LIMITED."""
        seconds = getattr(error, "retry_after", None) or _THROTTLE_SECONDS
        await self.close(name, seconds, getattr(error, "message", "throttled"))

    async def _enter(self, name: str, local: _Local, waiter: _Waiter, give_up_at: float) -> None:
        """Takes a place in flight and a start time. Waiters get theirs by lane and in order,
        because permits are given out under a lock; waiting for the start is outside it."""
        again = False
        while True:
            left = give_up_at - self._clock.monotonic()
            if not await local.lock.acquire(waiter.lane, left, again):
                raise self._wait_of(name, local)
            again = True
            try:
                window = await self._permit(name, local, waiter, give_up_at)
            except BaseException:
                local.lock.release()
                raise
            if window is None:
                local.lock.give_back(_FRESH_SECONDS)
                continue
            local.in_flight += 1
            local.lock.release()
            if await self._start_within(name, local, window):
                return

    def _wait_of(self, name: str, local: _Local) -> GateWait:
        """Says why a waiter got no turn: whoever has it may be waiting for the gate to open."""
        left = local.shut_until - self._clock.monotonic()
        if left > 0:
            return GateWait(name, left, local.shut_reason)
        return GateWait(name, 1.0, "all places are taken")

    async def _start_within(self, name: str, local: _Local, window: tuple[float, float]) -> bool:
        """Waits for the window to begin.

        Returns False if it was missed, so that its distance to the next start is no longer certain,
        or if the gate was closed in the meantime."""
        begin, end = window
        started = False
        try:
            await self._sleep_until(begin - min(_MOST_LEAD_SECONDS, 2 * local.look_seconds))
            is_open = not await self._is_shut_now(name, local)
            await self._sleep_until(begin if is_open else 0.0)
            started = is_open and self._clock.monotonic() <= end
        finally:
            if not started:
                local.in_flight -= 1
                local.lock.open()
        return started

    async def _sleep_until(self, moment: float) -> None:
        left = moment - self._clock.monotonic()
        if left > 0:
            await asyncio.sleep(left)

    async def _is_shut_now(self, name: str, local: _Local) -> bool:
        """Asks the database whether any worker has closed the gate: a reservation does not know
        what happened since. Requests that start together share an answer; none takes one that is
        older than its question."""
        asked = self._clock.monotonic()
        async with local.looking:
            if local.looked_at < asked:
                looked_at = self._clock.monotonic()
                closing = await self._store.gates.closing(name)
                local.looked_at = looked_at
                took = self._clock.monotonic() - asked
                local.look_seconds = max(took, 0.8 * local.look_seconds)
                if looked_at > local.closed_at:
                    self._reopen(local)
                if closing is not None:
                    self._shut(local, closing.seconds, closing.reason)
        return local.closed_until > self._clock.monotonic()

    async def _permit(
        self, name: str, local: _Local, waiter: _Waiter, give_up_at: float
    ) -> tuple[float, float] | None:
        """Returns the window of the next start; None while all our places are in use."""
        while True:
            now = self._clock.monotonic()
            if local.closed_until > now >= local.looked_at + _FRESH_SECONDS:
                await self._is_shut_now(name, local)
                continue
            if local.shut_until > now:
                await self._wait_or_raise(name, local, give_up_at)
                continue
            stale = now >= local.fresh_until or (local.spaced and not local.windows)
            if not stale and local.in_flight >= local.most:
                return None
            if stale or local.lacks(waiter):
                await self._reserve(name, local, waiter)
                continue
            window = self._next_window(local, now)
            if window is not None:
                if local.budgeted:
                    local.requests -= 1
                    local.units -= waiter.cost
                return window

    def _next_window(self, local: _Local, now: float) -> tuple[float, float] | None:
        if not local.spaced:
            return now, math.inf
        begin, end = local.windows.popleft()
        return (begin, end) if now <= end and begin <= end else None

    async def _reserve(self, name: str, local: _Local, waiter: _Waiter) -> None:
        requested = self._clock.monotonic()
        others = [other for other in local.waiters if other is not waiter]
        costs = [w.cost for w in [waiter, *others][:_BATCH]] if local.lacks(waiter) else []
        places = max(1, min(_BATCH, len(local.waiters) + local.in_flight))
        fresh = requested < local.fresh_until and bool(local.windows)
        want = Want(
            places=places,
            starts=0 if fresh else places,
            horizon=self._max_wait,
            slack=_SLACK_SECONDS,
            busy=local.in_flight,
            costs=costs,
            weight=local.weight,
        )
        local.is_listed = True
        reservation = await self._store.gates.reserve(name, self._worker, want)
        answered = self._clock.monotonic()
        if reservation.is_closed:
            local.looked_at = requested
            self._shut(local, reservation.wait, reservation.reason)
            return
        if reservation.wait:
            self._wait_until(local, reservation.wait, reservation.reason)
            return
        self._take(local, reservation, costs, requested, answered)

    def _take(
        self,
        local: _Local,
        reservation: Reservation,
        costs: list[float],
        requested: float,
        answered: float,
    ) -> None:
        """Takes over a reservation.

        The database read its clock somewhere between `requested` and `answered`: a start that is
        right for both ends of that interval keeps its distance in any case."""
        local.slots = reservation.slots
        local.budgeted = reservation.covered is not None
        local.requests += reservation.covered or 0
        local.units += sum(costs[: reservation.covered or 0])
        self._bound(local, reservation.concurrency)
        local.spaced = reservation.starts is not None
        local.fresh_until = answered + _FRESH_SECONDS
        if reservation.starts is not None:
            local.fresh_until = answered + self._max_wait + _FRESH_SECONDS
            local.windows.extend(
                (answered + start, requested + start + reservation.slack)
                for start in reservation.starts
            )

    def _bound(self, local: _Local, concurrency: int) -> None:
        """Bounds the controller: it learns between one and what the gate allows."""
        if concurrency and concurrency != local.concurrency:
            local.concurrency = concurrency
            start = min(concurrency, max(self._bounds.start, 1))
            bounds = replace(self._bounds, minimum=1, maximum=concurrency, start=start)
            local.pace = ConcurrencyPace(bounds)

    async def _wait_or_raise(self, name: str, local: _Local, give_up_at: float) -> None:
        now = self._clock.monotonic()
        if local.shut_until > give_up_at:
            raise GateWait(name, local.shut_until - now, local.shut_reason)
        await asyncio.sleep(local.shut_until - now)

    def _shut(self, local: _Local, seconds: float, reason: str) -> None:
        """Gives up what was reserved before the gate was closed."""
        self._wait_until(local, seconds, reason)
        local.closed_until = max(local.closed_until, self._clock.monotonic() + seconds)
        local.windows.clear()
        local.requests, local.units = 0, 0.0

    def _reopen(self, local: _Local) -> None:
        """Forgets a closing, which a person may have ended or shortened."""
        if local.closed_until:
            local.closed_until = local.shut_until = 0.0

    def _wait_until(self, local: _Local, seconds: float, reason: str) -> None:
        local.shut_until = max(local.shut_until, self._clock.monotonic() + seconds)
        local.shut_reason = reason


def _require_cost(cost: float) -> None:
    """Refuses an invalid cost.

    Others share the budget: a value that is not a number, or cannot be added up, would close the
    gate for all of them, or open it."""
    if not isinstance(cost, int | float) or not 0 <= cost <= _LARGEST_COST:
        raise PipelineError(
            f"invalid cost {cost!r:.80}",
            f"A cost is a number from 0 to {_LARGEST_COST:,}.",
        )


class LaneGates:
    """The gates for work of one lane, and of one job."""

    def __init__(self, gates: Gates, lane: Lane, job_id: int) -> None:
        self._gates = gates
        self._lane = lane
        self._job_id = job_id

    def passing(self, gate: str | Gate, cost: float = 0.0) -> AbstractAsyncContextManager[Passage]:
        return self._gates.passing(gate, cost, self._lane, self._job_id)

    async def close(self, name: str, seconds: float, reason: str) -> None:
        await self._gates.close(name, seconds, reason)

    async def slow_down(self, name: str, spacing: float) -> None:
        await self._gates.slow_down(name, spacing)
