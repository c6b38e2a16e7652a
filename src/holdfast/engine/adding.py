"""Adding records to a standing job: the one function behind request, command and message.

Applications add records in their own transaction instead; see `holdfast.store.applications`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from holdfast.columns import BAD_ROW
from holdfast.errors import UnfitState, UserError
from holdfast.model import Job, JobState
from holdfast.pipeline import Pipeline
from holdfast.store import Store
from holdfast.store.enqueue import Addition, Enqueued, field_key, new_item, require_time
from holdfast.store.idempotency import RequestKey

#: An option of standing jobs to which only consumers of the pipeline add records.
FED_BY_CONSUMERS = "_fed_by_consumers"


@dataclass(frozen=True, slots=True)
class Records:
    """`key` names the field whose value is a record's key; otherwise the pipeline's own key counts,
    where it dedupes and is known here."""

    rows: Iterable[Any]
    key: str | None = None
    run_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Adding:
    store: Store
    pipelines: Mapping[str, Pipeline]
    max_input_bytes: int
    log: Any

    async def add(
        self,
        job: Job,
        records: Records,
        request: RequestKey | None = None,
        most_items: int | None = None,
    ) -> Enqueued:
        """Returns after the commit. `most_items`: open items that the owner may have then."""
        addition = self.addition(job, records)
        enqueued = await self.store.additions.enqueue(addition, request, most_items)
        self._log(enqueued)
        return enqueued

    async def add_once(self, job: Job, records: Records, message_id: str, kind: str) -> None:
        """The records of a message, in the transaction that records the message."""
        addition = self.addition(job, records)
        enqueued = await self.store.messages.accept_items(message_id, kind, addition)
        if enqueued is None:
            self.log.info("message.repeated", message_id=message_id, type=kind)
        else:
            self._log(enqueued)

    def addition(self, job: Job, records: Records) -> Addition:
        """Refuses what the job cannot accept now."""
        if not job.standing or job.state is JobState.CANCELLED:
            state = f"is {job.state}" if job.standing else "is not a standing job"
            raise UnfitState(
                f"job {job.id} {state} and accepts no records",
                f"Open a standing job: holdfast open {job.pipeline}",
            )
        if job.options.get(FED_BY_CONSUMERS):
            raise UnfitState(
                f"job {job.id} accepts records only from the queues that {job.pipeline} reads",
                "Publish a message to one of them.",
            )
        require_time(records.run_at)
        key = self._key(job, records)
        items = [new_item(row, key(row), self.max_input_bytes) for row in records.rows]
        return Addition(job.pipeline, job.owner_id, items, records.run_at, job.topic)

    def _key(self, job: Job, records: Records) -> Any:
        if records.key is not None:
            return partial(_field_key, records.key)
        pipeline = self.pipelines.get(job.pipeline)
        if pipeline is not None and pipeline.dedupe is not None:
            return partial(_own_key, pipeline)
        return lambda row: None

    def _log(self, enqueued: Enqueued) -> None:
        fields = {"job_id": enqueued.job_id, "items": enqueued.accepted, "known": enqueued.known}
        self.log.debug("items.added", **fields)


def _field_key(name: str, row: Any) -> str | None:
    """A row that could not be read has no field; it becomes an ERROR item."""
    is_bad = isinstance(row, Mapping) and BAD_ROW in row
    return None if is_bad else field_key(row, name)


def _own_key(pipeline: Pipeline, row: Any) -> str | None:
    """Its code has not seen records of strangers before: it may fail on them."""
    if not isinstance(row, Mapping):
        raise UserError(f"a record is not an object: {row!r:.80}")
    try:
        key = pipeline.key(dict(row))
    except Exception as error:
        raise UserError(
            f"the pipeline finds no key in a record: {type(error).__name__}: {error}"[:300],
            "Name the field that is the key.",
        ) from error
    if key is not None and not isinstance(key, str):
        raise UserError(f"the pipeline's key of a record is not text: {key!r:.80}")
    return key
