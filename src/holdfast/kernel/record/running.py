"""Manages the items of one job that a worker holds, from the claim to the settlement.

Read it top to bottom: `claim` makes items ready, `Places` runs them, `hand_in` passes their
outcomes to the settler, `finish` lets running items end, settles them and gives the rest back.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections import deque
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import Any

from holdfast.clock import Clock
from holdfast.errors import DatabaseGone
from holdfast.kernel import Claimed, Store
from holdfast.kernel.database.driver import Values
from holdfast.kernel.pace.pipeline_pace import PipelinePace
from holdfast.kernel.record.execute import Execute
from holdfast.kernel.record.leases import MOST_RANGES
from holdfast.kernel.record.settle import FlushLimits, HeldLease, SettleParts, Settler
from holdfast.model import Lane, Outcome
from holdfast.observe.tracing import span
from holdfast.tasks import end_tasks

_BACKLOG_FLUSHES = 4
_LOOK_SECONDS = (0.01, 0.5)
#: A claim of a standing job that got less than this part of its size took all there was.
_FAR_FROM_FULL = 2


class Look:
    """When to look for work without a notice: 10 ms after a look that found some, then half as
    often each time, down to twice a second."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seconds = _LOOK_SECONDS[0]
        self.due_at = -math.inf

    @property
    def is_due(self) -> bool:
        return self._clock.monotonic() >= self.due_at

    def now(self) -> None:
        self.due_at = -math.inf

    def done(self, found: bool) -> None:
        first, longest = _LOOK_SECONDS
        self._seconds = first if found else min(longest, self._seconds * 2)
        self.due_at = self._clock.monotonic() + self._seconds


@dataclass(frozen=True, slots=True)
class RunningParts:
    """What the jobs of one worker share."""

    store: Store
    worker: str
    flush: FlushLimits
    clock: Clock
    rng: random.Random
    pressure: Callable[[], float]
    news: Callable[[], None]  # called when something changed that the worker may act on


class Running:
    def __init__(self, parts: RunningParts, execute: Execute, pace: PipelinePace, log: Any) -> None:
        self._parts = parts
        self._store = parts.store
        self._flush = parts.flush
        self._clock = parts.clock
        self._pace = pace
        self.execute = execute
        self.job_id = execute.job.id
        self.lane = Lane(execute.job.lane)
        self.owner_id = execute.job.owner_id
        self.log = log
        self.trace: str | None = execute.job.trace
        self.ready: deque[tuple[HeldLease, Values]] = deque()
        self.running = 0
        self.stopping = ""
        self.expects_more = True  # a claim would probably find something
        self.idle_since = parts.clock.monotonic()
        self.look = Look(parts.clock)
        self.low = pace.claim_size // 2  # with more items ready, there is no room for a claim
        self._backlog = _BACKLOG_FLUSHES * max(parts.flush.items, pace.claim_size)
        self._claiming: asyncio.Task[None] | None = None
        self._claimed_any = False
        self._heard = False  # whether new items were announced since the last claim began
        self.alone: deque[tuple[HeldLease, Sequence[Values]]] = deque()
        self._solo: HeldLease | None = None
        self._wait_seconds = 0.0
        self._waiting_for: str | None = None
        self._all_ended = asyncio.Event()  # set when what ran at the stop has ended
        self._failure: BaseException | None = None
        settling = SettleParts(parts.store, parts.worker, parts.flush, parts.clock, parts.rng)
        self._settler = Settler(settling, execute, pace, log)
        self._settling = asyncio.create_task(self._settle())
        self._settling.add_done_callback(partial(self._note_failure, "settle"))

    # Claiming.

    @property
    def has_room(self) -> bool:
        return (
            len(self.ready) <= self.low
            and self._claiming is None
            and not self.stopping
            and not self._settler.behind(self._backlog)
        )

    @property
    def next_look(self) -> float:
        """When to look without a notice: items come to a standing job at any time."""
        if self.execute.job.standing and self.has_room:
            return self.look.due_at
        return math.inf

    @property
    def wants_claim(self) -> bool:
        if self.expects_more:
            return self.has_room
        return self._clock.monotonic() >= self.next_look

    def hear(self) -> None:
        """Notes that new items came."""
        self.expects_more = self._heard = True

    def ready_bytes(self) -> int:
        return sum(len(row[1]) for _, row in self.ready)

    def begin_claim(self, max_bytes: int) -> asyncio.Task[None]:
        """Claims the next items while the present ones are processed."""
        self._claiming = asyncio.create_task(self._claim(max_bytes))
        self._claiming.add_done_callback(self._claimed)
        return self._claiming

    async def _claim(self, max_bytes: int) -> None:
        self._heard = False
        size = self._pace.next_claim(self._parts.pressure())
        self.low = size // 2
        self._backlog = _BACKLOG_FLUSHES * max(self._flush.items, size)
        job = self.execute.job
        worker = self._parts.worker
        with span("claim", job.trace, job_id=job.id, pipeline=job.pipeline, worker=worker) as trace:
            claims = await self._store.leases.claim(
                job.id,
                worker,
                size,
                max_bytes,
                job.standing,
                brief=self._claimed_any,
            )
        self.look.done(found=bool(claims))
        self.expects_more = self._heard or self._may_be_more(claims, size, max_bytes)
        if claims:
            self._claimed_any = True
            self.trace = trace
            self._hold(claims)

    def _may_be_more(self, claims: Sequence[Claimed], size: int, max_bytes: int) -> bool:
        """Whether another claim would probably find something now.

        Items come to a standing job one by one: a claim that was far from full took all there
        were."""
        if not self.execute.job.standing:
            return bool(claims)
        if self._store.leases.owes_look(self.job_id):
            return True
        rows = [row for claimed in claims for row in claimed.rows]
        return (
            _FAR_FROM_FULL * len(rows) >= size
            or _FAR_FROM_FULL * len(claims) >= MOST_RANGES
            or _FAR_FROM_FULL * sum(len(row[1]) for row in rows) >= max_bytes
        )

    def _hold(self, claims: Sequence[Claimed]) -> None:
        for claimed in claims:
            held = self._settler.hold(claimed)
            if claimed.lease.alone:
                self.alone.append((held, claimed.rows))
            else:
                self.ready.extend((held, row) for row in claimed.rows)
        items = sum(len(claimed.rows) for claimed in claims)
        self.log.debug("items.claimed", items=items, ranges=len(claims))
        self._pace.claimed(items)

    def _claimed(self, task: asyncio.Task[None]) -> None:
        self._claiming = None
        self._note_failure("claim", task)
        self._parts.news()

    def _note_failure(self, what: str, task: asyncio.Task[None]) -> None:
        """Notes a failed task.

        A lost database ends this job's work; an error that waiting cannot fix ends the worker."""
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.stop(f"{what} failed: {error}")
            if not isinstance(error, DatabaseGone):
                self._failure = error

    # Executing.

    @property
    def may_start(self) -> bool:
        return bool(self.ready) and not self.stopping and not self._settler.behind(self._backlog)

    def item_ended(self) -> None:
        self.running -= 1
        if self.stopping and not self.running:
            self._all_ended.set()

    def hand_in(self, held: HeldLease, outcome: Outcome) -> None:
        self._settler.hand_in(held, outcome)
        if held is self._solo and not held.open:
            self._settler.flush()
        if outcome.error_code == "GATE":
            self._stop_at_gate(outcome)

    def _stop_at_gate(self, outcome: Outcome) -> None:
        """Stops at a closed gate that every item of the pipeline passes: unstarted items go back
        until it opens. Another host's gate holds back only the items that need it."""
        reason = outcome.error_message or ""
        declared = self.execute.pipeline.gates
        if any(reason.startswith(f"{gate.name}: ") for gate in declared):
            self._wait_seconds = max(self._wait_seconds, outcome.delay)
            self._waiting_for = outcome.error_message
            self.stop("gate closed")

    # Running alone: an item whose worker died runs while nothing else does, so that it certainly
    # causes the next death if there is one.

    def is_quiet(self) -> bool:
        """Whether nothing is held except items that must run alone."""
        held = [each for each, _ in self.alone]
        return (
            self._claiming is None
            and not self.ready
            and not self.running
            and not self._settler.holds_more_than(held)
        )

    def start_alone(self) -> None:
        self._solo, rows = self.alone.popleft()
        self.ready.extend((self._solo, row) for row in rows)
        if not rows:
            self._settler.flush()

    @property
    def is_alone(self) -> bool:
        """Whether an item that must run alone is running, or is not settled yet."""
        if self._solo is not None and not self._settler.holds(self._solo):
            self._solo = None
        return self._solo is not None

    # The end.

    @property
    def is_idle(self) -> bool:
        return self._claiming is None and not self.ready and not self._settler.holds_more_than([])

    def stop(self, why: str) -> None:
        """Stops the job's work: no further item starts."""
        if not self.stopping:
            self.stopping = why
        self._parts.news()

    async def finish(self) -> int:
        """Lets running items end, settles them and releases the rest; returns how many ranges.
        Raises the error that made claiming or settling fail for good."""
        self.stop("finished")
        if self._claiming is not None:
            await asyncio.wait([self._claiming])
        self.ready.clear()
        self.alone.clear()
        try:
            if self.running:
                await self._all_ended.wait()
            self._settler.close()
            await asyncio.wait([self._settling])
            count = await self._settler.release(self._wait_seconds, self._waiting_for)
            if count:
                self.log.debug("items.released", ranges=count, reason=self.stopping)
        finally:
            await end_tasks([self._settling])
        if self._failure is not None:
            raise self._failure
        return count

    async def _settle(self) -> None:
        async for _ in self._settler.flushes():
            self._parts.news()

    # Leases.

    def tokens(self) -> set[str]:
        return self._settler.tokens()

    def drop_lost(self, before: Set[str], tokens: Set[str]) -> None:
        """Drops what is no longer in the worker's name: another worker has it.

        The rest goes back, too: the database may be an older one, in which the number is another
        job's."""
        if self._settler.drop_lost(before, tokens):
            self.stop("leases lost")
