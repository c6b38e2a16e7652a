"""One message as it was delivered, and how it is acknowledged or rejected."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from aio_pika.abc import AbstractIncomingMessage
from structlog.typing import FilteringBoundLogger

from holdfast.errors import BrokerGone
from holdfast.messaging.link import loss_is_broker_gone

#: the quorum queue's own count of earlier deliveries
COUNT_HEADER = "x-delivery-count"
#: added to a message that we set aside ourselves; RabbitMQ's own reasons are few
CODE_HEADER = "x-holdfast-code"
REASON_HEADER = "x-holdfast-reason"
QUEUE_HEADER = "x-holdfast-queue"
DELIVERIES_HEADER = "x-holdfast-deliveries"
_REASON_CHARACTERS = 1000

SetAside = Callable[[AbstractIncomingMessage, dict[str, Any]], Awaitable[str | None]]


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message, acknowledged after what it asks for is committed, never before."""

    body: bytes
    message_id: str | None
    queue: str
    #: how often it was delivered before: 0 the first time
    delivery_count: int
    redelivered: bool
    headers: dict[str, Any]
    _message: AbstractIncomingMessage = field(repr=False)
    _set_aside: SetAside = field(repr=False)
    _log: FilteringBoundLogger = field(repr=False)

    async def ack(self) -> None:
        """Marks the message as finished.

        On a lost channel this is only logged: it will arrive again."""
        try:
            async with loss_is_broker_gone():
                await self._message.ack()
        except BrokerGone as error:
            self._log_unsettled(error)

    async def give_back(self) -> None:
        """Puts the message back into the queue, for another consumer.

        RabbitMQ counts it as a delivery."""
        try:
            async with loss_is_broker_gone():
                await self._message.reject(requeue=True)
        except BrokerGone as error:
            self._log_unsettled(error)

    async def reject_to_dead(self, code: str, reason: str) -> None:
        """Moves the message to the dead letters at once.

        Its copy there has the code and the reason; if that copy cannot be confirmed, RabbitMQ moves
        the message itself, without them."""
        headers = {
            CODE_HEADER: code,
            REASON_HEADER: reason[:_REASON_CHARACTERS],
            QUEUE_HEADER: self.queue,
            DELIVERIES_HEADER: self.delivery_count + 1,
        }
        self._log.warning(
            "message.dead", queue=self.queue, message_id=self.message_id, code=code, reason=reason
        )
        failed = await self._set_aside(self._message, headers)
        if failed is None:
            await self.ack()
            return
        try:
            async with loss_is_broker_gone():
                await self._message.reject(requeue=False)
        except BrokerGone as error:
            self._log_unsettled(error)

    @property
    def own_headers(self) -> dict[str, Any]:
        """The headers that its sender set."""
        return {name: value for name, value in self.headers.items() if name != COUNT_HEADER}

    @property
    def is_settled(self) -> bool:
        """Whether it was acknowledged or rejected, or at least sent so."""
        return self._message.processed

    @property
    def is_lost(self) -> bool:
        """Whether its channel is gone, so that it will be delivered again."""
        try:
            return self._message.channel.is_closed
        except RuntimeError:
            return True

    def _log_unsettled(self, error: BrokerGone) -> None:
        self._log.warning(
            "message.unsettled", queue=self.queue, message_id=self.message_id, error=str(error)
        )


def delivery_of(
    message: AbstractIncomingMessage, queue: str, set_aside: SetAside, log: FilteringBoundLogger
) -> Delivery:
    headers = dict(message.headers)
    counted = headers.get(COUNT_HEADER, 0)
    return Delivery(
        body=message.body,
        message_id=message.message_id,
        queue=queue,
        delivery_count=counted if isinstance(counted, int) else 0,
        redelivered=bool(message.redelivered),
        headers=headers,
        _message=message,
        _set_aside=set_aside,
        _log=log,
    )
