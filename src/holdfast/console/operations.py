"""Bulk operations on everything that matches a filter. Each step changes a chunk of items and the
operation's row in one transaction: a process that continues after a crash counts nothing twice."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

import orjson

from holdfast.console.exports import NewExport, insert_export
from holdfast.console.items import ItemFilter
from holdfast.errors import LeaseLost, NotThere, UnfitState
from holdfast.model import ItemStatus
from holdfast.store.audit import add_audit
from holdfast.store.counters import add_counts
from holdfast.store.database import Database, verb
from holdfast.store.driver import Row, Transaction
from holdfast.store.idempotency import RequestKey, note_made
from holdfast.store.instants import instant_parameter, parse_instant
from holdfast.store.jobs import open_again, require
from holdfast.store.rows import LAST_ID, fields_of
from holdfast.store.skips import skip_named

_CHUNK = 500
_SKIP_CHUNK = 2000
_COUNT_LIMIT = 100_000
_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST = datetime(9999, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class NewOperation:
    owner_id: str
    kind: str  # reprocess, skip, cancel, export
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
    left_count: int  # looked at and not changed
    position: Mapping[str, Any] | None
    result: tuple[int, ...]  # ids of what it made
    error: str | None
    before: Any
    created_at: datetime | None
    finished_at: datetime | None

    @property
    def begun_at(self) -> datetime | None:
        """What was finished later is not its concern."""
        return parse_instant(self.before)


class Candidate(NamedTuple):
    seq: int
    status: ItemStatus
    error_code: str | None
    attempts: int
    misses: int


@dataclass(frozen=True, slots=True)
class Hold:
    """The process that carries out an operation, and how long its lease lasts."""

    operation: Operation
    worker: str
    seconds: float


class Operations:
    def __init__(self, database: Database) -> None:
        self._database = database

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
    async def lease(
        self, tx: Transaction, operation_id: int, worker: str, seconds: float
    ) -> Hold | None:
        params = {"id": operation_id, "worker": worker, "seconds": seconds}
        rows = await tx.take("lease_operation", params)
        return Hold(_operation(rows[0]), worker, seconds) if rows else None

    @verb("release_operation")
    async def release(self, tx: Transaction, hold: Hold) -> None:
        params = {"id": hold.operation.id, "worker": hold.worker}
        await tx.run("release_operation", params)

    @verb("cancel_operation")
    async def cancel(self, tx: Transaction, operation_id: int, actor: str) -> None:
        """What it did stays done."""
        if not await tx.take("cancel_operation", {"id": operation_id}):
            raise UnfitState(f"operation {operation_id} has ended already")
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
        """A step that was done elsewhere: one job cancelled."""
        return await _step(tx, hold, position, 1, 0, hold.operation.result)

    @verb("export_step")
    async def export(
        self, tx: Transaction, hold: Hold, position: Mapping[str, Any], new: NewExport
    ) -> Hold:
        """Asks for one export."""
        made = await insert_export(tx, new)
        return await _step(tx, hold, position, 1, 0, (*hold.operation.result, made))

    @verb("reprocess_step")
    async def reprocess(
        self,
        tx: Transaction,
        hold: Hold,
        job_id: int,
        status: ItemStatus,
        filter: ItemFilter,
        fits: Callable[[Candidate], bool],
        reset: bool,
    ) -> tuple[Hold, bool]:
        """Looks at the next chunk and opens what fits; False when there is no further one."""
        place = hold.operation.position or {}
        params = {**self._matching(job_id, status, filter), **self._after(place, filter)}
        params |= {"before": hold.operation.before, "limit": _CHUNK}
        await require(tx, job_id, "reprocess")
        rows = await tx.fetch("matching_outcomes", params)
        if not rows:
            return hold, False
        found = [_candidate(row) for row in rows]
        chosen = [(each.seq, each.status) for each in found if fits(each)]
        await open_again(tx, job_id, chosen, hold.operation.owner_id, reset)
        last = parse_instant(rows[-1]["updated_at"]) or _EARLIEST
        moved = {**place, "at": last.isoformat(), "seq": rows[-1]["seq"]}
        left = len(rows) - len(chosen)
        result = hold.operation.result
        return await _step(tx, hold, moved, len(chosen), left, result), True

    @verb("skip_step")
    async def skip(
        self, tx: Transaction, hold: Hold, job_id: int, filter: ItemFilter, reason: str
    ) -> tuple[Hold, bool]:
        """Skips what is open in the next range that nobody works on."""
        place = hold.operation.position or {}
        start = place.get("at") or (filter.since or _EARLIEST).isoformat()
        params = {
            "job_id": job_id,
            "since": self._instant(datetime.fromisoformat(start)),
            "id": place.get("range", 0),
            "until": self._instant(filter.until or _LATEST),
            "only_again": int(filter.code is not None),
        }
        await require(tx, job_id, "cancel")
        rows = await tx.fetch("skippable_range", params)
        if not rows:
            return hold, False
        skipped, emptied = await _skip_range(tx, job_id, rows[0], filter.code, reason)
        await add_counts(tx, job_id, "operation", skipped=skipped)
        since = parse_instant(rows[0]["since"]) or _EARLIEST
        # A range that still has items is looked at again: from just before it.
        number = rows[0]["id"] if emptied else rows[0]["id"] - 1
        moved = {**place, "at": since.isoformat(), "range": number}
        return await _step(tx, hold, moved, skipped, 0, hold.operation.result), True

    @verb("reprocess_chosen_step")
    async def reprocess_chosen(
        self,
        tx: Transaction,
        hold: Hold,
        job_id: int,
        seqs: Sequence[int],
        fits: Callable[[Candidate], bool],
        reset: bool,
        position: Mapping[str, Any],
    ) -> Hold:
        """Opens those of the items that fit: they were found by what their columns hold."""
        params = {"job_id": job_id, "seqs": list(seqs), "before": hold.operation.before}
        await require(tx, job_id, "reprocess")
        rows = await tx.fetch("chosen_outcomes", params) if seqs else []
        found = [_candidate(row) for row in rows]
        chosen = [(each.seq, each.status) for each in found if fits(each)]
        await open_again(tx, job_id, chosen, hold.operation.owner_id, reset)
        left = len(seqs) - len(chosen)
        return await _step(tx, hold, position, len(chosen), left, hold.operation.result)

    @verb("skip_chosen_step")
    async def skip_chosen(
        self,
        tx: Transaction,
        hold: Hold,
        job_id: int,
        seqs: Sequence[int],
        reason: str,
        position: Mapping[str, Any],
    ) -> Hold:
        """Skips those of the items that nobody works on."""
        await require(tx, job_id, "cancel")
        skipped = await skip_named(tx, job_id, sorted(seqs), reason) if seqs else 0
        left = len(seqs) - skipped
        return await _step(tx, hold, position, skipped, left, hold.operation.result)

    async def count(self, job_id: int, status: ItemStatus, filter: ItemFilter) -> int:
        """How many match, exactly up to a hundred thousand."""
        params = {
            **self._matching(job_id, status, filter),
            "since": self._instant(filter.since or _EARLIEST),
            "limit": _COUNT_LIMIT,
        }
        return int((await self._database.fetch("count_matching", params))[0][0])

    def _matching(self, job_id: int, status: ItemStatus, filter: ItemFilter) -> dict[str, Any]:
        return {
            "job_id": job_id,
            "status": status,
            "any_code": int(filter.code is None),
            "code": filter.code or "",
            "until": self._instant(filter.until or _LATEST),
        }

    def _after(self, place: Mapping[str, Any], filter: ItemFilter) -> dict[str, Any]:
        start = place.get("at") or (filter.since or _EARLIEST).isoformat()
        at = self._instant(datetime.fromisoformat(start))
        return {"updated_at": at, "seq": place.get("seq", 0)}

    def _instant(self, value: datetime) -> Any:
        return instant_parameter(self._database.driver.dialect, value)


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
        "seconds": hold.seconds,
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


async def _skip_range(
    tx: Transaction, job_id: int, row: Row, code: str | None, reason: str
) -> tuple[int, bool]:
    """How many were skipped, and whether nothing more in the range is to be."""
    range_id, lo, hi, again, _ = row
    if again:
        params = {"range_id": range_id, "any_code": int(code is None), "code": code or ""}
        skipped = await tx.take("skip_again", {**params, "reason": reason})
        if not await tx.fetch("left_in_range", {"range_id": range_id}):
            await tx.run("drop_range", {"id": range_id})
        return len(skipped), True
    params = {"job_id": job_id, "lo": lo, "hi": hi, "limit": _SKIP_CHUNK}
    seqs = [found[0] for found in await tx.fetch("skippable_seqs", params)]
    await tx.run("skip_fresh", {"job_id": job_id, "seqs": seqs, "reason": reason})
    if len(seqs) < _SKIP_CHUNK or seqs[-1] >= hi:
        await tx.run("drop_range", {"id": range_id})
        return len(seqs), True
    await tx.run("cut_range", {"id": range_id, "lo": seqs[-1] + 1})
    return len(seqs), False


def _candidate(row: Row) -> Candidate:
    return Candidate(
        row["seq"], ItemStatus(row["status"]), row["error_code"], row["attempts"], row["misses"]
    )


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
