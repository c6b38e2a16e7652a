"""Turns from RabbitMQ: a message asks for a slice, and is acknowledged after it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from holdfast.clock import Clock
from holdfast.engine.turns import WALKS, MayRun, Turn
from holdfast.errors import BadEnvelope, DatabaseGone, UserError
from holdfast.messaging.broker import Broker
from holdfast.messaging.consumer import Consumer
from holdfast.messaging.delivery import Delivery
from holdfast.messaging.envelope import (
    Envelope,
    JobStart,
    SliceDiscover,
    SliceProcess,
    body_of,
    parse,
)
from holdfast.messaging.orders import Orders
from holdfast.model import JobState, SliceKind
from holdfast.observe.metrics import Metrics
from holdfast.pipeline import Pipeline
from holdfast.store import Store
from holdfast.tasks import end_tasks

T = TypeVar("T")

#: One message of each kind of work at a time: what waits is free for an idle worker.
_PREFETCH = {"interactive": 1, "discover": WALKS, "bulk": 1}
_ORDER = tuple(_PREFETCH)
_EVERY_OTHER_WAY = 4
_IDLE_SECONDS = 1.0
_ELSEWHERE_SECONDS = 2.0
_GONE_SECONDS = 0.5
_PATIENCE_SECONDS = 30.0


class BrokerTurns:
    listens = True

    def __init__(
        self,
        store: Store,
        broker: Broker,
        orders: Orders,
        pipelines: Mapping[str, Pipeline],
        may_run: MayRun,
        room: int,
        owner_slices: int | None,
        max_message_bytes: int,
        lost_seconds: float,
        clock: Clock,
        metrics: Metrics,
        log: Any,
    ) -> None:
        """`room`: with more items than these, another worker is called in at once, as far as
        `owner_slices` allows."""
        self._store = store
        self._broker = broker
        self._orders = orders
        self._pipelines = pipelines
        self._may_run = may_run
        self._room = room
        self._owner_slices = owner_slices
        self._max_message_bytes = max_message_bytes
        self._lost_seconds = lost_seconds
        self._clock = clock
        self._metrics = metrics
        self._log = log
        self._waiting: dict[str, deque[Delivery]] = {queue: deque() for queue in _ORDER}
        self._arrived = asyncio.Event()
        self._picks = 0
        self._open: dict[Turn, Delivery] = {}
        self._consumers: list[Consumer] = []
        self._pumps: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        for queue, prefetch in _PREFETCH.items():
            consumer = await self._broker.consume(queue, prefetch)
            self._consumers.append(consumer)
            self._pumps.append(asyncio.create_task(self._pump(queue, consumer)))

    async def next(self, seconds: float, walking: Collection[int]) -> Turn | None:
        delivery = await self._next_delivery(seconds)
        if delivery is None:
            return None
        try:
            return await self._follow(delivery, walking)
        except asyncio.CancelledError:
            await self._hand_back(delivery)
            raise

    async def others_wait(self, turn: Turn) -> bool:
        """The queue decides: what is left of this job waits there behind the others."""
        return True

    async def ended(self, turn: Turn, worked: bool) -> None:
        delivery = self._open.pop(turn, None)
        if delivery is not None:
            await self._end(delivery, turn.job_id, turn.kind, 0.0 if worked else _IDLE_SECONDS)

    async def close(self) -> None:
        """Takes no more. What was delivered and not begun is announced anew, so that stopping a
        worker does not count as one that died over its message."""
        await end_tasks(self._pumps)
        await asyncio.gather(*(one.stop(self._hand_back) for one in self._consumers))
        left = [delivery for waiting in self._waiting.values() for delivery in waiting]
        self._waiting = {queue: deque() for queue in _ORDER}
        await asyncio.gather(*(self._hand_back(one) for one in left if not one.is_lost))

    # Deliveries.

    async def _pump(self, queue: str, consumer: Consumer) -> None:
        async for delivery in consumer:
            self._waiting[queue].append(delivery)
            self._arrived.set()

    async def _next_delivery(self, seconds: float) -> Delivery | None:
        if not any(self._waiting.values()):
            self._arrived.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._arrived.wait(), seconds)
        while queue := self._pick():
            delivery = self._waiting[queue].popleft()
            if not delivery.is_lost:
                return delivery
        return None

    def _pick(self) -> str | None:
        """Interactive work first, but never so that bulk work starves."""
        self._picks += 1
        order = _ORDER if self._picks % _EVERY_OTHER_WAY else _ORDER[::-1]
        return next((queue for queue in order if self._waiting[queue]), None)

    async def _follow(self, delivery: Delivery, walking: Collection[int]) -> Turn | None:
        try:
            envelope = parse(delivery.body, self._max_message_bytes)
            body = body_of(envelope)
        except BadEnvelope as error:
            await delivery.reject_to_dead(error.code, error.reason)
            self._count("unknown", "dead")
            return None
        if isinstance(body, JobStart):
            await self._start_job(delivery, envelope, body)
            return None
        assert isinstance(body, SliceProcess | SliceDiscover)
        kind = SliceKind.PROCESS if isinstance(body, SliceProcess) else SliceKind.DISCOVER
        return await self._begin(delivery, envelope, body.job_id, kind, walking)

    # Slices.

    async def _begin(
        self,
        delivery: Delivery,
        envelope: Envelope,
        job_id: int,
        kind: SliceKind,
        walking: Collection[int],
    ) -> Turn | None:
        header = envelope.header
        job = await self._once_there(
            lambda: self._store.messages.begin_turn(
                job_id, kind, header.message_id, self._room, self._owner_slices
            )
        )
        if job is None or job.state is not JobState.RUNNING or job.switch:
            await self._obsolete(delivery, header.type)
            return None
        if job.pipeline not in self._pipelines:
            await self._pass_on(delivery, job_id, kind, job.pipeline)
            return None
        if not self._may_run(job_id, job.lane):
            await self._end(delivery, job_id, kind, _ELSEWHERE_SECONDS)
            return None
        if kind is SliceKind.DISCOVER and job_id in walking:
            await self._obsolete(delivery, header.type)
            return None
        turn = Turn(kind, job_id, envelope.tracing.traceparent)
        self._open[turn] = delivery
        self._count(header.type, "taken")
        waited = (self._clock.now() - header.created_at).total_seconds()
        self._metrics.slice_start_seconds.observe(max(0.0, waited))
        return turn

    async def _once_there(self, action: Callable[[], Awaitable[T]]) -> T:
        """Waits for a database that is gone: to give the message back would count as a death."""
        while True:
            try:
                return await action()
            except DatabaseGone as error:
                self._log.warning("database.gone", error=str(error))
                await asyncio.sleep(_GONE_SECONDS)

    async def _obsolete(self, delivery: Delivery, type_: str) -> None:
        """The job is paused, cancelled, ended or gone: nothing is left to be done."""
        await delivery.ack()
        self._count(type_, "obsolete")

    async def _pass_on(
        self, delivery: Delivery, job_id: int, kind: SliceKind, pipeline: str
    ) -> None:
        """Another worker has the pipeline; where none has, a person has to know."""
        if await self._once_there(lambda: self._is_elsewhere(pipeline)):
            await self._end(delivery, job_id, kind, _ELSEWHERE_SECONDS)
            return
        reason = f"no worker that listens has the pipeline {pipeline!r}"
        await delivery.reject_to_dead("UNKNOWN_PIPELINE", reason)
        self._count(f"slice.{kind}", "dead")

    async def _end(
        self, delivery: Delivery, job_id: int, kind: SliceKind, least_seconds: float
    ) -> None:
        """Announces the rest, then acknowledges; with no database in time, it comes again."""
        deadline = self._clock.monotonic() + _PATIENCE_SECONDS
        while self._clock.monotonic() < deadline and not delivery.is_lost:
            try:
                frees_owner = self._owner_slices is not None and not least_seconds
                await self._store.messages.end_turn(job_id, kind, least_seconds, frees_owner)
                await delivery.ack()
                return
            except DatabaseGone as error:
                self._log.warning("database.gone", error=str(error))
                await asyncio.sleep(_GONE_SECONDS)
        await delivery.give_back()

    async def _hand_back(self, delivery: Delivery) -> None:
        try:
            envelope = parse(delivery.body, self._max_message_bytes)
            body = body_of(envelope)
            if isinstance(body, SliceProcess | SliceDiscover):
                process = isinstance(body, SliceProcess)
                kind = SliceKind.PROCESS if process else SliceKind.DISCOVER
                messages = self._store.messages
                async with asyncio.timeout(_IDLE_SECONDS):
                    await messages.begin_turn(
                        body.job_id,
                        kind,
                        envelope.header.message_id,
                        self._room,
                        self._owner_slices,
                    )
                    await messages.end_turn(body.job_id, kind)
                await delivery.ack()
                return
        except (BadEnvelope, DatabaseGone, TimeoutError):
            pass
        await delivery.give_back()

    # Orders.

    async def _start_job(self, delivery: Delivery, envelope: Envelope, body: JobStart) -> None:
        type_ = envelope.header.type
        try:
            if await self._once_there(lambda: self._is_elsewhere(body.pipeline)):
                await self._once_there(lambda: self._send_on(delivery, envelope))
                await delivery.ack()
                return
            await self._once_there(lambda: self._orders.start(envelope, body))
        except Exception as error:
            # Also what nobody foresaw: to die of it would bring the order to the next worker.
            told = error.message if isinstance(error, UserError) else ""
            reason = told or f"{type(error).__name__}: {error}"
            await delivery.reject_to_dead("REFUSED", reason)
            self._count(type_, "dead")
            return
        await delivery.ack()
        self._count(type_, "taken")

    async def _is_elsewhere(self, pipeline: str) -> bool:
        if pipeline in self._pipelines:
            return False
        return pipeline in await self._store.messages.listened_pipelines(self._lost_seconds)

    async def _send_on(self, delivery: Delivery, envelope: Envelope) -> None:
        await self._store.messages.send_again(
            envelope.header.message_id, delivery.queue, delivery.body, _ELSEWHERE_SECONDS
        )

    def _count(self, type_: str, outcome: str) -> None:
        self._metrics.messages.labels(type_, outcome).inc()
