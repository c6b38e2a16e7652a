"""Messages: the outbox and its relay, the turns of jobs, dead letters of messages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

import orjson

from holdfast.model import JobState, Lane, SliceKind
from holdfast.store.announcements import announce
from holdfast.store.database import Database, verb
from holdfast.store.driver import Row, Transaction
from holdfast.store.idempotency import MessageKey, is_first, note_made
from holdfast.store.jobs import NewJob, create_job
from holdfast.store.rows import fields_of
from holdfast.store.sending import send_message

_DUE_JOBS = 200
_DUE_MESSAGES = 500
_FAILED_SECONDS = (0.5, 60.0)
_DOUBLINGS = 6
#: A job lets another of its owner go first for so long, where only one of them may be worked on.
_GIVE_WAY_SECONDS = 1.0
#: Messages for the same slice this close together are one.
_SAME_SECONDS = 0.1
_SLICES = frozenset(SliceKind)


class OutboxRow(NamedTuple):
    """A message to be sent. A slice has no payload: the relay writes its envelope. With an
    `exchange`, it is for others."""

    id: int
    message_id: str
    job_id: int
    kind: str
    queue: str | None
    exchange: str | None
    routing_key: str | None
    headers: Mapping[str, Any]
    payload: bytes | None
    trace: str | None
    lane: Lane | None
    failures: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Relayed:
    """What came of one round: sent, not needed because one for the same slice is out, failed."""

    sent: int = 0
    merged: int = 0
    failed: Mapping[str, str] = field(default_factory=dict)


class TurnJob(NamedTuple):
    """The job that a message asks a slice of."""

    state: JobState
    pipeline: str
    lane: str
    switch: str | None


class DeadMessage(NamedTuple):
    message_id: str
    job_id: int | None
    kind: str | None
    code: str
    reason: str
    payload: bytes
    queue: str
    history: Sequence[Mapping[str, Any]]


#: Sends messages; for each, None or why the broker did not take it.
Publish = Callable[[Sequence[OutboxRow]], Awaitable[Sequence[str | None]]]


class Messages:
    def __init__(self, database: Database) -> None:
        self._database = database

    @verb
    async def relay(self, tx: Transaction, publish: Publish) -> Relayed:
        """Sends what is due. The rows go with the commit after the broker has confirmed: a
        death between the two sends a message twice, never not at all."""
        jobs = [row[0] for row in await tx.fetch("lock_due_jobs", {"limit": _DUE_JOBS})]
        if not jobs:
            return Relayed()
        params = {"job_ids": jobs, "limit": _DUE_MESSAGES}
        rows = [_outbox_row(row) for row in await tx.fetch("due_messages", params)]
        wanted = await _open_turns(tx, rows)
        answers = await publish(wanted)
        failed = {row.id: why for row, why in zip(wanted, answers, strict=True) if why}
        await tx.run("drop_messages", {"ids": [r.id for r in rows if r.id not in failed]})
        await _put_off(tx, [row for row in wanted if row.id in failed], failed)
        reasons = {row.message_id: failed[row.id] for row in wanted if row.id in failed}
        return Relayed(len(wanted) - len(failed), len(rows) - len(wanted), reasons)

    async def listen(self, heard: Callable[[], None]) -> None:
        """Calls `heard` when something was put into the outbox, if the database notifies."""
        await self._database.driver.listen("holdfast_outbox", lambda _: heard())

    async def begin_turn(
        self,
        job_id: int,
        kind: SliceKind,
        message_id: str,
        room: int,
        owner_slices: int | None = None,
    ) -> TurnJob | None:
        """A message was taken: the next may be sent. One is wanted at once when there is more
        than the `room` of the worker that follows this one, and the job's owner may have another
        worker; or when another stream of the job is free."""
        # A message may arrive before the relay that sent it has committed. To close the turn then
        # would find nothing to close, and leave it open forever. Waited for apart: a lock held
        # by the transaction would make relays pass the job over.
        await self._database.fetch("await_relay", {"job_id": job_id})
        return await self._begin_turn(job_id, kind, message_id, room, owner_slices)

    @verb(relaxed=True)
    async def _begin_turn(
        self,
        tx: Transaction,
        job_id: int,
        kind: SliceKind,
        message_id: str,
        room: int,
        owner_slices: int | None,
    ) -> TurnJob | None:
        turn = {"job_id": job_id, "kind": kind, "message_id": message_id}
        await tx.run("close_turn", turn)
        rows = await tx.fetch("job_of_turn", {"job_id": job_id})
        if not rows:
            return None
        job = TurnJob(JobState(rows[0][0]), *rows[0][1:])
        works = job.state is JobState.RUNNING and not job.switch
        if works and await _wants_more(tx, job_id, kind, room, owner_slices):
            await announce(tx, job_id, kind)
        return job

    @verb(relaxed=True)
    async def end_turn(
        self,
        tx: Transaction,
        job_id: int,
        kind: SliceKind,
        least: float = 0.0,
        frees_owner: bool = False,
    ) -> None:
        """After a slice: announces what is left, for when it is due, at the earliest in `least`
        seconds. `frees_owner`: its owner's other jobs may have waited for this end."""
        earliest = least
        if frees_owner and await tx.take("hasten_owner", {"job_id": job_id}):
            earliest = max(least, _GIVE_WAY_SECONDS)
        if await tx.fetch("turn_is_out", {"job_id": job_id, "kind": kind}):
            return
        due = await tx.fetch(_DUE[kind], {"job_id": job_id})
        if due and due[0][0] is not None:
            delay = max(earliest, float(due[0][0]))
            soon = {"job_id": job_id, "kind": kind, "seconds": delay + _SAME_SECONDS}
            if not await tx.fetch("announced_by", soon):
                await announce(tx, job_id, kind, delay)

    @verb
    async def announce_silent(
        self, tx: Transaction, listened: Iterable[str], lost_seconds: float, ahead: float = 0.0
    ) -> list[int]:
        """Announces jobs that have work and no message, and those whose message got lost. Items
        that are due within `ahead` seconds are announced for then."""
        pipelines = sorted(set(listened))
        for job_id, kind, message_id, resent, age in await tx.fetch(
            "lost_turns", {"ago": -lost_seconds}
        ):
            if age > lost_seconds * 2 ** min(resent, _DOUBLINGS):
                lost = {"job_id": job_id, "kind": kind, "message_id": message_id}
                await tx.run("forget_turn", lost)
        job_ids = []
        for job_id, seconds in await tx.fetch(
            "silent_jobs", {"pipelines": pipelines, "ahead": ahead}
        ):
            await announce(tx, job_id, SliceKind.PROCESS, max(0.0, float(seconds)))
            job_ids.append(job_id)
        for row in await tx.fetch("silent_walks", {"pipelines": pipelines}):
            await announce(tx, row[0], SliceKind.DISCOVER)
            job_ids.append(row[0])
        return job_ids

    async def listened_pipelines(self, lost_seconds: float) -> set[str]:
        rows = await self._database.fetch("listened_pipelines", {"ago": -lost_seconds})
        return {name for row in rows for name in orjson.loads(row[0])}

    @verb
    async def accept_job(self, tx: Transaction, key: MessageKey, new: NewJob) -> int | None:
        """Starts the job that a message orders, once: None when it was started before."""
        if not await is_first(tx, key):
            return None
        job_id = await create_job(tx, new, f"message:{key.key}")
        await note_made(tx, key, job_id)
        return job_id

    @verb
    async def send_again(
        self, tx: Transaction, message_id: str, queue: str, payload: bytes, delay: float
    ) -> None:
        """Another program's message that came to a worker which cannot follow it."""
        message = {"message_id": message_id, "payload": payload, "queue": queue, "job_id": 0}
        await tx.run("add_message", {**message, "delay": delay})

    @verb
    async def return_message(
        self,
        tx: Transaction,
        message_id: str | None,
        queue: str,
        payload: bytes,
        headers: Mapping[str, Any],
    ) -> None:
        """To a queue of an extension, whose consumer stops."""
        await send_message(tx, "", queue, payload, headers=headers, message_id=message_id)

    @verb
    async def keep_dead(self, tx: Transaction, dead: DeadMessage) -> None:
        """A message that was set aside; one that died before and was replayed is the same."""
        if dead.job_id is not None and dead.kind in _SLICES:
            turn = {"job_id": dead.job_id, "kind": dead.kind, "message_id": dead.message_id}
            await tx.run("close_turn", turn)
        same = {"message_id": dead.message_id, "payload": dead.payload}
        known = await tx.fetch("dead_message", same)
        if not known:
            await tx.run("add_dead_message", _dead_row(dead))
        elif known[0][1] != "OPEN":
            before = orjson.loads(known[0][2] or "[]")
            history = orjson.dumps([*before, *dead.history]).decode()
            await tx.run("reopen_dead_message", {"id": known[0][0], "history": history})

    async def reading(self) -> tuple[int, float, str | None]:
        """How many messages are due, for how many seconds the oldest, and the last error."""
        count, age, _, error = (await self._database.fetch("outbox_reading"))[0]
        return int(count), float(age), error


_DUE = {SliceKind.PROCESS: "next_range_due", SliceKind.DISCOVER: "next_stream_due"}


async def _wants_more(
    tx: Transaction, job_id: int, kind: SliceKind, room: int, owner_slices: int | None
) -> bool:
    if kind is SliceKind.DISCOVER:
        return bool((await tx.fetch("free_streams", {"job_id": job_id}))[0][0] > 1)
    span = (await tx.fetch("claimable_span", {"job_id": job_id}))[0][0]
    return bool(span > room) and await _owner_may_have_more(tx, job_id, owner_slices)


async def _owner_may_have_more(tx: Transaction, job_id: int, owner_slices: int | None) -> bool:
    """Beside the worker that took the message and holds nothing yet."""
    if owner_slices is None:
        return True
    others = await tx.fetch("other_workers_of_owner", {"job_id": job_id, "worker": ""})
    return bool(others[0][0] + 1 < owner_slices)


async def _open_turns(tx: Transaction, rows: Sequence[OutboxRow]) -> list[OutboxRow]:
    """The rows that are sent: of those for the same slice, one, if none is out."""
    wanted, seen = [], set()
    for row in rows:
        if row.kind not in _SLICES:
            wanted.append(row)
            continue
        turn = (row.job_id, row.kind)
        if turn in seen:
            continue
        seen.add(turn)
        opened = {"job_id": row.job_id, "kind": row.kind, "message_id": row.message_id}
        if await tx.take("open_turn", opened):
            wanted.append(row)
    return wanted


async def _put_off(tx: Transaction, rows: Sequence[OutboxRow], why: Mapping[int, str]) -> None:
    base, cap = _FAILED_SECONDS
    for row in rows:
        delay = min(cap, base * 2 ** min(row.failures, 10))
        await tx.run("delay_message", {"id": row.id, "delay": delay, "error": why[row.id]})
        if row.kind in _SLICES:
            turn = {"job_id": row.job_id, "kind": row.kind, "message_id": row.message_id}
            await tx.run("close_turn", turn)


def _outbox_row(row: Row) -> OutboxRow:
    fields = fields_of(row)
    lane = None if fields["lane"] is None else Lane(fields["lane"])
    headers = orjson.loads(fields["headers"] or "{}")
    return OutboxRow(**fields | {"lane": lane, "headers": headers})


def _dead_row(dead: DeadMessage) -> dict[str, Any]:
    return {
        "job_id": dead.job_id,
        "code": dead.code,
        "message": dead.reason,
        "message_id": dead.message_id,
        "payload": dead.payload,
        "queue": dead.queue,
        "history": orjson.dumps(list(dead.history)).decode(),
    }
