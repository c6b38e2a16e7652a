"""Settles while items run: outcomes are written in batches, under the leases they belong to."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeVar

import orjson

from holdfast.clock import Clock
from holdfast.errors import DatabaseGone, HoldfastError
from holdfast.kernel import Claimed, SaveFailed, Settlement, Store
from holdfast.kernel.database.driver import Transaction
from holdfast.kernel.jobs.planning import planner_at_end
from holdfast.kernel.pace.pipeline_pace import PipelinePace, log_decisions
from holdfast.kernel.record.execute import Execute
from holdfast.kernel.worker.patience import patiently
from holdfast.model import ItemStatus, Lease, Outcome
from holdfast.observe.tracing import span
from holdfast.pipeline import AS_ROW, Settled
from holdfast.settings import setting

T = TypeVar("T")
_FLUSH_BYTES = 8 * 1024 * 1024
_BACKLOG_BYTES = 4 * _FLUSH_BYTES


@dataclass(frozen=True, slots=True)
class FlushLimits:
    """Outcomes are written when this many are ready, or when one has waited this long."""

    items: int = 1000
    seconds: float = setting(
        0.5,
        "Outcomes are written when one has waited this long.",
        0.001,
        3600,
        name="FLUSH_SECONDS",
    )


@dataclass(slots=True, eq=False)
class HeldLease:
    """A lease, the items still to be handed in under it, and the outcomes not yet written."""

    lease: Lease
    open: int
    outcomes: list[Outcome] = field(default_factory=list)
    lost: bool = False
    inputs: dict[int, str] = field(default_factory=dict)  # by seq, if the pipeline saves rows


class _Batch(NamedTuple):
    """The part of one lease that is settled, and what `save` gets of it."""

    held: HeldLease
    settlement: Settlement
    rows: list[Settled]


@dataclass(frozen=True, slots=True)
class SettleParts:
    """What all settlers of one worker share."""

    store: Store
    worker: str
    limits: FlushLimits
    clock: Clock
    rng: random.Random


class Settler:
    """Owns the leases of one job, from the claim to the last outcome."""

    def __init__(self, parts: SettleParts, execute: Execute, pace: PipelinePace, log: Any) -> None:
        self._store = parts.store
        self._worker = parts.worker
        self._limits = parts.limits
        self._clock = parts.clock
        self._rng = parts.rng
        self._execute = execute
        self._job_id = execute.job.id
        self._pace = pace
        self._log = log
        self._flush = asyncio.Event()
        self._closing = False
        self._held: set[HeldLease] = set()
        self._unsettled = 0
        self._bytes = 0

    # What is held.

    def hold(self, claimed: Claimed) -> HeldLease:
        held = HeldLease(claimed.lease, len(claimed.rows))
        if self._execute.pipeline.saves:
            held.inputs = {row[0]: row[1] for row in claimed.rows}
        self._held.add(held)
        if not claimed.rows:
            self._flush.set()
        return held

    def tokens(self) -> set[str]:
        return {held.lease.token for held in self._held}

    def holds(self, lease: HeldLease) -> bool:
        return lease in self._held

    def holds_more_than(self, leases: Collection[HeldLease]) -> bool:
        """Whether anything besides these leases is held."""
        return any(held not in leases for held in self._held)

    def drop_lost(self, before: Set[str], tokens: Set[str]) -> bool:
        """Drops leases that were held `before` and are no longer in the worker's name, except those
        with outcomes to write: the fence decides about them. Returns whether there were any."""
        lost = [
            held for held in self._held if held.lease.token in before - tokens and not held.outcomes
        ]
        for held in lost:
            self._lose(held)
        return bool(lost)

    async def release(self, delay: float, waiting_for: str | None) -> int:
        """Gives back what is left of the leases, uncharged; returns how many."""
        leases = [held.lease for held in self._held if not held.lost]
        if leases:
            await self._patiently(partial(self._store.leases.release, leases, delay, waiting_for))
        return len(leases)

    def _lose(self, held: HeldLease) -> None:
        """Drops a lease that another worker has now: nothing of it is started or handed in any
        more."""
        held.lost = True
        self._unsettled -= len(held.outcomes)
        self._bytes -= sum(len(outcome.result or "") for outcome in held.outcomes)
        held.outcomes.clear()
        self._held.discard(held)
        self._log.warning("lease.lost", range_id=held.lease.range_id)

    # Handing in and writing.

    def hand_in(self, held: HeldLease, outcome: Outcome) -> None:
        if held.lost:
            return
        held.outcomes.append(outcome)
        held.open -= 1
        self._unsettled += 1
        self._bytes += len(outcome.result or "")
        if self._unsettled >= self._limits.items or self._bytes >= _FLUSH_BYTES:
            self._flush.set()

    def behind(self, items: int) -> bool:
        """Whether more outcomes wait to be written than should be in memory."""
        return self._unsettled > items or self._bytes > _BACKLOG_BYTES

    def flush(self) -> None:
        self._flush.set()

    async def flushes(self) -> AsyncIterator[None]:
        """Writes what was handed in, by count or by time, until closed.

        Yields after each write, when there is room for more."""
        closing = False
        while not closing:
            if not self._closing:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._flush.wait(), self._limits.seconds)
            self._flush.clear()
            closing = self._closing
            while batches := self._gather():
                ended_range = await self._write(batches)
                yield
                if ended_range and not self._execute.job.standing:
                    await self._complete()

    def _gather(self) -> list[_Batch]:
        """Returns what was handed in since the last time, prepared for writing."""
        batches = []
        for held in self._held:
            if held.outcomes or not held.open:
                outcomes = held.outcomes.copy()
                settlement = Settlement(held.lease, outcomes, last=not held.open)
                batches.append(_Batch(held, settlement, self._saved_rows(held, outcomes)))
        return batches

    async def _write(self, batches: Sequence[_Batch]) -> bool:
        items = sum(len(batch.settlement.outcomes) for batch in batches)
        with span("settle", self._execute.job.trace, job_id=self._job_id, items=items):
            return await self._settle(batches)

    def close(self) -> None:
        """Ends `flushes` after everything was written; never in the middle of a settlement."""
        self._closing = True
        self._flush.set()

    async def _patiently(self, send: Callable[[], Awaitable[T]]) -> T:
        """Sends exactly the same settlement until the database answers.

        One whose commit was not confirmed must not grow: its number may be taken, and it then
        counts as written."""
        return await patiently(send, self._log, self._rng)

    async def _settle(self, batches: Sequence[_Batch]) -> bool:
        """Writes all outcomes in one transaction; those that arrive during it wait for the next.

        Returns True if a range was finished, and with it perhaps the job."""
        settlements = [batch.settlement for batch in batches]
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
            lost = await self._patiently(settle)
        except Exception as failure:
            if _is_ours(failure):
                raise
            self._log.warning("save.failed", error=str(failure))
            lost = await self._settle_one_by_one(batches)
        written: list[Outcome] = []
        for held, settlement, _ in batches:
            self._account(held, settlement, held.lease in lost)
            if not held.lost:
                written += settlement.outcomes
        if written:
            self._pace.settled(written)
        self._log_settled(settlements, self._clock.monotonic() - started)
        log_decisions(self._log, decisions)
        return any(settlement.last for settlement in settlements)

    def _account(self, held: HeldLease, settlement: Settlement, lost: bool) -> None:
        count = len(settlement.outcomes)
        del held.outcomes[:count]
        self._unsettled -= count
        self._bytes -= sum(len(outcome.result or "") for outcome in settlement.outcomes)
        if lost:
            self._lose(held)
            return
        held.lease.settled += 1
        if settlement.last:
            self._held.discard(held)

    async def _complete(self) -> None:
        """Ends the job if this was the last of it.

        If the database fails now, the sweeper does it later."""
        planner = planner_at_end(self._execute.pipeline, self._execute.job)
        with suppress(DatabaseGone):
            state = await self._store.outcomes.complete(self._job_id, planner)
            if state is not None:
                self._log.info("job.ended", state=str(state))

    def _log_settled(self, settlements: Sequence[Settlement], seconds: float) -> None:
        items = sum(len(settlement.outcomes) for settlement in settlements)
        again = [
            outcome
            for settlement in settlements
            for outcome in settlement.outcomes
            if outcome.status is ItemStatus.PENDING
        ]
        retried = sum(1 for outcome in again if outcome.charged)
        self._log.debug("items.settled", items=items, retried=retried, seconds=seconds)
        for outcome in again:
            fields = {"seq": outcome.seq, "code": outcome.error_code, "delay": outcome.delay}
            if outcome.charged:
                self._log.debug("item.retried", **fields)
            else:
                self._log.debug("item.waits", **fields)

    # The pipeline's own rows.

    def _save(
        self, batches: Sequence[_Batch]
    ) -> Callable[[Transaction, Sequence[Settlement]], Coroutine[Any, Any, None]]:
        of_range = {batch.settlement.lease.range_id: batch for batch in batches}

        async def save(tx: Transaction, settlements: Sequence[Settlement]) -> None:
            held = [of_range[settlement.lease.range_id] for settlement in settlements]
            rows = [row for batch in held for row in self._take_rows(batch)]
            if rows:
                await self._execute.pipeline.save(tx, rows)

        return save

    def _take_rows(self, batch: _Batch) -> list[Settled]:
        """Returns the rows for `save`, decoded again if the transaction is repeated: `save` may
        have changed them."""
        rows = batch.rows[:] or self._saved_rows(batch.held, batch.settlement.outcomes)
        batch.rows.clear()
        return rows

    def _saved_rows(self, held: HeldLease, outcomes: Sequence[Outcome]) -> list[Settled]:
        if not self._execute.pipeline.saves:
            return []
        return [self._settled(outcome, held.inputs) for outcome in outcomes if _is_saved(outcome)]

    def _settled(self, outcome: Outcome, inputs: dict[int, str]) -> Settled:
        row: Any = partial(self._decoded, inputs[outcome.seq])
        result: Any = outcome.result and partial(orjson.loads, outcome.result)
        normalized = AS_ROW
        if self._execute.pipeline.normalizes:
            normalized = None if outcome.normalized is None else orjson.loads(outcome.normalized)
        if outcome.effects is None:
            # Decoded before the transaction. Pipelines with effects mostly do not need these any
            # more.
            row, result = row(), result and result()
        return Settled(
            outcome.seq,
            outcome.status,
            row,
            result,
            self._execute.job,
            normalized,
            outcome.error_code,
            outcome.error_message,
            outcome.attempts,
            outcome.effects,
        )

    def _decoded(self, text: str) -> Any:
        row = orjson.loads(text)
        named = self._execute.named
        return named(row) if named else row

    async def _settle_one_by_one(self, batches: Sequence[_Batch]) -> list[Lease]:
        """Settles each outcome on its own after one record could not be written, so that only the
        bad one fails."""
        lost: list[Lease] = []
        for held, settlement, _ in batches:
            early, final = settlement.outcomes[:-1], settlement.outcomes[-1:]
            for outcome in early:
                if await self._settle_alone(held, Settlement(held.lease, [outcome], False)):
                    lost.append(held.lease)
                    break
                held.lease.settled += 1
            else:
                # The last one is accounted for with its batch, like any settlement.
                lost += await self._settle_alone(
                    held, Settlement(held.lease, final, settlement.last)
                )
        return lost

    async def _settle_alone(self, held: HeldLease, single: Settlement) -> list[Lease]:
        settle = partial(self._store.outcomes.settle, self._job_id, self._worker)
        batch = _Batch(held, single, self._saved_rows(held, single.outcomes))
        save = self._save([batch]) if self._execute.pipeline.saves else None
        try:
            return await self._patiently(partial(settle, [single], save=save))
        except Exception as failure:
            if _is_ours(failure) or not single.outcomes:
                raise
            failed = self._execute.save_failed(single.outcomes[0], failure)
            without_save = Settlement(single.lease, [failed], single.last)
            return await self._patiently(partial(settle, [without_save]))


def _is_saved(outcome: Outcome) -> bool:
    """Whether `save` gets the outcome: it ended, or is an attempt that left effects."""
    if outcome.status is ItemStatus.PENDING:
        return outcome.effects is not None
    return outcome.error_code != "BAD_ROW"


def _is_ours(failure: Exception) -> bool:
    """Whether the failure comes from the engine or the machine, not from a record."""
    return isinstance(failure, HoldfastError) and not isinstance(failure, SaveFailed)
