"""The relay: sends what is due in the outbox. Several may run; only one sends at a time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from holdfast.errors import BrokerGone, DatabaseGone
from holdfast.kernel import OutboxRow, Store
from holdfast.kernel.worker.patience import patiently
from holdfast.messaging.broker import Broker, Outgoing
from holdfast.messaging.topology import ORDERS_QUEUE, is_own
from holdfast.observe.metrics import Metrics
from holdfast.tasks import end_tasks

T = TypeVar("T")
_BROKER_GONE_SECONDS = 0.5
#: How often the outbox is looked at if there are no notices.
_POLL_SECONDS = 0.2


class Relay:
    def __init__(
        self,
        store: Store,
        broker: Broker,
        rng: random.Random,
        metrics: Metrics,
        log: Any,
    ) -> None:
        self._store = store
        self._broker = broker
        self._rng = rng
        self._metrics = metrics
        self._log = log
        self._woken = asyncio.Event()
        self._stopping = False

    def stop(self) -> None:
        """Ends `run` after the current round."""
        self._stopping = True
        self._woken.set()

    async def run(self) -> None:
        """Sends until stopped, woken by the database's notifications or, without any, by time."""
        listening = asyncio.create_task(self._listen())
        try:
            while not self._stopping:
                if not await self._round():
                    await self._wait()
        finally:
            await end_tasks([listening])

    async def _round(self) -> bool:
        """Sends one round; returns whether anything was sent, so that there may be more."""
        try:
            relayed = await self._patiently(partial(self._store.messages.relay, self._publish))
        except DatabaseGone:  # and the relay is stopped
            return False
        except BrokerGone:
            # Logged by the broker's link; the rows stay as they were.
            await asyncio.sleep(_BROKER_GONE_SECONDS)
            return False
        self._metrics.relay_published.inc(relayed.sent)
        self._metrics.relay_failures.inc(len(relayed.failed))
        for message_id, why in relayed.failed.items():
            self._log.warning("relay.failed", message_id=message_id, error=why)
        if relayed.sent:
            self._log.debug("relay.sent", messages=relayed.sent)
        return relayed.sent > 0

    async def _wait(self) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._woken.wait(), _POLL_SECONDS)
        if not self._stopping:
            self._woken.clear()

    async def _listen(self) -> None:
        with suppress(DatabaseGone):  # only when the relay is stopped
            await self._patiently(partial(self._store.messages.listen, self._woken.set))

    async def _patiently(self, action: Callable[[], Awaitable[T]]) -> T:
        return await patiently(action, self._log, self._rng, give_up=lambda: self._stopping)

    async def _publish(self, rows: Sequence[OutboxRow]) -> list[str | None]:
        answers = await self._broker.publish([_outgoing(row) for row in rows])
        if any(answers) and not self._broker.is_up:
            raise BrokerGone("the broker went away while messages were sent")
        return answers


def _outgoing(row: OutboxRow) -> Outgoing:
    payload = bytes(row.payload)
    if row.exchange is not None:
        key = row.routing_key or ""
        return Outgoing(key, row.message_id, payload, row.headers, row.exchange)
    queue = row.queue or ORDERS_QUEUE
    # A dead letter of another program's queue goes back there, past the exchanges.
    return Outgoing(queue, row.message_id, payload, exchange=None if is_own(queue) else "")
