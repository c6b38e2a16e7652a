"""Reads other programs' queues for the consumers of extensions.

A message is acknowledged after the commit of what it contains."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from aio_pika.abc import AbstractChannel

from holdfast.clock import Clock
from holdfast.consumers import BadMessage, Incoming, QueueConsumer
from holdfast.errors import (
    DatabaseGone,
    FilesGone,
    GateWait,
    NotAllowed,
    PipelineError,
    SwitchedOff,
    Throttled,
    UserError,
)
from holdfast.kernel.outbox.messages import Messages
from holdfast.kernel.worker.patience import backoff, patiently
from holdfast.messaging.acceptance import Fill
from holdfast.messaging.consumer import Consumer
from holdfast.messaging.delivery import Delivery
from holdfast.messaging.signing import MessageTrust
from holdfast.messaging.topology import Topology, is_own
from holdfast.observe.metrics import Metrics
from holdfast.tasks import end_tasks

#: How often a message that fails unexpectedly is tried, and the first and longest wait between
#: tries.
_TRIES = 4
_FIRST_SECONDS = 0.5
_LONGEST_SECONDS = 30.0
#: Errors that pass: the file store or the database is gone, a kill switch is on, too many items are
#: waiting.
_NOT_NOW = (FilesGone, GateWait, SwitchedOff, Throttled)

#: Takes a message in one transaction, once; returns False if it was taken before.
Accept = Callable[[str | None, str, Fill], Awaitable[bool]]
_RETURN_SECONDS = 0.8
_PLAIN = (str, int, float, bool)


@dataclass(frozen=True, slots=True)
class ForeignQueue:
    """A queue as its consumer declares it."""

    topology: Topology
    spec: QueueConsumer

    def __post_init__(self) -> None:
        if is_own(self.spec.queue) or self.spec.queue.startswith(f"{self.topology.prefix}."):
            raise PipelineError(
                f"the queue {self.spec.queue} is one of Holdfast's own",
                "Choose another name, or another HOLDFAST_QUEUE_PREFIX.",
            )

    @property
    def word(self) -> str:
        return self.spec.queue

    @property
    def name(self) -> str:
        return self.spec.queue

    async def declare(self, channel: AbstractChannel) -> None:
        await self.topology.declare(channel)  # for the dead letters
        if not self.spec.declares:
            await channel.get_queue(self.name, ensure=True)
            return
        queue = await self.topology.declare_foreign(channel, self.name)
        for binding in self.spec.bindings:
            if binding.kind is None:
                exchange = await channel.get_exchange(binding.exchange, ensure=True)
            else:
                exchange = await channel.declare_exchange(
                    binding.exchange, binding.kind, durable=True
                )
            await queue.bind(exchange, binding.routing_key)


@dataclass(frozen=True, slots=True)
class ForeignTrust:
    """What the consumers of extensions check messages with, see `Trust`."""

    trust: MessageTrust
    clock: Clock

    def __call__(
        self,
        message: Incoming,
        signature: str | None,
        owner: str | None,
        created_at: datetime | None,
    ) -> None:
        try:
            self._check(message.body, signature, owner, created_at)
        except NotAllowed as error:
            raise BadMessage(error.message, "NOT_ALLOWED") from None

    def _check(
        self, body: bytes, signature: str | None, owner: str | None, created_at: datetime | None
    ) -> None:
        self.trust.check(body, signature, owner)
        if signature is None:
            return
        if created_at is None:
            raise NotAllowed("the signed message does not say when it was created")
        self.trust.check_age(created_at, self.clock.now())


class ForeignConsumer:
    """Reads one queue: at most `prefetch` messages at once, each in its own transaction."""

    def __init__(
        self,
        spec: QueueConsumer,
        consumer: Consumer,
        accept: Accept,
        messages: Messages,
        metrics: Metrics,
        rng: random.Random,
        log: Any,
    ) -> None:
        self._messages = messages
        self._spec = spec
        self._consumer = consumer
        self._accept = accept
        self._metrics = metrics
        self._rng = rng
        self._log = log
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Reads until it is cancelled, or its consumer is stopped; what is not taken by then is
        sent to the queue again."""
        try:
            async for delivery in self._consumer:
                task = asyncio.create_task(self._take_or_return(delivery))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        finally:
            await end_tasks(self._tasks)

    async def _take_or_return(self, delivery: Delivery) -> None:
        try:
            await self._take(delivery)
        except asyncio.CancelledError:
            await self._return(delivery)
            raise

    async def _return(self, delivery: Delivery) -> None:
        """Returns a message at a stop.

        RabbitMQ counts the deliveries of a message, and sets it aside after three, but a stop is
        not a crash. In other programs' queues, which may count differently, it is simply left."""
        plain = all(isinstance(value, _PLAIN) for value in delivery.own_headers.values())
        if not (self._spec.declares and plain) or delivery.is_lost or delivery.is_settled:
            return
        with suppress(DatabaseGone, TimeoutError):
            async with asyncio.timeout(_RETURN_SECONDS):
                await self._messages.return_message(
                    delivery.message_id, delivery.queue, delivery.body, delivery.own_headers
                )
            await delivery.ack()

    async def _take(self, delivery: Delivery) -> None:
        """Takes a message; tries again here, because RabbitMQ would deliver a message that is given
        back at once."""
        waits = backoff(self._rng, _FIRST_SECONDS, _LONGEST_SECONDS)
        number = 0
        while number < _TRIES:
            number += 1
            try:
                await self._take_once(delivery)
                return
            except DatabaseGone:  # only if the delivery is lost: it will arrive again
                return
            except _NOT_NOW as wait:  # nothing is wrong with the message: it is held until then
                if delivery.is_lost:
                    return
                number, seconds = 0, next(waits)
                self._log_failed(str(wait), seconds)
            except BadMessage as bad:
                await self._set_aside(delivery, bad.code, bad.reason)
                return
            except Exception as error:
                text = error.message if isinstance(error, UserError) else str(error)
                reason = f"{type(error).__name__}: {text}"
                if number == _TRIES:
                    await self._set_aside(delivery, "FAILED", reason)
                    return
                seconds = next(waits)
                self._log_failed(reason, seconds)
            await asyncio.sleep(seconds)

    def _log_failed(self, reason: str, seconds: float) -> None:
        self._log.warning("message.failed", queue=self._spec.queue, error=reason, seconds=seconds)

    async def _take_once(self, delivery: Delivery) -> None:
        message = Incoming(
            self._spec.queue,
            delivery.body,
            delivery.headers,
            delivery.message_id,
            delivery.redelivered,
        )
        known = delivery.message_id and f"{self._spec.queue} {delivery.message_id}"
        spec = self._spec
        if spec.prepare is not None:
            message = replace(message, prepared=await spec.prepare(message))
        take = partial(self._accept, known or None, spec.queue, lambda tx: spec.take(tx, message))
        is_new = await patiently(take, self._log, self._rng, give_up=lambda: delivery.is_lost)
        await delivery.ack()
        self._metrics.messages.labels("foreign", "taken" if is_new else "repeated").inc()

    async def _set_aside(self, delivery: Delivery, code: str, reason: str) -> None:
        await delivery.reject_to_dead(code, reason)
        self._metrics.messages.labels("foreign", "dead").inc()
