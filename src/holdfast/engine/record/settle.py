"""Outcomes, while items go on: what was handed in is written in batches, under the leases."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import orjson

from holdfast.clock import Clock
from holdfast.engine.pace.pipeline_pace import PipelinePace
from holdfast.engine.planning import ending_of
from holdfast.engine.record.execute import Execute
from holdfast.errors import DatabaseGone, HoldfastError
from holdfast.model import ItemStatus, Job, Lease, Outcome
from holdfast.observe.tracing import span
from holdfast.pipeline import Settled
from holdfast.store import Claimed, DecisionRow, SaveFailed, Settlement, Store
from holdfast.store.driver import Transaction

T = TypeVar("T")
_GONE_SECONDS = 0.5
_FLUSH_BYTES = 8 * 1024 * 1024
_BACKLOG_BYTES = 4 * _FLUSH_BYTES


@dataclass(frozen=True, slots=True)
class FlushLimits:
    items: int
    seconds: float


@dataclass(slots=True, eq=False)
class Held:
    """A lease and what is still to be handed in under it."""

    lease: Lease
    open: int
    outcomes: list[Outcome] = field(default_factory=list)
    lost: bool = False
    inputs: dict[int, str] = field(default_factory=dict)


_Batch = tuple[Held, Settlement]


class Settler:
    """One for each slice. `written` is called after each flush."""

    def __init__(
        self,
        store: Store,
        worker: str,
        execute: Execute,
        pace: PipelinePace,
        limits: FlushLimits,
        clock: Clock,
        log: Any,
        written: Callable[[], None],
    ) -> None:
        self._store = store
        self._worker = worker
        self._execute = execute
        self._job_id = execute.job.id
        self._pace = pace
        self._limits = limits
        self._clock = clock
        self._log = log
        self._written = written
        self._flush = asyncio.Event()
        self._closing = False
        self.held: set[Held] = set()
        self.unsettled = 0
        self._bytes = 0

    def hold(self, claimed: Claimed) -> Held:
        held = Held(claimed.lease, len(claimed.rows))
        if self._execute.pipeline.saves:
            held.inputs = {row[0]: row[1] for row in claimed.rows}
        self.held.add(held)
        if not claimed.rows:
            self._flush.set()
        return held

    def hand_in(self, held: Held, outcome: Outcome) -> None:
        if held.lost:
            return
        held.outcomes.append(outcome)
        held.open -= 1
        self.unsettled += 1
        self._bytes += len(outcome.result or "")
        if self.unsettled >= self._limits.items or self._bytes >= _FLUSH_BYTES:
            self._flush.set()

    def behind(self, items: int) -> bool:
        """Whether more is handed in than should be kept in memory."""
        return self.unsettled > items or self._bytes > _BACKLOG_BYTES

    def flush(self) -> None:
        self._flush.set()

    async def run(self) -> None:
        """Flushes by count or time, until closed."""
        while not self._closing:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._flush.wait(), self._limits.seconds)
            self._flush.clear()
            await self._settle_all()
        await self._settle_all()

    def close(self) -> None:
        """Ends `run` after what was handed in is written; never in the middle of a settlement."""
        self._closing = True
        self._flush.set()

    async def release(
        self, unstarted: Sequence[Lease], delay: float, waiting_for: str | None
    ) -> int:
        """Gives back what is left of the leases, uncharged."""
        left = [held.lease for held in self.held if not held.lost] + list(unstarted)
        if left:
            send = partial(self._store.leases.release, left, delay, waiting_for)
            await self._insist(send)
        return len(left)

    def lose(self, held: Held) -> None:
        """Another has the range now: nothing of it is started or handed in any more."""
        held.lost = True
        self.unsettled -= len(held.outcomes)
        self._bytes -= sum(len(outcome.result or "") for outcome in held.outcomes)
        held.outcomes.clear()
        self.held.discard(held)
        self._log.warning("lease.lost", range_id=held.lease.range_id)

    async def _settle_all(self) -> None:
        while due := [held for held in self.held if held.outcomes or held.open == 0]:
            items = sum(len(held.outcomes) for held in due)
            with span("settle", job_id=self._job_id, items=items):
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

    async def _settle(self, due: Sequence[Held]) -> None:
        """One transaction for all that was handed in; what comes in meanwhile waits for the
        next."""
        batches = [(held, Settlement(held.lease, held.outcomes[:], not held.open)) for held in due]
        settlements = [settlement for _, settlement in batches]
        decisions = self._pace.decisions()
        started = self._clock.monotonic()
        settle = partial(
            self._store.outcomes.settle,
            self._job_id,
            self._worker,
            settlements,
            save=self._save(batches) if self._execute.pipeline.saves else None,
            decisions=decisions,
        )
        try:
            lost = await self._insist(settle)
        except Exception as failure:
            if _is_ours(failure):
                raise
            self._log.warning("save.failed", error=str(failure))
            lost = await self._settle_one_by_one(batches)
        for held, settlement in batches:
            self._account(held, settlement, held.lease in lost)
        self._tell(settlements, decisions, self._clock.monotonic() - started)
        self._written()
        if any(settlement.last for settlement in settlements):
            # The sweeper completes it if the database goes just now.
            with suppress(DatabaseGone):
                await self._complete()

    def _account(self, held: Held, settlement: Settlement, lost: bool) -> None:
        del held.outcomes[: len(settlement.outcomes)]
        self.unsettled -= len(settlement.outcomes)
        self._bytes -= sum(len(outcome.result or "") for outcome in settlement.outcomes)
        if lost:
            self.lose(held)
            return
        held.lease.settled += 1
        if settlement.last:
            self.held.discard(held)
        self._pace.settled(settlement.outcomes)

    async def _complete(self) -> None:
        ending = ending_of(self._execute.pipeline, self._execute.job)
        ended = await self._store.outcomes.complete(self._job_id, ending)
        if ended is not None:
            self._log.info("job.ended", state=str(ended))

    def _tell(
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

    # The pipeline's own rows.

    def _save(
        self, batches: Sequence[_Batch]
    ) -> Callable[[Transaction, Sequence[Settlement]], Coroutine[Any, Any, None]]:
        inputs = {settlement.lease.range_id: held.inputs for held, settlement in batches}

        async def save(tx: Transaction, settlements: Sequence[Settlement]) -> None:
            rows = [
                _settled(outcome, inputs[settlement.lease.range_id], self._execute.job)
                for settlement in settlements
                for outcome in settlement.outcomes
                if outcome.status is not ItemStatus.PENDING
            ]
            if rows:
                await self._execute.pipeline.save(tx, rows)

        return save

    async def _settle_one_by_one(self, batches: Sequence[_Batch]) -> list[Lease]:
        """One record could not be written: each is settled on its own, so that it harms only
        itself."""
        lost: list[Lease] = []
        for held, settlement in batches:
            early, final = settlement.outcomes[:-1], settlement.outcomes[-1:]
            for outcome in early:
                if await self._settle_alone(held, Settlement(held.lease, [outcome], False)):
                    lost.append(held.lease)
                    break
                held.lease.settled += 1
            else:
                # The last one is counted with its batch, as any settlement.
                one = Settlement(held.lease, final, settlement.last)
                lost += await self._settle_alone(held, one)
        return lost

    async def _settle_alone(self, held: Held, one: Settlement) -> list[Lease]:
        settle = partial(self._store.outcomes.settle, self._job_id, self._worker)
        save = self._save([(held, one)]) if self._execute.pipeline.saves else None
        try:
            return await self._insist(partial(settle, [one], save=save))
        except Exception as failure:
            if _is_ours(failure) or not one.outcomes:
                raise
            failed = self._execute.save_failed(one.outcomes[0], failure)
            return await self._insist(partial(settle, [Settlement(one.lease, [failed], one.last)]))


def _is_ours(failure: Exception) -> bool:
    """Whether the failure is the engine's or the machine's, and no record's doing."""
    return isinstance(failure, HoldfastError) and not isinstance(failure, SaveFailed)


def _settled(outcome: Outcome, inputs: dict[int, str], job: Job) -> Settled:
    result = None if outcome.result is None else orjson.loads(outcome.result)
    return Settled(outcome.seq, outcome.status, orjson.loads(inputs[outcome.seq]), result, job)
