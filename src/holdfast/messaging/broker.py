"""The broker as the rest of Holdfast sees it: publish, consume, depth."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aio_pika import DeliveryMode, Message
from aio_pika.abc import AbstractChannel, AbstractExchange, AbstractIncomingMessage
from aio_pika.exceptions import (
    CONNECTION_EXCEPTIONS,
    ChannelNotFoundEntity,
    DeliveryError,
    PublishError,
)
from structlog.typing import FilteringBoundLogger

from holdfast.clock import system_random
from holdfast.errors import BrokerGone, UserError
from holdfast.messaging.consumer import Consumer, OwnQueue, ReadableQueue
from holdfast.messaging.delivery import COUNT_HEADER
from holdfast.messaging.link import (
    Link,
    close_quietly,
    is_cancelled,
    loss_is_broker_gone,
    reason_of,
)
from holdfast.messaging.topology import DEAD_QUEUE, Topology

CONFIRM_SECONDS = 10.0
AGAIN_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message to send.

    `queue` is the short name of one of our queues: see topology.py; or, for another program's
    exchange, the routing key."""

    queue: str
    message_id: str
    body: bytes
    headers: Mapping[str, Any] = field(default_factory=dict)
    exchange: str | None = None


@dataclass(frozen=True, slots=True)
class _Exits:
    """The publishing channel and its exchanges."""

    channel: AbstractChannel
    work: AbstractExchange
    dead: AbstractExchange


class Broker:
    """Two connections to RabbitMQ: it stops reading from one that publishes when it is short of
    memory, and acknowledgements must not wait behind that."""

    def __init__(
        self,
        url: str,
        topology: Topology,
        log: FilteringBoundLogger,
        rng: random.Random,
        confirm_seconds: float,
    ) -> None:
        self.topology = topology
        self._log = log
        self._confirm_seconds = confirm_seconds
        self._publishing = Link(url, "publishing", log, rng)
        self._consuming = Link(url, "consuming", log, rng)
        self._consuming_opened = False
        self._opening_exits = asyncio.Lock()
        self._opening_consuming = asyncio.Lock()
        self._exits: _Exits | None = None
        self._unrouted = False
        self._consumers: list[Consumer] = []

    @property
    def is_up(self) -> bool:
        return self._publishing.is_up and (self._consuming.is_up or not self._consuming_opened)

    async def open(self) -> None:
        """Opens the connection; waits for a broker that cannot be reached.

        Raises UserError if a person has to fix something."""
        await self._publishing.open()
        while True:
            try:
                await self._open_exits()
                return
            except BrokerGone:
                # A link notices its loss only when other tasks get to run.
                await asyncio.sleep(AGAIN_SECONDS)
                await self._publishing.wait_until_up()

    async def close(self) -> None:
        await asyncio.gather(*(consumer.close() for consumer in self._consumers))
        await self._consuming.close()
        await self._publishing.close()

    async def publish(self, messages: Sequence[Outgoing]) -> list[str | None]:
        """Sends all at once; returns for each None if the broker has it, or why that is not
        known."""
        try:
            exits = await self._open_exits()
        except (BrokerGone, UserError) as error:
            return [f"the broker cannot be reached: {error}"] * len(messages)
        others = {message.exchange for message in messages if message.exchange is not None}
        missing = await self._missing_exchanges(others)
        return await asyncio.gather(*(self._send_one(exits, one, missing) for one in messages))

    async def _send_one(
        self, exits: _Exits, outgoing: Outgoing, missing: Mapping[str, str]
    ) -> str | None:
        name = outgoing.exchange
        if name is None:
            return await self._send(exits.work, outgoing.queue, _message(outgoing))
        if name in missing:
            return missing[name]
        exchange = exits.channel.default_exchange
        if name:
            exchange = await exits.channel.get_exchange(name, ensure=False)
        # Whether anyone listens there is not our concern.
        return await self._send(exchange, outgoing.queue, _message(outgoing), mandatory=False)

    async def _missing_exchanges(self, names: Iterable[str]) -> dict[str, str]:
        """Returns the exchanges that do not exist, and why they cannot be used.

        Publishing to one would close the channel, and lose the other messages with it."""
        missing = {}
        for name in sorted(names):
            if name:
                failed = await self._check_exchange(name)
                if failed is not None:
                    missing[name] = failed
        return missing

    async def _check_exchange(self, name: str) -> str | None:
        try:
            channel = await self._publishing.channel()
        except BrokerGone as error:
            return f"the broker cannot be reached: {error}"
        try:
            async with loss_is_broker_gone():
                await channel.get_exchange(name, ensure=True)
        except BrokerGone as error:
            return f"the exchange {name!r} cannot be used: {error}"
        finally:
            await close_quietly(channel)
        return None

    async def consume(self, queue: str, prefetch: int) -> Consumer:
        """Reads deliveries of one of our queues, at most `prefetch` unacknowledged at once."""
        return await self.read(OwnQueue(self.topology, queue), prefetch)

    async def read(self, readable: ReadableQueue, prefetch: int, consumers: int = 1) -> Consumer:
        """Reads any queue, with at most `prefetch` unacknowledged deliveries for each of several
        consumers."""
        async with self._opening_consuming:
            if not self._consuming_opened:
                await self._consuming.open()
                self._consuming_opened = True
        consumer = Consumer(
            self._consuming, readable, prefetch, self._set_aside, self._log, consumers
        )
        self._consumers.append(consumer)
        return consumer

    async def declare(self, queue: str) -> int:
        """Ensures that one of our queues exists; returns how many messages wait in it."""
        channel = await self._publishing.channel()
        try:
            async with loss_is_broker_gone():
                declared = await self.topology.declare_queue(channel, queue)
                return declared.declaration_result.message_count or 0
        finally:
            await close_quietly(channel)

    async def depth(self, queue: str) -> int:
        """Counts the messages waiting in a queue, without those being processed; raises BrokerGone
        if that is unknown."""
        channel = await self._publishing.channel()
        try:
            async with loss_is_broker_gone():
                declared = await channel.declare_queue(self.topology.queue(queue), passive=True)
                return declared.declaration_result.message_count or 0
        except BrokerGone as error:
            if isinstance(error.__cause__, ChannelNotFoundEntity):
                return 0
            raise
        finally:
            await close_quietly(channel)

    async def _open_exits(self) -> _Exits:
        async with self._opening_exits:
            if self._exits is not None and not self._exits.channel.is_closed:
                await self._declare_again(self._exits)
                return self._exits
            self._exits = None
            channel = await self._publishing.channel()
            try:
                self._exits = await self._exits_of(channel)
            except BaseException:
                await close_quietly(channel)
                raise
            return self._exits

    async def _declare_again(self, exits: _Exits) -> None:
        """Declares the queues again after a message that no queue accepted: the queue or its
        binding was deleted."""
        if self._unrouted:
            self._unrouted = False
            async with loss_is_broker_gone():
                await self.topology.declare(exits.channel)

    async def _exits_of(self, channel: AbstractChannel) -> _Exits:
        async with loss_is_broker_gone():
            await self.topology.declare(channel)
            return _Exits(
                channel,
                await channel.get_exchange(self.topology.work_exchange, ensure=False),
                await channel.get_exchange(self.topology.dead_exchange, ensure=False),
            )

    async def _set_aside(
        self, message: AbstractIncomingMessage, headers: dict[str, Any]
    ) -> str | None:
        """Publishes a copy to the dead letters; returns None, or why it may not be there."""
        try:
            exits = await self._open_exits()
        except (BrokerGone, UserError) as error:
            return str(error)
        theirs = {key: value for key, value in message.headers.items() if key != COUNT_HEADER}
        copy = _persistent(message.message_id, message.body, {**theirs, **headers})
        return await self._send(exits.dead, DEAD_QUEUE, copy)

    async def _send(
        self, exchange: AbstractExchange, key: str, message: Message, mandatory: bool = True
    ) -> str | None:
        seconds = self._confirm_seconds
        try:
            await exchange.publish(message, key, mandatory=mandatory, timeout=seconds)
        except PublishError as error:
            self._unrouted = True
            return f"unroutable: no queue takes {key!r} from {exchange.name} ({reason_of(error)})"
        except DeliveryError as error:
            return f"the broker refused it: {error}"
        except TimeoutError:
            return f"not confirmed within {self._confirm_seconds:g} s"
        except asyncio.CancelledError:
            if is_cancelled():
                raise
            return "the connection was lost"
        except CONNECTION_EXCEPTIONS as error:
            return f"the connection was lost: {reason_of(error)}"
        except Exception as error:
            # A message that cannot be encoded, such as one with a header of an unsupported type;
            # the others of its batch are sent.
            return f"it cannot be sent: {type(error).__name__}: {error}"
        return None


async def open_broker(
    url: str,
    prefix: str,
    log: FilteringBoundLogger,
    *,
    confirm_seconds: float = CONFIRM_SECONDS,
    rng: random.Random | None = None,
) -> Broker:
    """Connects and declares. Waits, and logs it, while the broker cannot be reached."""
    broker = Broker(url, Topology(prefix), log, rng or system_random(), confirm_seconds)
    try:
        await broker.open()
    except BaseException:
        await broker.close()
        raise
    return broker


def _message(outgoing: Outgoing) -> Message:
    return _persistent(outgoing.message_id, outgoing.body, dict(outgoing.headers))


def _persistent(message_id: str | None, body: bytes, headers: dict[str, Any]) -> Message:
    return Message(
        body,
        headers=headers,
        content_type="application/json",
        delivery_mode=DeliveryMode.PERSISTENT,
        message_id=message_id,
        app_id="holdfast",
    )
