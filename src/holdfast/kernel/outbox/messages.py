"""Messages: the outbox and its relay, and dead letters of messages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from holdfast.kernel.arrivals.idempotency import MessageKey, is_first, note_made
from holdfast.kernel.database.database import Database, verb
from holdfast.kernel.database.driver import Row, Transaction
from holdfast.kernel.database.rows import fields_of
from holdfast.kernel.jobs.jobs import NewJob, create_job
from holdfast.kernel.outbox.sending import send_message

_DUE_MESSAGES = 500
_FAILED_SECONDS = (0.5, 60.0)


class OutboxRow(NamedTuple):
    """A message to be sent: to a `queue`, or to another program's `exchange`."""

    id: int
    message_id: str
    queue: str | None
    exchange: str | None
    routing_key: str | None
    headers: Mapping[str, Any]
    payload: bytes
    failures: int


@dataclass(frozen=True, slots=True)
class Relayed:
    """The result of one round: how many messages were sent, and why others were not, by message
    id."""

    sent: int = 0
    failed: Mapping[str, str] = field(default_factory=dict)


class DeadMessage(NamedTuple):
    message_id: str
    job_id: int | None
    code: str
    reason: str
    payload: bytes
    queue: str
    history: Sequence[Mapping[str, Any]]


#: Sends messages; returns for each None or why the broker refused it.
Publish = Callable[[Sequence[OutboxRow]], Awaitable[Sequence[str | None]]]


class Messages:
    def __init__(self, database: Database) -> None:
        self._database = database

    @verb
    async def relay(self, tx: Transaction, publish: Publish) -> Relayed:
        """Sends what is due.

        The rows go with the commit after the broker has confirmed: a crash between the two sends a
        message twice, but never loses one."""
        if not await tx.fetch("hold_outbox"):
            return Relayed()
        due = await tx.fetch("due_messages", {"limit": _DUE_MESSAGES})
        rows = [_outbox_row(row) for row in due]
        if not rows:
            return Relayed()
        answers = await publish(rows)
        failed = {row.id: why for row, why in zip(rows, answers, strict=True) if why}
        await tx.run("drop_messages", {"ids": [row.id for row in rows if row.id not in failed]})
        left = [row for row in rows if row.id in failed]
        for row in left:
            await _put_off(tx, row, failed[row.id])
        return Relayed(len(rows) - len(left), {row.message_id: failed[row.id] for row in left})

    async def listen(self, heard: Callable[[], None]) -> None:
        """Calls `heard` when something was put into the outbox, if the database notifies."""
        await self._database.driver.listen("holdfast_outbox", lambda _: heard())

    @verb
    async def accept_job(self, tx: Transaction, key: MessageKey, new: NewJob) -> int | None:
        """Starts the job that a message orders, once: returns None if it was started before."""
        if not await is_first(tx, key):
            return None
        job_id = await create_job(tx, new, f"message:{key.key}")
        await note_made(tx, key, job_id)
        return job_id

    @verb
    async def send_again(
        self, tx: Transaction, message_id: str, queue: str, payload: bytes, delay: float
    ) -> None:
        """Sends another program's message again if it came to a worker that cannot process it."""
        message = {"message_id": message_id, "payload": payload, "queue": queue}
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
        """Puts a message back into an extension's queue whose consumer stops."""
        await send_message(tx, "", queue, payload, headers=headers, message_id=message_id)

    @verb
    async def keep_dead(self, tx: Transaction, dead: DeadMessage) -> None:
        """Stores a message that was set aside; one that died before and was replayed stays the
        same."""
        same = {"message_id": dead.message_id, "payload": dead.payload}
        known = await tx.fetch("dead_message", same)
        if not known:
            await tx.run("add_dead_message", _dead_row(dead))
        elif known[0][1] != "OPEN":
            before = orjson.loads(known[0][2] or "[]")
            history = orjson.dumps([*before, *dead.history]).decode()
            await tx.run("reopen_dead_message", {"id": known[0][0], "history": history})

    async def reading(self) -> tuple[int, float, str | None]:
        """Returns how many messages are due, how many seconds the oldest has been, and the last
        error."""
        count, age, _, error = (await self._database.fetch("outbox_reading"))[0]
        return int(count), float(age), error


async def _put_off(tx: Transaction, row: OutboxRow, why: str) -> None:
    base, cap = _FAILED_SECONDS
    delay = min(cap, base * 2 ** min(row.failures, 10))
    await tx.run("delay_message", {"id": row.id, "delay": delay, "error": why})


def _outbox_row(row: Row) -> OutboxRow:
    fields = fields_of(row)
    return OutboxRow(**fields | {"headers": orjson.loads(fields["headers"] or "{}")})


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
