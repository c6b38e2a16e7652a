"""Bulk operations on everything that matches a filter. Each step changes a chunk of items and the
operation's row in one transaction: a process that continues after a crash counts nothing twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Generic, TypeVar

import orjson

from holdfast.errors import LeaseLost, NotThere, UnfitState
from holdfast.features.accounts.quotas import NO_LIMITS, Amounts, require_room
from holdfast.features.exports.exports import NewExport, insert_export
from holdfast.features.items.items import ItemFilter
from holdfast.features.rulings.rules import Hook, rule_if_free
from holdfast.kernel.arrivals.idempotency import RequestKey, note_made
from holdfast.kernel.database.chunks import EARLIEST, LATEST, FinishedItems, FreeRanges, NamedItems
from holdfast.kernel.database.database import Database, verb
from holdfast.kernel.database.driver import Row, Transaction
from holdfast.kernel.database.rows import LAST_ID, fields_of
from holdfast.kernel.jobs.audit import add_audit
from holdfast.kernel.jobs.reprocess import Fits, reprocess
from holdfast.kernel.jobs.skips import skip
from holdfast.model import ItemStatus, Job
from holdfast.rulings import Proposal

_COUNT_LIMIT = 100_000


@dataclass(frozen=True, slots=True)
class NewOperation:
    owner_id: str
    kind: str  # reprocess, skip, cancel, export, decide
    target: Mapping[str, Any]  # filter and options of the request
    job_ids: Sequence[int]
    expected_count: int
    request: RequestKey | None = None


@dataclass(frozen=True, slots=True)
class Operation:
    id: int
    owner_id: str
    kind: str
    target: Mapping[str, Any]
    job_ids: tuple[int, ...]
    state: str  # QUEUED, RUNNING, DONE, FAILED, CANCELLED
    expected_count: int
    done_count: int
    left_count: int  # looked at but not changed
    position: Mapping[str, Any] | None
    result: tuple[int, ...]  # ids of what it created
    error: str | None
    begun_at: datetime  # items that finished later are not reprocessed
    created_at: datetime | None
    finished_at: datetime | None


Following = TypeVar("Following", FinishedItems, FreeRanges)


@dataclass(frozen=True, slots=True)
class Chunk(Generic[Following]):
    """The items that one step of an operation changes, and where the operation continues: at
    `position` while more of the same follow, else at `end`."""

    items: NamedItems | Following
    position: Mapping[str, Any]
    end: Mapping[str, Any]

    def position_after(self, following: Following | None) -> Mapping[str, Any]:
        return {**self.position, **following.position} if following else self.end


@dataclass(frozen=True, slots=True)
class Hold:
    """An operation, and which process carries it out."""

    operation: Operation
    worker: str


class Operations:
    def __init__(self, database: Database, limits: Amounts = NO_LIMITS) -> None:
        self._database = database
        self._limits = limits

    @verb("add_operation")
    async def add(self, tx: Transaction, new: NewOperation) -> int:
        params = {
            "owner_id": new.owner_id,
            "kind": new.kind,
            "target": orjson.dumps(dict(new.target), default=str).decode(),
            "job_ids": orjson.dumps(list(new.job_ids)).decode(),
            "expected": new.expected_count,
        }
        rows = await tx.take("add_operation", params)
        detail = {"target": dict(new.target), "expected": new.expected_count}
        only = new.job_ids[0] if len(new.job_ids) == 1 else None
        action = f"operation.{new.kind}"
        await add_audit(tx, new.owner_id, action, only, str(rows[0][0]), detail)
        await note_made(tx, new.request, rows[0][0])
        return int(rows[0][0])

    async def operation(self, operation_id: int, scope: str | None = None) -> Operation:
        rows = await self._database.fetch("operation", {"id": operation_id, "scope": scope})
        if not rows:
            raise NotThere(
                f"there is no operation {operation_id}", "GET /api/operations lists yours."
            )
        return _operation(rows[0])

    async def page(
        self, scope: str | None, limit: int, before: int | None = None
    ) -> list[Operation]:
        params = {"limit": limit, "before_id": before or LAST_ID}
        if scope is None:
            rows = await self._database.fetch("operations", params)
        else:
            rows = await self._database.fetch("operations_of_owner", {**params, "scope": scope})
        return [_operation(row) for row in rows]

    async def to_do(self) -> list[int]:
        return [row[0] for row in await self._database.fetch("operations_to_do")]

    @verb("lease_operation")
    async def lease(self, tx: Transaction, operation_id: int, worker: str) -> Hold | None:
        rows = await tx.take("lease_operation", {"id": operation_id, "worker": worker})
        return Hold(_operation(rows[0]), worker) if rows else None

    @verb("release_operation")
    async def release(self, tx: Transaction, hold: Hold) -> None:
        params = {"id": hold.operation.id, "worker": hold.worker}
        await tx.run("release_operation", params)

    @verb("cancel_operation")
    async def cancel(self, tx: Transaction, operation_id: int, actor: str) -> None:
        """Cancels the operation; what it did stays done."""
        if not await tx.take("cancel_operation", {"id": operation_id}):
            raise UnfitState(f"operation {operation_id} has already ended")
        await add_audit(tx, actor, "operation.cancelled", None, str(operation_id))

    @verb("finish_operation")
    async def finish(
        self, tx: Transaction, hold: Hold, state: str, error: str | None = None
    ) -> None:
        operation = hold.operation
        params = {"id": operation.id, "worker": hold.worker, "state": state, "error": error}
        if not await tx.take("finish_operation", params):
            return
        detail = {"state": state, "done": operation.done_count, "left": operation.left_count}
        await add_audit(tx, operation.owner_id, "operation.ended", None, str(operation.id), detail)

    @verb("note_operation")
    async def note(self, tx: Transaction, hold: Hold, position: Mapping[str, Any]) -> Hold:
        """Notes a step that was done elsewhere: one job cancelled."""
        return await _step(tx, hold, position, 1, 0, hold.operation.result)

    @verb("export_step")
    async def export(
        self, tx: Transaction, hold: Hold, position: Mapping[str, Any], new: NewExport
    ) -> Hold:
        """Requests one export.

        Other operations' waiting exports were not there to be counted when this one began."""
        await require_room(tx, self._limits, new.owner_id, exports=1, bytes=1)
        made = await insert_export(tx, new)
        return await _step(tx, hold, position, 1, 0, (*hold.operation.result, made))

    @verb("reprocess_step")
    async def reprocess(
        self, tx: Transaction, hold: Hold, job_id: int, chunk: Chunk[FinishedItems], fits: Fits
    ) -> Hold:
        """Opens the finished items of a chunk that fit."""
        operation = hold.operation
        reset = bool(operation.target["reset_attempts"])
        step = await reprocess(tx, job_id, chunk.items, operation.owner_id, reset, fits)
        position = chunk.position_after(step.next)
        return await _step(tx, hold, position, step.opened, step.left, operation.result)

    @verb("skip_step")
    async def skip(
        self, tx: Transaction, hold: Hold, job_id: int, chunk: Chunk[FreeRanges], reason: str
    ) -> Hold:
        """Skips the open items of a chunk that are not being processed."""
        step = await skip(tx, job_id, chunk.items, reason)
        position = chunk.position_after(step.next)
        return await _step(tx, hold, position, step.skipped, step.left, hold.operation.result)

    @verb("decide_step")
    async def decide(
        self,
        tx: Transaction,
        hold: Hold,
        job: Job,
        proposals: Sequence[Proposal],
        position: Mapping[str, Any],
        hook: Hook | None,
    ) -> Hold:
        """Writes decisions about items that no one has decided about."""
        operation = hold.operation
        reason = str(operation.target.get("reason") or "")
        done = 0
        for proposal in proposals:
            done += await rule_if_free(tx, job, proposal, reason, operation.owner_id, hook)
        return await _step(tx, hold, position, done, len(proposals) - done, operation.result)

    async def count(self, job_id: int, status: ItemStatus, filter: ItemFilter) -> int:
        """Counts how many match, exactly up to a hundred thousand."""
        params = {
            "job_id": job_id,
            "status": status,
            "any_code": int(filter.code is None),
            "code": filter.code or "",
            "since": filter.since or EARLIEST,
            "until": filter.until or LATEST,
            "limit": _COUNT_LIMIT,
        }
        return int((await self._database.fetch("count_matching", params))[0][0])


async def _step(
    tx: Transaction,
    hold: Hold,
    position: Mapping[str, Any],
    done: int,
    left: int,
    result: Sequence[int],
) -> Hold:
    operation = hold.operation
    params = {
        "id": operation.id,
        "worker": hold.worker,
        "position": orjson.dumps(dict(position)).decode(),
        "done": done,
        "left": left,
        "result": orjson.dumps(list(result)).decode(),
    }
    if not await tx.take("step_operation", params):
        raise LeaseLost(f"operation {operation.id} was cancelled or is another's")
    moved = replace(
        operation,
        position=dict(position),
        done_count=operation.done_count + done,
        left_count=operation.left_count + left,
        result=tuple(result),
    )
    return replace(hold, operation=moved)


def _operation(row: Row) -> Operation:
    fields = fields_of(row)
    return Operation(
        **fields
        | {
            "target": orjson.loads(fields["target"]),
            "job_ids": tuple(orjson.loads(fields["job_ids"])),
            "position": orjson.loads(fields["position"] or "null"),
            "result": tuple(orjson.loads(fields["result"])),
        }
    )
