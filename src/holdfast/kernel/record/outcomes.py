"""Settle: outcomes, domain rows and counters in one transaction, under the fence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass

from holdfast.errors import HoldfastError
from holdfast.kernel.database.database import Database, verb
from holdfast.kernel.database.driver import Transaction, Values
from holdfast.kernel.database.notices import tell_workers
from holdfast.kernel.jobs.plans import ConclusionFailed, Planner, conclude_streams, follow_up
from holdfast.kernel.record.counters import add_counts
from holdfast.kernel.record.decisions import DecisionRow, add_decisions
from holdfast.model import (
    ItemStatus,
    JobState,
    Lease,
    Outcome,
    StreamState,
    next_job_state,
)

_AGAIN_RANGE_ITEMS = 500
_COLUMNS = Outcome._fields.index("delay")
_OUTCOME_COLUMNS = ("job_id", *Outcome._fields[:_COLUMNS], "range_id")


@dataclass(frozen=True, slots=True)
class Settlement:
    """Outcomes to be written under one lease; `last` if they include every item read under it."""

    lease: Lease
    outcomes: list[Outcome]
    last: bool


class SaveFailed(HoldfastError):
    """The pipeline's `save` raised; the transaction was rolled back."""


Save = Callable[[Transaction, Sequence[Settlement]], Awaitable[None]]


class Outcomes:
    def __init__(self, database: Database) -> None:
        self._database = database

    @verb
    async def settle(
        self,
        tx: Transaction,
        job_id: int,
        worker: str,
        settlements: Sequence[Settlement],
        *,
        save: Save | None = None,
        decisions: Sequence[DecisionRow] = (),
    ) -> list[Lease]:
        """Writes the outcomes of items under these leases; returns the lost leases, for which
        nothing was written."""
        held, lost = await _pass_fence(tx, settlements)
        if held:
            await _write_outcomes(tx, job_id, worker, held)
            if save is not None:
                await _save(tx, save, held, self._database)
            await _count(tx, job_id, held)
            await add_decisions(tx, job_id, worker, decisions)
        return lost

    async def complete(self, job_id: int, planner: Planner | None = None) -> JobState | None:
        """Ends the job if nothing of it is left. One whose pipeline concludes ends only with its
        `planner`, in a process that has the pipeline. Locks the job first and looks in the next
        statement: in one statement, two last settlements would each see the other's range.

        Most calls find open ranges by a look without a lock, and leave it to the settlement that
        removes the last of them: its own look comes after its commit."""
        if await self._database.fetch("open_range_exists", {"job_id": job_id}):
            return None
        try:
            return await self._complete(job_id, planner)
        except ConclusionFailed as failure:
            return await self._fail_conclusion(job_id, str(failure))

    @verb
    async def _complete(
        self, tx: Transaction, job_id: int, planner: Planner | None
    ) -> JobState | None:
        rows = await tx.fetch("job_state", {"job_id": job_id})
        if not rows or rows[0]["state"] != JobState.RUNNING or rows[0]["standing"]:
            return None
        if await tx.fetch("open_range_exists", {"job_id": job_id}):
            return None
        return await _end(tx, job_id, planner, self._database)

    @verb
    async def _fail_conclusion(self, tx: Transaction, job_id: int, error: str) -> JobState | None:
        """Ends a job whose pipeline could not conclude it: every worker that tried again would fail
        the same way. Its streams stay complete; `resume` asks the pipeline again."""
        rows = await tx.fetch("job_state", {"job_id": job_id})
        if not rows or rows[0]["state"] != JobState.RUNNING:
            return None
        return await _set_end(tx, job_id, "fail", error)


async def _pass_fence(
    tx: Transaction, settlements: Sequence[Settlement]
) -> tuple[list[Settlement], list[Lease]]:
    rest = [settlement.lease for settlement in settlements if settlement.last]
    fences = [(lease.job_id, lease.range_id, lease.token, lease.settled) for lease in rest]
    passed = {row[0] for row in await tx.take_many("settle_rest", fences)} if rest else set()
    for settlement in settlements:
        if not settlement.last and await _pass_part(tx, settlement.lease):
            passed.add(settlement.lease.range_id)
    held, lost = [], []
    for settlement in settlements:
        if settlement.lease.range_id in passed:
            held.append(settlement)
        elif not await _was_settled(tx, settlement.lease):
            lost.append(settlement.lease)
    return held, lost


async def _pass_part(tx: Transaction, lease: Lease) -> bool:
    fence = {"id": lease.range_id, "token": lease.token, "settled": lease.settled}
    more = {"job_id": lease.job_id}
    return bool(await tx.take("settle_part", fence | more))


async def _was_settled(tx: Transaction, lease: Lease) -> bool:
    """Whether the settlement was written before: after a lost commit reply it finds its number
    taken."""
    rows = await tx.fetch("settled_number", {"id": lease.range_id, "token": lease.token})
    return bool(rows) and rows[0][0] == lease.settled + 1


async def _write_outcomes(
    tx: Transaction, job_id: int, worker: str, held: Sequence[Settlement]
) -> None:
    fresh: list[Values] = []
    replaced: list[Values] = []
    retried: list[Outcome] = []
    for settlement in held:
        rows = replaced if settlement.lease.again else fresh
        for outcome in settlement.outcomes:
            if outcome.status is ItemStatus.PENDING:
                retried.append(outcome)
            else:
                rows.append((job_id, *outcome[:_COLUMNS], None))
    if fresh:
        # A fresh range's items have no outcomes yet, so nothing can conflict.
        await tx.copy("outcomes", _OUTCOME_COLUMNS, fresh)
    if retried:
        replaced += await _again(tx, job_id, retried)
        if min(outcome.delay for outcome in retried) <= 0:
            await tell_workers(tx, job_id)
        await tx.run_many("add_attempts", _attempts(job_id, worker, retried))
    if replaced:
        await tx.run_many("replace_outcomes", sorted(replaced, key=lambda row: row[1]))


async def _again(tx: Transaction, job_id: int, retried: list[Outcome]) -> list[Values]:
    rows: list[Values] = []
    for group in _due_together(retried):
        seqs = [outcome.seq for outcome in group]
        params = {
            "job_id": job_id,
            "lo": min(seqs),
            "hi": max(seqs),
            "again": 1,
            "delay": group[-1].delay,
            "settled": 0,
            "expiries": 0,
            "item_bytes": 0,
            "waiting_for": next(filter(None, map(_gate_of, group)), None),
        }
        range_id = (await tx.take("add_range", params))[0][0]
        rows += [(job_id, *outcome[:_COLUMNS], range_id) for outcome in group]
    return rows


def _gate_of(outcome: Outcome) -> str | None:
    """Returns the gate that an item waits for if it gave up its place; such an item has used no
    try."""
    return None if outcome.logged else outcome.error_message


def _due_together(retried: list[Outcome]) -> Iterator[list[Outcome]]:
    """Groups retries that are due within about a quarter of their delay of each other; none starts
    early, since a group is due with its last."""
    group: list[Outcome] = []
    for outcome in sorted(retried, key=lambda outcome: outcome.delay):
        too_late = group and outcome.delay > group[0].delay * 1.25 + 0.5
        if too_late or len(group) == _AGAIN_RANGE_ITEMS:
            yield group
            group = []
        group.append(outcome)
    yield group


def _attempts(job_id: int, worker: str, retried: list[Outcome]) -> list[Values]:
    return [
        (
            job_id,
            outcome.seq,
            outcome.tries,
            ItemStatus.NOT_FOUND if outcome.error_code == "NOT_FOUND" else ItemStatus.ERROR,
            outcome.error_code,
            outcome.error_message,
            outcome.seconds,
            worker,
        )
        for outcome in retried
        if outcome.logged
    ]


async def _save(
    tx: Transaction, save: Save, held: Sequence[Settlement], database: Database
) -> None:
    try:
        await save(tx, held)
        # PostgreSQL refuses everything after a statement that failed, even if `save` caught it.
        await tx.fetch("select 1")
    except Exception as error:
        if database.driver.is_passing(error):
            raise
        raise SaveFailed(f"{type(error).__name__}: {error}") from error


async def _count(tx: Transaction, job_id: int, held: Sequence[Settlement]) -> None:
    outcomes = [outcome for settlement in held for outcome in settlement.outcomes]
    by_status = Counter(outcome.status for outcome in outcomes)
    retried = throttled = 0
    if by_status[ItemStatus.PENDING]:
        tried_again = [o for o in outcomes if o.status is ItemStatus.PENDING and o.logged]
        retried = sum(1 for outcome in tried_again if outcome.charged)
        throttled = len(tried_again) - retried
    await add_counts(
        tx,
        job_id,
        done=by_status[ItemStatus.DONE],
        not_found=by_status[ItemStatus.NOT_FOUND],
        skipped=by_status[ItemStatus.SKIPPED],
        error=by_status[ItemStatus.ERROR],
        retried=retried,
        throttled=throttled,
    )


async def _end(
    tx: Transaction, job_id: int, planner: Planner | None, database: Database
) -> JobState | None:
    concludes = (await tx.fetch("job_concludes", {"job_id": job_id}))[0][0]
    if concludes and (planner is None or not await conclude_streams(tx, job_id, planner, database)):
        return None
    streams = await tx.fetch("stream_ends", {"job_id": job_id})
    states = {row[0] for row in streams}
    if StreamState.RUNNING in states:
        return None
    verb = "fail" if StreamState.FAILED in states else "finish"
    errors = "; ".join(row[1] for row in streams if row[0] == StreamState.FAILED)
    state = await _set_end(tx, job_id, verb, errors or None)
    if concludes and planner is not None and state is JobState.DONE:
        await follow_up(tx, job_id, planner, database)
    return state


async def _set_end(tx: Transaction, job_id: int, verb: str, error: str | None) -> JobState:
    state = next_job_state(verb, JobState.RUNNING)
    await tx.run("set_job_state", {"job_id": job_id, "state": state, "error": error})
    detail = {"actor": "engine", "action": verb, "job_id": job_id, "subject": "", "detail": "{}"}
    await tx.run("add_audit", detail)
    return state
