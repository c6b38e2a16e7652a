"""Turns from RabbitMQ: a message asks for a slice, and is acknowledged after it. Orders of other
programs are followed as they come, while slices run."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar

from holdfast.clock import Clock
from holdfast.engine.pace.lanes import LaneTurns
from holdfast.engine.patience import never, patiently
from holdfast.engine.turns import MayRun, Places, Turn
from holdfast.engine.walks import MOST_WALKS
from holdfast.errors import BadEnvelope, DatabaseGone, SwitchedOff, Throttled, UserError
from holdfast.messaging.broker import Broker
from holdfast.messaging.consumer import Consumer
from holdfast.messaging.delivery import Delivery
from holdfast.messaging.envelope import ItemsAdd, JobStart, Message, SliceBody, parse
from holdfast.messaging.item_adds import ItemAdds
from holdfast.messaging.job_starts import JobStarts
from holdfast.messaging.topology import DISCOVER_QUEUES, PROCESS_QUEUES, WORK_QUEUES
from holdfast.model import JobState, Lane, SliceKind
from holdfast.observe.metrics import Metrics
from holdfast.pipeline import Pipeline
from holdfast.store import Store, TurnJob
from holdfast.tasks import end_tasks, raise_failure

T = TypeVar("T")

_IDLE_SECONDS = 1.0
_ELSEWHERE_SECONDS = 2.0
_REFUSED_SECONDS = 30.0  # until a message is looked at again whose job cannot be made now
_PATIENCE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """With more items than `room`, another worker is called at once, if `owner_slices` allows."""

    room: int
    owner_slices: int | None
    max_message_bytes: int
    lost_seconds: float


@dataclass(frozen=True, slots=True)
class TurnParts:
    store: Store
    broker: Broker
    job_starts: JobStarts
    item_adds: ItemAdds
    clock: Clock
    rng: random.Random
    metrics: Metrics
    log: Any


class _Asked(NamedTuple):
    """A message that asks for a slice."""

    delivery: Delivery
    message: Message
    body: SliceBody

    @property
    def is_lost(self) -> bool:
        return self.delivery.is_lost


class BrokerTurns:
    listens = True

    def __init__(
        self,
        parts: TurnParts,
        limits: TurnLimits,
        pipelines: Mapping[str, Pipeline],
        may_run: MayRun,
    ) -> None:
        self._parts = parts
        self._messages = parts.store.messages
        self._clock = parts.clock
        self._metrics = parts.metrics
        self._limits = limits
        self._pipelines = pipelines
        self._may_run = may_run
        self._waiting: dict[str, deque[_Asked]] = {queue: deque() for queue in WORK_QUEUES}
        self._arrived = asyncio.Event()
        self._started = asyncio.Event()  # before, declared standing jobs may not be open
        self._walk_lanes = LaneTurns()
        self._slice_lanes = LaneTurns()
        self._heard: dict[int, None] = {}  # jobs with new items that no message announces
        self._heard_last = False  # they take turns with messages
        self._open: dict[Turn, Delivery] = {}
        self._consumers: list[Consumer] = []
        self._pumps: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        for queue in WORK_QUEUES:
            # One message at a time of items: the others are free for an idle worker.
            walks = queue in DISCOVER_QUEUES.values()
            prefetch = MOST_WALKS if walks else 1
            consumer = await self._parts.broker.consume(queue, prefetch)
            self._consumers.append(consumer)
            self._pumps.append(asyncio.create_task(self._pump(queue, consumer)))

    async def next(self, seconds: float, places: Places) -> Turn | None:
        self._started.set()
        raise_failure(pump for pump in self._pumps if pump.done())
        turn = None if self._heard_last else await self._next_heard()
        self._heard_last = turn is not None
        if turn is not None:
            return turn
        asked = await self._next_asked(seconds, places)
        if asked is None:
            return await self._next_heard()
        try:
            return await self._begin(*asked)
        except asyncio.CancelledError:
            await self._hand_back(asked.delivery, asked.message)
            raise

    def hear(self, job_id: int | None) -> None:
        if job_id is not None:
            self._heard[job_id] = None
            self._arrived.set()

    async def rest(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def others_wait(self, turn: Turn) -> bool:
        """The queue decides: the rest of this job waits there behind the others."""
        return True

    async def ended(self, turn: Turn, worked: bool) -> None:
        delivery = self._open.pop(turn, None)
        if delivery is not None:
            await self._end(delivery, turn.job_id, turn.kind, 0.0 if worked else _IDLE_SECONDS)
        elif turn.kind is SliceKind.PROCESS:
            await self._end_heard(turn.job_id)

    async def close(self) -> None:
        """Takes no more. What was delivered but not begun is announced or sent again, so that a
        worker which stops does not count as one that died over its message."""
        await end_tasks(self._pumps)
        stops = [consumer.stop(self._hand_back_unread) for consumer in self._consumers]
        await asyncio.gather(*stops)
        left = [asked for waiting in self._waiting.values() for asked in waiting]
        self._waiting = {queue: deque() for queue in WORK_QUEUES}
        await asyncio.gather(
            *(self._hand_back(each.delivery, each.message) for each in left if not each.is_lost)
        )

    # Deliveries.

    async def _pump(self, queue: str, consumer: Consumer) -> None:
        await self._started.wait()
        async for delivery in consumer:
            message = self._decode(delivery)
            if isinstance(message, BadEnvelope):
                await delivery.reject_to_dead(message.code, message.reason)
                self._count("unknown", "dead")
            elif isinstance(message.body, SliceBody):
                self._waiting[queue].append(_Asked(delivery, message, message.body))
                self._arrived.set()
            elif isinstance(message.body, JobStart | ItemsAdd):
                await self._follow(delivery, message, message.body)

    async def _next_asked(self, seconds: float, places: Places) -> _Asked | None:
        asked = self._pick(places)
        if asked is None and not self._heard:
            self._arrived.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._arrived.wait(), seconds)
            asked = self._pick(places)
        return asked

    def _pick(self, places: Places) -> _Asked | None:
        """A walk if there is a place for it, which takes no time here; else a slice of items."""
        walk = self._pick_of(DISCOVER_QUEUES, self._walk_lanes) if places.free else None
        return walk or self._pick_of(PROCESS_QUEUES, self._slice_lanes)

    def _pick_of(self, queues: Mapping[Lane, str], turns: LaneTurns) -> _Asked | None:
        while lanes := [lane for lane, queue in queues.items() if self._waiting[queue]]:
            chosen = turns.choose(lanes)
            queue = next(queues[lane] for lane in lanes if lane in chosen)
            asked = self._waiting[queue].popleft()
            if not asked.is_lost:
                return asked
        return None

    async def _next_heard(self) -> Turn | None:
        """Applications add records without a message: the database itself says so."""
        while self._heard:
            job_id = self._heard.popitem()[0]
            controls = await self._parts.store.reads.job_controls([job_id])
            state, switch = controls.get(job_id, (JobState.CANCELLED, None))
            job = await self._parts.store.reads.job(job_id) if state is JobState.RUNNING else None
            if job is None or switch or job.pipeline not in self._pipelines:
                continue
            if self._may_run(job_id, job.lane):
                return Turn(SliceKind.PROCESS, job_id)
        return None

    def _decode(self, delivery: Delivery) -> Message | BadEnvelope:
        try:
            return parse(delivery.body, self._limits.max_message_bytes)
        except BadEnvelope as error:
            return error

    # Slices.

    async def _begin(self, delivery: Delivery, message: Message, body: SliceBody) -> Turn | None:
        header, job_id, kind = message.header, body.job_id, body.kind
        job = await self._patiently(partial(self._begin_turn, message, body))
        if job is None or job.state is not JobState.RUNNING or job.switch:
            await self._obsolete(delivery, header.type)
            return None
        if job.pipeline not in self._pipelines:
            await self._pass_on(delivery, job_id, kind, job.pipeline)
            return None
        if not self._may_run(job_id, job.lane):
            await self._end(delivery, job_id, kind, _ELSEWHERE_SECONDS)
            return None
        turn = Turn(kind, job_id, message.tracing.traceparent)
        self._open[turn] = delivery
        self._count(header.type, "taken")
        waited = (self._clock.now() - header.created_at).total_seconds()
        self._metrics.slice_start_seconds.observe(max(0.0, waited))
        return turn

    async def _begin_turn(self, message: Message, body: SliceBody) -> TurnJob | None:
        return await self._messages.begin_turn(
            body.job_id,
            body.kind,
            message.header.message_id,
            self._limits.room,
            self._limits.owner_slices,
        )

    async def _patiently(
        self, action: Callable[[], Awaitable[T]], give_up: Callable[[], bool] = never
    ) -> T:
        """Waits for the database: to give the message back would count as a death."""
        return await patiently(action, self._parts.log, self._parts.rng, give_up=give_up)

    async def _obsolete(self, delivery: Delivery, type_: str) -> None:
        """The job is paused, cancelled, ended or deleted: there is nothing to do."""
        await delivery.ack()
        self._count(type_, "obsolete")

    async def _pass_on(
        self, delivery: Delivery, job_id: int, kind: SliceKind, pipeline: str
    ) -> None:
        """Another worker has the pipeline; if none has, a person has to know."""
        if await self._patiently(partial(self._is_elsewhere, pipeline)):
            await self._end(delivery, job_id, kind, _ELSEWHERE_SECONDS)
            return
        reason = f"no listening worker has the pipeline {pipeline!r}"
        await delivery.reject_to_dead("UNKNOWN_PIPELINE", reason)
        self._count(f"slice.{kind}", "dead")

    async def _end(
        self, delivery: Delivery, job_id: int, kind: SliceKind, least_seconds: float
    ) -> None:
        """Announces the rest, then acknowledges. If the database is away for too long, the message
        comes again instead."""
        deadline = self._clock.monotonic() + _PATIENCE_SECONDS
        frees_owner = self._limits.owner_slices is not None and not least_seconds
        end = partial(self._messages.end_turn, job_id, kind, least_seconds, frees_owner)
        try:
            await self._patiently(
                end, lambda: delivery.is_lost or self._clock.monotonic() >= deadline
            )
        except DatabaseGone:
            await delivery.give_back()
        else:
            await delivery.ack()

    async def _end_heard(self, job_id: int) -> None:
        """No message asked for the slice, so none would ask for the rest: retries, records for a
        later time, and what the slice had no time for."""
        deadline = self._clock.monotonic() + _PATIENCE_SECONDS
        end = partial(self._messages.end_turn, job_id, SliceKind.PROCESS)
        with suppress(DatabaseGone):  # the sweeper finds it
            await self._patiently(end, lambda: self._clock.monotonic() >= deadline)

    async def _hand_back_unread(self, delivery: Delivery) -> None:
        await self._hand_back(delivery, self._decode(delivery))

    async def _hand_back(self, delivery: Delivery, message: Message | BadEnvelope) -> None:
        if isinstance(message, Message):
            with suppress(DatabaseGone, TimeoutError):
                async with asyncio.timeout(_IDLE_SECONDS):
                    await self._leave_to_others(delivery, message)
                await delivery.ack()
                return
        await delivery.give_back()

    async def _leave_to_others(self, delivery: Delivery, message: Message) -> None:
        body = message.body
        if isinstance(body, SliceBody):
            await self._begin_turn(message, body)
            await self._messages.end_turn(body.job_id, body.kind)
        else:
            await self._send_on(delivery, message, 0.0)

    # What other programs order.

    async def _follow(
        self, delivery: Delivery, message: Message, request: JobStart | ItemsAdd
    ) -> None:
        try:
            outcome, settle = await self._carry_out(delivery, message, request)
        except asyncio.CancelledError:
            await self._hand_back(delivery, message)
            raise
        # If this is cancelled, it may be sent already: to give the message back as well would be
        # an error that closes the channel.
        await settle()
        self._count(message.header.type, outcome)

    async def _carry_out(
        self, delivery: Delivery, message: Message, request: JobStart | ItemsAdd
    ) -> tuple[str, Callable[[], Awaitable[None]]]:
        """The outcome, and how the message is settled after it."""
        try:
            if isinstance(request, ItemsAdd):
                await self._patiently(
                    partial(self._parts.item_adds.add, message, request, delivery.body)
                )
            elif await self._patiently(partial(self._is_elsewhere, request.pipeline)):
                await self._patiently(partial(self._send_on, delivery, message, _ELSEWHERE_SECONDS))
                return "put_off", delivery.ack
            else:
                await self._patiently(
                    partial(self._parts.job_starts.start, message, request, delivery.body)
                )
        except (SwitchedOff, Throttled) as refused:
            await self._put_off(delivery, message, refused)
            return "put_off", delivery.ack
        except Exception as error:
            # Including the unforeseen: a worker that died of it would pass it to the next one.
            text = error.message if isinstance(error, UserError) else ""
            reason = text or f"{type(error).__name__}: {error}"
            return "dead", partial(delivery.reject_to_dead, "REFUSED", reason)
        return "taken", delivery.ack

    async def _is_elsewhere(self, pipeline: str) -> bool:
        if pipeline in self._pipelines:
            return False
        return pipeline in await self._messages.listened_pipelines(self._limits.lost_seconds)

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

    def _count(self, type_: str, outcome: str) -> None:
        self._metrics.messages.labels(type_, outcome).inc()
