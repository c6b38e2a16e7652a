"""Orders of other programs: `job.start` makes a job, `items.add` adds records to a standing one. A
message is acknowledged after the commit of what it asks for."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from holdfast.engine.patience import patiently
from holdfast.errors import BadEnvelope, DatabaseGone, SwitchedOff, Throttled, UserError
from holdfast.messaging.consumer import Consumer
from holdfast.messaging.delivery import Delivery
from holdfast.messaging.envelope import ItemsAdd, JobStart, Message, parse
from holdfast.messaging.item_adds import ItemAdds
from holdfast.messaging.job_starts import JobStarts
from holdfast.observe.metrics import Metrics
from holdfast.store import Store
from holdfast.tasks import end_tasks

T = TypeVar("T")

_ELSEWHERE_SECONDS = 2.0
_REFUSED_SECONDS = 30.0  # until a message is looked at again whose job cannot be made now
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
    def __init__(
        self, parts: OrderParts, pipelines: Collection[str], max_message_bytes: int
    ) -> None:
        """`pipelines` are those of this worker."""
        self._parts = parts
        self._messages = parts.store.messages
        self._pipelines = pipelines
        self._max_bytes = max_message_bytes

    async def follow(self, consumer: Consumer) -> None:
        """Until it is cancelled, or its consumer is stopped; what is not followed by then is sent
        to the queue again."""
        tasks: set[asyncio.Task[None]] = set()
        try:
            async for delivery in consumer:
                task = asyncio.create_task(self._follow(delivery))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
        finally:
            await end_tasks(tasks)

    async def hand_back(self, delivery: Delivery) -> None:
        """Sends a message to the queue again: RabbitMQ counts what is given back as a delivery, and
        a worker that stops has not died over it."""
        with suppress(DatabaseGone, TimeoutError, BadEnvelope):
            message = parse(delivery.body, self._max_bytes)
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
        # If this is cancelled, it may be sent already: to give the message back as well would be
        # an error that closes the channel.
        await settle()
        self._parts.metrics.messages.labels(kind, outcome).inc()

    async def _carry_out(
        self, delivery: Delivery
    ) -> tuple[str, str, Callable[[], Awaitable[None]]]:
        """The message's type, the outcome, and how the message is settled after it."""
        try:
            message = parse(delivery.body, self._max_bytes)
        except BadEnvelope as error:
            return "unknown", "dead", partial(delivery.reject_to_dead, error.code, error.reason)
        kind = message.header.type
        try:
            done = await self._obey(delivery, message)
        except (SwitchedOff, Throttled) as refused:
            await self._put_off(delivery, message, refused)
            done = False
        except Exception as error:
            # Including the unforeseen: a worker that died of it would pass it to the next one.
            text = error.message if isinstance(error, UserError) else ""
            reason = text or f"{type(error).__name__}: {error}"
            return kind, "dead", partial(delivery.reject_to_dead, "REFUSED", reason)
        return kind, "taken" if done else "put_off", delivery.ack

    async def _obey(self, delivery: Delivery, message: Message) -> bool:
        """False if it is left to another worker."""
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
        """Waits for the database: to give the message back would count as a death."""
        return await patiently(action, self._parts.log, self._parts.rng)

    async def _is_elsewhere(self, pipeline: str) -> bool:
        """Whether another worker has the pipeline, but this one has not."""
        if pipeline in self._pipelines:
            return False
        live = await self._parts.store.workers.live()
        return any(pipeline in worker["pipelines"] for worker in live)

    async def _put_off(self, delivery: Delivery, message: Message, refused: UserError) -> None:
        """The job cannot be made now, but may be later: the message waits in the outbox."""
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
