"""Consumes one queue across reconnects."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol, Self

from aio_pika.abc import AbstractChannel, AbstractIncomingMessage, AbstractQueue
from aio_pika.exceptions import ChannelClosed
from structlog.typing import FilteringBoundLogger

from holdfast.errors import BrokerGone, UserError
from holdfast.messaging.delivery import Delivery, SetAside, delivery_of
from holdfast.messaging.link import (
    CLOSE_SECONDS,
    Link,
    close_quietly,
    loss_is_broker_gone,
    reason_of,
)
from holdfast.messaging.topology import Topology
from holdfast.tasks import end_tasks

#: Not at once: if a deleted queue is back before RabbitMQ has notified all of its consumers, it
#: moves them to the new one and then drops what that delivers (seen on 3.10).
RETRY_SECONDS = 0.2
REFUSED_SECONDS = 5.0


#: What happens to a delivery that was not started.
HandBack = Callable[[Delivery], Awaitable[None]]


class ReadableQueue(Protocol):
    """A queue that can be read: its name here and at the broker, and how it is declared."""

    @property
    def word(self) -> str: ...

    @property
    def name(self) -> str: ...

    async def declare(self, channel: AbstractChannel) -> None: ...


@dataclass(frozen=True, slots=True)
class OwnQueue:
    """One of our own queues."""

    topology: Topology
    word: str

    @property
    def name(self) -> str:
        return self.topology.queue(self.word)

    async def declare(self, channel: AbstractChannel) -> None:
        await self.topology.declare(channel)  # declares the dead letters too
        await self.topology.declare_queue(channel, self.word)


@dataclass(frozen=True, slots=True)
class _Subscription:
    channel: AbstractChannel
    queue: AbstractQueue
    tags: list[str]


class Consumer:
    """`async for delivery in consumer` continues across reconnects, until `stop`."""

    def __init__(
        self,
        link: Link,
        readable: ReadableQueue,
        prefetch: int,
        set_aside: SetAside,
        log: FilteringBoundLogger,
        consumers: int = 1,
    ) -> None:
        self._link = link
        self._readable = readable
        self._consumers = consumers
        self._word = readable.word
        self._prefetch = prefetch
        self._set_aside = set_aside
        self._log = log
        self._waiting: asyncio.Queue[Delivery | None] = asyncio.Queue()
        self._subscription: _Subscription | None = None
        self._stopping = asyncio.Event()
        self._stopped = False
        self._feeder = asyncio.create_task(self._feed(), name=f"consumer of {readable.word}")

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Delivery:
        while (delivery := await self._waiting.get()) is not None:
            if not delivery.is_lost:
                return delivery
        self._waiting.put_nowait(None)  # wakes other iterators
        raise StopAsyncIteration

    async def stop(self, hand_back: HandBack = Delivery.give_back) -> None:
        """Accepts no more: deliveries not started are returned, the others can still be settled.

        It waits until the broker has stopped sending: the broker refills a free place at once, and
        counts what is given back as a delivery."""
        self._stopping.set()
        subscription = self._subscription
        if subscription is not None:
            with suppress(BrokerGone):
                async with loss_is_broker_gone(), asyncio.timeout(CLOSE_SECONDS):
                    for tag in subscription.tags:
                        await subscription.queue.cancel(tag)
        self._stopped = True
        left = [self._waiting.get_nowait() for _ in range(self._waiting.qsize())]
        self._waiting.put_nowait(None)
        await asyncio.gather(
            *(hand_back(delivery) for delivery in left if delivery and not delivery.is_lost)
        )

    async def close(self) -> None:
        """Ends everything; what was not acknowledged is delivered again, to any consumer."""
        self._stopping.set()
        await end_tasks([self._feeder])
        self._waiting.put_nowait(None)

    async def _feed(self) -> None:
        logged = ""
        while not self._stopping.is_set():
            await self._link.wait_until_up()
            try:
                await self._listen()
                logged = ""
                await asyncio.sleep(RETRY_SECONDS)
            except UserError as error:
                if logged != error.message:
                    self._log.error("queue.lost", queue=self._word, error=error.message)
                logged = error.message
                await asyncio.sleep(REFUSED_SECONDS)
            except BrokerGone as error:
                self._log.info("queue.lost", queue=self._word, error=str(error))
                await asyncio.sleep(RETRY_SECONDS)
            except Exception as error:
                # If the feeder died, iterators would wait forever.
                self._log.error("queue.lost", queue=self._word, error=str(error), exc_info=error)
                await asyncio.sleep(REFUSED_SECONDS)

    async def _listen(self) -> None:
        """Takes deliveries until the channel or the queue is lost."""
        channel = await self._link.channel()
        lost: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()

        def lose(error: BaseException | None) -> None:
            if not lost.done():
                lost.set_result(error)

        try:
            async with loss_is_broker_gone():
                await self._readable.declare(channel)
                await channel.set_qos(prefetch_count=self._prefetch)
                underlay = await channel.get_underlay_channel()
                # Sent when the queue is deleted; there is no other sign of it.
                underlay.on_consumer_cancel_callbacks.add(lambda _: lose(None))
                channel.close_callbacks.add(lambda _, error: lose(error))
                if self._stopping.is_set():  # while the connection was opened again
                    return
                queue = await channel.get_queue(self._readable.name, ensure=False)
                # All on one channel: if each had its own, a message of a process that dies would go
                # from one to the next as they close, and count as a delivery each time.
                tags = [await queue.consume(self._take) for _ in range(self._consumers)]
            self._subscription = _Subscription(channel, queue, tags)
            if self._stopping.is_set():  # too late for `stop` to cancel it
                return
            self._log_lost(await lost)
        finally:
            self._subscription = None
            await close_quietly(channel)

    def _log_lost(self, error: BaseException | None) -> None:
        """Warns if RabbitMQ closed the channel, e.g.

        because a message was held for too long. A lost connection is logged by the link."""
        refused = isinstance(error, ChannelClosed)
        write = self._log.warning if refused else self._log.info
        write("queue.lost", queue=self._word, error=reason_of(error) if error else "it was deleted")

    async def _take(self, message: AbstractIncomingMessage) -> None:
        delivery = delivery_of(message, self._word, self._set_aside, self._log)
        if self._stopped:
            await delivery.give_back()
        else:
            self._waiting.put_nowait(delivery)
