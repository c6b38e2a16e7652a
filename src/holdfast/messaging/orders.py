"""Follows orders of other programs: `job.start` starts a job, `items.add` adds records to a
standing one. A message is acknowledged after the commit of what it asks for."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from holdfast.errors import BadEnvelope, DatabaseGone, SwitchedOff, Throttled, UserError
from holdfast.kernel import Store
from holdfast.kernel.worker.patience import patiently
from holdfast.messaging.consumer import Consumer
from holdfast.messaging.delivery import Delivery
from holdfast.messaging.envelope import ItemsAdd, JobStart, Message, parse
from holdfast.messaging.item_adds import ItemAdds
from holdfast.messaging.job_starts import JobStarts
from holdfast.observe.metrics import Metrics
from holdfast.tasks import end_tasks

T = TypeVar("T")

_ELSEWHERE_SECONDS = 2.0
_REFUSED_SECONDS = 30.0  # how long until a message whose job cannot be created now is tried again
_HAND_BACK_SECONDS = 0.8


@dataclass(frozen=True, slots=True)
class OrderParts:
    store: Store
    job_starts: JobStarts
    item_adds: ItemAdds
    rng: random.Random
    metrics: Metrics
    log: Any


class Orders:
    def __init__(self, parts: OrderParts, pipelines: Collection[str]) -> None:
        """Takes the names of this worker's `pipelines`."""
        self._parts = parts
        self._messages = parts.store.messages
        self._pipelines = pipelines

    async def follow(self, consumer: Consumer) -> None:
        """Follows orders until it is cancelled, or its consumer is stopped; what is not followed by
        then is sent to the queue again."""
        tasks: set[asyncio.Task[None]] = set()
        try:
            async for delivery in consumer:
                task = asyncio.create_task(self._follow(delivery))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
        finally:
            await end_tasks(tasks)

    async def hand_back(self, delivery: Delivery) -> None:
        """Sends a message to the queue again: RabbitMQ counts what is given back as a delivery,
        although a worker that stops has not died from it."""
        with suppress(DatabaseGone, TimeoutError, BadEnvelope):
            message = parse(delivery.body)
            async with asyncio.timeout(_HAND_BACK_SECONDS):
                await self._send_on(delivery, message, 0.0)
            await delivery.ack()
            return
        await delivery.give_back()

    async def _follow(self, delivery: Delivery) -> None:
        try:
            kind, outcome, settle = await self._carry_out(delivery)
        except asyncio.CancelledError:
            await self.hand_back(delivery)
            raise
        # If this is cancelled, the message may have been sent already: giving it back as well would
        # be an error that closes the channel.
        await settle()
        self._parts.metrics.messages.labels(kind, outcome).inc()

    async def _carry_out(
        self, delivery: Delivery
    ) -> tuple[str, str, Callable[[], Awaitable[None]]]:
        """Returns the message's type, the outcome, and how the message is settled after it."""
        try:
            message = parse(delivery.body)
        except BadEnvelope as error:
            return "unknown", "dead", partial(delivery.reject_to_dead, error.code, error.reason)
        kind = message.header.type
        try:
            done = await self._obey(delivery, message)
        except (SwitchedOff, Throttled) as refused:
            await self._put_off(delivery, message, refused)
            done = False
        except Exception as error:
            # This includes unforeseen errors: a worker that died from one would pass it to the
            # next.
            text = error.message if isinstance(error, UserError) else ""
            reason = text or f"{type(error).__name__}: {error}"
            return kind, "dead", partial(delivery.reject_to_dead, "REFUSED", reason)
        return kind, "taken" if done else "put_off", delivery.ack

    async def _obey(self, delivery: Delivery, message: Message) -> bool:
        """Carries out an order; returns False if it is left to another worker."""
        body = message.body
        if isinstance(body, ItemsAdd):
            await self._patiently(partial(self._parts.item_adds.add, message, body, delivery.body))
        elif not isinstance(body, JobStart):
            raise UserError(f"{body.type} is not an order")
        elif await self._patiently(partial(self._is_elsewhere, body.pipeline)):
            await self._patiently(partial(self._send_on, delivery, message, _ELSEWHERE_SECONDS))
            return False
        else:
            await self._patiently(
                partial(self._parts.job_starts.start, message, body, delivery.body)
            )
        return True

    async def _patiently(self, action: Callable[[], Awaitable[T]]) -> T:
        """Waits for the database: giving the message back would count as a crash."""
        return await patiently(action, self._parts.log, self._parts.rng)

    async def _is_elsewhere(self, pipeline: str) -> bool:
        """Whether another worker has the pipeline, but this one does not."""
        if pipeline in self._pipelines:
            return False
        live = await self._parts.store.workers.live()
        return any(pipeline in worker["pipelines"] for worker in live)

    async def _put_off(self, delivery: Delivery, message: Message, refused: UserError) -> None:
        """Puts a message off if its job cannot be created now, but may be later: it waits in the
        outbox."""
        seconds = refused.seconds if isinstance(refused, Throttled) else _REFUSED_SECONDS
        self._parts.log.warning(
            "message.put_off",
            message_id=message.header.message_id,
            seconds=seconds,
            reason=refused.message,
        )
        await self._patiently(partial(self._send_on, delivery, message, seconds))

    async def _send_on(self, delivery: Delivery, message: Message, seconds: float) -> None:
        await self._messages.send_again(
            message.header.message_id, delivery.queue, delivery.body, seconds
        )
