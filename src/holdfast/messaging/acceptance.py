"""What becomes of a message of others: items of a standing job."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from holdfast.consumers import QueueConsumer, Topic
from holdfast.errors import UserError
from holdfast.kernel import NewJob, Store
from holdfast.kernel.arrivals.enqueue import Addition
from holdfast.kernel.arrivals.idempotency import MessageKey
from holdfast.kernel.record.pages import new_item
from holdfast.model import Record
from holdfast.pipeline import Pipeline, Tx

#: Takes what a message contains, in the transaction that remembers the message.
Fill = Callable[[Tx], Awaitable[Sequence[Record] | Topic | None]]


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Adds the records of one consumer's messages to a standing job of `pipeline`.

    `standing` is the job of the consumer's owner. Records that come with a topic are for the job of
    that topic, and of its owner if it names one; that job is opened by the first of them.
    """

    store: Store
    pipeline: Pipeline
    standing: NewJob
    max_input_bytes: int

    async def __call__(self, message_id: str | None, queue: str, fill: Fill) -> bool:
        """Takes a message in one transaction, once; False if it was taken before."""
        key = None if message_id is None else MessageKey(message_id, queue)
        addition = partial(self._addition, fill)
        return await self.store.additions.enqueue(addition, key) is not None

    async def _addition(self, fill: Fill, tx: Tx) -> Addition | None:
        result = await fill(tx) or ()
        topic = result if isinstance(result, Topic) else Topic("", result)
        items = [new_item(self.pipeline, record, self.max_input_bytes) for record in topic.records]
        if not items:
            return None
        job = self._job_of(topic)
        opens = job if isinstance(result, Topic) else None
        return Addition(job.pipeline, job.owner_id, items, topic=job.topic, opens=opens)

    def _job_of(self, topic: Topic) -> NewJob:
        return replace(
            self.standing,
            topic=topic.name,
            name=f"{self.standing.name} {topic.name}".strip(),
            owner_id=topic.owner or self.standing.owner_id,
        )


def pipeline_of(spec: QueueConsumer, own: Pipeline, pipelines: Mapping[str, Pipeline]) -> Pipeline:
    """Returns the loaded pipeline that the consumer's records are for; by default its own."""
    if spec.pipeline is None:
        return own
    if spec.pipeline not in pipelines:
        raise UserError(
            f"the consumer of {spec.queue} adds records to {spec.pipeline}, which is not loaded",
            f"Run the worker with both: holdfast work {own.name} {spec.pipeline}",
        )
    return pipelines[spec.pipeline]
