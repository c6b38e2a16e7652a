"""Adds records to a standing job: the one function behind request, command and message.

Applications add records in their own transaction instead; see `holdfast_client`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from holdfast.columns import BAD_ROW, Inputs, RowNames
from holdfast.errors import UnfitState, UserError
from holdfast.kernel import Store
from holdfast.kernel.arrivals.enqueue import Addition
from holdfast.kernel.arrivals.idempotency import Key, MessageKey
from holdfast.model import Job, JobState
from holdfast.pipeline import Pipeline
from holdfast_client.adding import Enqueued
from holdfast_client.records import RowKey, field_key, new_items, require_time


@dataclass(frozen=True, slots=True)
class Adding:
    store: Store
    pipelines: Mapping[str, Pipeline]
    max_input_bytes: int
    log: Any

    def addition(
        self, job: Job, rows: Iterable[Any], key: str | None = None, run_at: datetime | None = None
    ) -> Addition:
        """Returns the addition; refuses what the job cannot accept now.

        `key` names the field whose value is a record's key; otherwise the pipeline's own key
        counts, if it dedupes and is known here."""
        require_open(job)
        require_time(run_at)
        items = new_items(rows, self._key(job, key), self.max_input_bytes)
        return Addition(job.pipeline, job.owner_id, items, run_at, job.topic)

    async def add(
        self, addition: Addition, key: Key | None = None, most_items: int | None = None
    ) -> Enqueued:
        """Adds the records; returns after the commit.

        What was added before, under the same key of a message, counts as added. `most_items`: open
        items that the owner may have, including these."""
        enqueued = await self.store.additions.enqueue(addition, key, most_items)
        if enqueued is None:
            assert isinstance(key, MessageKey)
            self.log.info("message.repeated", message_id=key.key, type=key.kind)
            return Enqueued(0, len(addition.items), 0)
        fields = {"job_id": enqueued.job_id, "items": enqueued.accepted, "known": enqueued.known}
        self.log.debug("items.added", **fields)
        return enqueued

    def inputs(self, job: Job) -> Inputs:
        """Returns the fields that the job's pipeline reads; if it is not known here, those that it
        read when the job was opened."""
        pipeline = self.pipelines.get(job.pipeline)
        return job.reading.inputs if pipeline is None else pipeline.inputs

    def lacks_key(self, job: Job) -> bool:
        """Whether the job's pipeline dedupes, by a key that is not known here."""
        return job.reading.dedupe is not None and job.pipeline not in self.pipelines

    def _key(self, job: Job, name: str | None) -> RowKey | None:
        named = RowNames(None, self.inputs(job))
        if name is not None:
            return partial(_field_key, name, named)
        pipeline = self.pipelines.get(job.pipeline)
        if pipeline is not None and pipeline.dedupe is not None:
            return partial(_own_key, pipeline, named)
        return None


def added_words(accepted: int, known: int) -> str:
    records = "1 record" if accepted == 1 else f"{accepted:,} records"
    return f"{records} added, {known:,} already known."


def require_open(job: Job) -> None:
    """Refuses records for a job that does not accept any."""
    if not job.standing or job.state is JobState.CANCELLED:
        state = f"is {job.state}" if job.standing else "is not a standing job"
        raise UnfitState(
            f"job {job.id} {state} and accepts no records",
            f"Open a standing job: holdfast open {job.pipeline} (or FILE.py, if it is in a file)",
        )
    if job.reading.fed_by_consumers:
        raise UnfitState(
            f"job {job.id} accepts records only from the queues that {job.pipeline} reads",
            "Publish a message to one of them.",
        )


def _field_key(name: str, named: RowNames, row: Any) -> str | None:
    """Returns the value of a field of the pipeline, or of a column as the record names it.

    A row that could not be read has neither; it becomes an ERROR item."""
    if not isinstance(row, Mapping) or name in row:
        return field_key(row, name)
    return None if BAD_ROW in row else field_key(named(dict(row)), name)


def _own_key(pipeline: Pipeline, named: RowNames, row: Any) -> str | None:
    """Returns the key that the pipeline finds.

    Its code may fail on records that it has not seen before."""
    if not isinstance(row, Mapping):
        raise UserError(f"a record is not an object: {row!r:.80}")
    if BAD_ROW in row:
        return None
    try:
        return pipeline.key(named(dict(row)))
    except Exception as error:
        raise UserError(
            f"the pipeline finds no key in a record: {type(error).__name__}: {error}"[:300],
            "Name the field that is the key.",
        ) from error
