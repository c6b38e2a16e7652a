"""Adds records to a standing job, in the transaction of what brings them."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.errors import UnfitState
from holdfast.model import JobState, SliceKind
from holdfast.pipeline import Dedupe
from holdfast.store.announcements import announce
from holdfast.store.counters import add_counts
from holdfast.store.driver import Transaction
from holdfast.store.ingest import IngestPage, NewItem, add_items, select_items


async def add_records(
    tx: Transaction, pipeline: str, owner: str, items: Sequence[NewItem], dedupe: Dedupe | None
) -> int:
    """Returns the job that accepted them."""
    rows = await tx.fetch("standing_job", {"pipeline": pipeline, "owner_id": owner})
    if not rows:
        raise UnfitState(
            f"{owner} has no standing job of {pipeline}",
            f"Open it with `holdfast open {pipeline}`, or set standing = True in the pipeline.",
        )
    job_id = int(rows[0][0])
    state = (await tx.fetch("share_job", {"job_id": job_id}))[0]["state"]
    if state not in (JobState.RUNNING, JobState.PAUSED):
        raise UnfitState(f"the standing job {job_id} of {pipeline} is {state}")
    count = {"job_id": job_id, "count": len(items)}
    first_seq = (await tx.take("take_sequence", count))[0]["first_seq"]
    page = IngestPage(items, None, False)
    new_items = await select_items(tx, job_id, first_seq, page, None, dedupe)
    await add_items(tx, job_id, new_items)
    await add_counts(tx, job_id, accepted=new_items.count, known=new_items.known)
    if new_items.count:
        await announce(tx, job_id, SliceKind.PROCESS)
    return job_id
