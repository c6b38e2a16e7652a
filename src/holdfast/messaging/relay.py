"""The relay: sends what is due in the outbox. Any number may run; one takes a job at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from holdfast.errors import BrokerGone, DatabaseGone
from holdfast.messaging.broker import Broker, Outgoing
from holdfast.messaging.envelope import SliceDiscover, SliceProcess, Tracing, compose, dump
from holdfast.messaging.topology import DELIVERY_LIMIT
from holdfast.model import Lane, SliceKind
from holdfast.observe.metrics import Metrics
from holdfast.store import OutboxRow, Store
from holdfast.tasks import end_tasks

_GONE_SECONDS = 0.5


class Relay:
    def __init__(
        self, store: Store, broker: Broker, poll_seconds: float, metrics: Metrics, log: Any
    ) -> None:
        self._store = store
        self._broker = broker
        self._poll_seconds = poll_seconds
        self._metrics = metrics
        self._log = log
        self._woken = asyncio.Event()
        self._stopping = False

    def stop(self) -> None:
        """Ends `run` after the round under way."""
        self._stopping = True
        self._woken.set()

    async def run(self) -> None:
        """Sends until stopped, woken by the database's notices, and by time where none come."""
        listening = asyncio.create_task(self._listen())
        try:
            while not self._stopping:
                if not await self._round():
                    await self._wait()
        finally:
            await end_tasks([listening])

    async def _round(self) -> bool:
        """Whether something was sent, so that there may be more."""
        try:
            relayed = await self._store.messages.relay(self._publish)
        except DatabaseGone as error:
            self._log.warning("database.gone", error=str(error))
            await asyncio.sleep(_GONE_SECONDS)
            return False
        except BrokerGone:
            # Told by the broker's own log; the rows stay as they were.
            await asyncio.sleep(_GONE_SECONDS)
            return False
        self._metrics.relay_published.inc(relayed.sent)
        self._metrics.relay_failures.inc(len(relayed.failed))
        for message_id, why in relayed.failed.items():
            self._log.warning("relay.failed", message_id=message_id, error=why)
        if relayed.sent:
            self._log.debug("relay.sent", messages=relayed.sent, merged=relayed.merged)
        return relayed.sent + relayed.merged > 0

    async def _wait(self) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._woken.wait(), self._poll_seconds)
        if not self._stopping:
            self._woken.clear()

    async def _listen(self) -> None:
        while True:
            try:
                await self._store.messages.listen(self._woken.set)
            except DatabaseGone as error:
                self._log.info("database.gone", error=str(error))
                await asyncio.sleep(_GONE_SECONDS)

    async def _publish(self, rows: Sequence[OutboxRow]) -> list[str | None]:
        answers = await self._broker.publish([_outgoing(row) for row in rows])
        if any(answers) and not self._broker.is_up:
            raise BrokerGone("the broker went away while messages were sent")
        return answers


def _outgoing(row: OutboxRow) -> Outgoing:
    if row.payload is not None:
        return Outgoing(row.queue or "interactive", row.message_id, bytes(row.payload))
    form = SliceProcess if row.kind == SliceKind.PROCESS else SliceDiscover
    envelope = compose(
        form(job_id=row.job_id),
        message_id=row.message_id,
        correlation_id=f"job-{row.job_id}",
        created_at=row.created_at,
        max_attempts=DELIVERY_LIMIT + 1,
        job_id=row.job_id,
        tracing=Tracing(traceparent=row.trace),
    )
    return Outgoing(_queue_of(row), row.message_id, dump(envelope))


def _queue_of(row: OutboxRow) -> str:
    """What people wait for goes before what runs for days."""
    if row.kind == SliceKind.DISCOVER:
        return "discover"
    return "bulk" if row.lane is Lane.BACKFILL else "interactive"
