"""Adds records of requests, commands, messages and consumers of queues to a standing job.

The steps are those of applications, in `holdfast_client.adding`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from holdfast.kernel.arrivals.idempotency import Key, is_first, note_made
from holdfast.kernel.database.database import Database, verb
from holdfast.kernel.database.driver import Transaction
from holdfast.kernel.jobs.admission import admit_records, hold_quota, within_items
from holdfast.kernel.jobs.jobs import NewJob, open_job
from holdfast_client.adding import Enqueued, Records, enqueue, standing_job


@dataclass(frozen=True, slots=True)
class Addition(Records):
    """Adds `opens` to records: the standing job that is made if there is none."""

    opens: NewJob | None = None


#: Decides in the transaction what to add; None adds nothing.
Fill = Callable[[Transaction], Awaitable[Addition | None]]


class Additions:
    """Adds records of requests and messages, whose transaction is ours."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def standing_job(self, pipeline: str, owner: str) -> int:
        """Returns the standing job of an owner, or the only one of the pipeline."""
        async with self._database.driver.reading() as tx:
            return (await standing_job(tx, Records(pipeline, owner, ())))[0]

    @verb
    async def enqueue(
        self,
        tx: Transaction,
        addition: Addition | Fill,
        key: Key | None = None,
        most_items: int | None = None,
    ) -> Enqueued | None:
        """Adds the records; returns None if the message with this key was taken before.

        `most_items`: open items that the owner may have, including these."""
        if not await is_first(tx, key):
            return None
        if not isinstance(addition, Addition):
            filled = await addition(tx)
            if filled is None:
                await note_made(tx, key, 0)
                return Enqueued(0, 0, 0)
            addition = filled
        await admit_records(tx, addition.pipeline)
        if addition.opens is not None:
            await open_job(tx, addition.opens, addition.owner)
        if most_items is not None:
            await hold_quota(tx, addition.owner)
        enqueued = await enqueue(tx, addition)
        if most_items is not None:
            await within_items(tx, addition.owner, most_items)
        await note_made(tx, key, enqueued.job_id)
        return enqueued
