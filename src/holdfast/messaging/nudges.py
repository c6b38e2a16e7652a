"""Nudges: while a job has work, one message that says so is in the queue of its pipeline.

A worker holds it, unacknowledged, until the job has no more work; if the worker dies, RabbitMQ
gives it to another. So the length of the queue, ready and unacknowledged, is the number of jobs
with work, by which workers can be scaled. Workers find their work without it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from holdfast.clock import Clock
from holdfast.errors import BadEnvelope, BrokerGone
from holdfast.kernel import Store
from holdfast.kernel.outbox.nudges import Nudge
from holdfast.messaging.broker import Broker, Outgoing
from holdfast.messaging.consumer import Consumer
from holdfast.messaging.delivery import Delivery
from holdfast.messaging.envelope import JobWork, compose, dump, parse
from holdfast.messaging.topology import work_queue
from holdfast.observe.metrics import Metrics

#: How often a relay looks for jobs without a nudge, and a worker reports which ones it holds.
LOOK_SECONDS = 1.0
KEEP_SECONDS = 2.0
#: A nudge that no worker has held for this long, and that does not wait in its queue, is lost.
_LOST_SECONDS = 10.0
#: RabbitMQ closes a channel that does not acknowledge a message for half an hour.
_HOLD_SECONDS = 600.0


class NudgeSender:
    """Sends nudges in each relay. If there are several, one adds a nudge and sends it."""

    def __init__(
        self, store: Store, broker: Broker, backfill: bool, clock: Clock, metrics: Metrics
    ) -> None:
        """Takes as `backfill` whether workers may work on backfills."""
        self._nudges = store.nudges
        self._broker = broker
        self._backfill = backfill
        self._clock = clock
        self._metrics = metrics
        self._measured: set[str] = set()

    async def look(self) -> None:
        """Sends missing nudges. What cannot be sent now is later found to be lost."""
        with suppress(BrokerGone):
            await self._send(await self._nudges.add_nudges(self._backfill))
            await self._send_lost()
        self._measure(await self._nudges.counts())

    async def _send_lost(self) -> None:
        unseen = sorted(await self._nudges.unseen(_LOST_SECONDS), key=attrgetter("pipeline"))
        for pipeline, group in groupby(unseen, attrgetter("pipeline")):
            missing = list(group)
            if await self._broker.declare(work_queue(pipeline)) < len(missing):
                await self._send(await self._nudges.renew_nudges(missing))

    async def _send(self, nudges: Sequence[Nudge]) -> None:
        for pipeline in {nudge.pipeline for nudge in nudges}:
            await self._broker.declare(work_queue(pipeline))
        await self._broker.publish([self._outgoing(nudge) for nudge in nudges])

    def _outgoing(self, nudge: Nudge) -> Outgoing:
        message = compose(
            JobWork(job_id=nudge.job_id),
            message_id=nudge.message_id,
            correlation_id=f"job-{nudge.job_id}",
            created_at=self._clock.now(),
            max_attempts=1,
            job_id=nudge.job_id,
        )
        return Outgoing(work_queue(nudge.pipeline), nudge.message_id, dump(message))

    def _measure(self, counts: Mapping[str, int]) -> None:
        self._measured |= set(counts)
        for pipeline in self._measured:
            depth = self._metrics.broker_queue_depth.labels(work_queue(pipeline))
            depth.set(counts.get(pipeline, 0))


@dataclass(frozen=True, slots=True, eq=False)
class _Held:
    delivery: Delivery
    nudge: Nudge
    since: float


class HeldNudges:
    """The nudges that a worker holds, for all of its pipelines."""

    def __init__(self, store: Store, hear: Callable[[str], None], clock: Clock) -> None:
        """Takes as `hear` a function that is called with the number of a job that has work."""
        self._nudges = store.nudges
        self._hear = hear
        self._clock = clock
        self._held: list[_Held] = []

    async def take(self, consumer: Consumer) -> None:
        """Takes nudges until it is cancelled, or the consumer is stopped."""
        async for delivery in consumer:
            try:
                message = parse(delivery.body)
            except BadEnvelope as error:
                await delivery.reject_to_dead(error.code, error.reason)
                continue
            if not isinstance(message.body, JobWork):
                reason = f"{message.body.type} does not belong in the queue of a pipeline"
                await delivery.reject_to_dead("REFUSED", reason)
                continue
            nudge = Nudge(message.body.job_id, delivery.queue, message.header.message_id)
            self._held.append(_Held(delivery, nudge, self._clock.monotonic()))
            self._hear(str(nudge.job_id))

    async def keep(self) -> None:
        """Reports which nudges the worker holds, and acknowledges those whose job has no more
        work."""
        self._held = [held for held in self._held if not held.delivery.is_lost]
        if not self._held:
            return
        longest = self._clock.monotonic() - _HOLD_SECONDS
        present = [held.nudge for held in self._held if held.since > longest]
        ended = [held.nudge for held in self._held if held.since <= longest]
        looked_at = list(self._held)
        kept = await self._nudges.keep_nudges(present, ended)
        done = [held for held in looked_at if held.nudge.message_id not in kept]
        self._held = [held for held in self._held if held not in done]
        for held in done:
            await held.delivery.ack()
