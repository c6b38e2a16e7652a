"""Announces work: a row in the outbox, in the transaction that makes the work.

Where workers poll, nothing is written: they find the work by themselves.
"""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.model import SliceKind
from holdfast.store.driver import Transaction


async def announce(tx: Transaction, job_id: int, kind: SliceKind, delay: float = 0.0) -> None:
    """A relay makes a message of it, unless one for the same job and kind is still out."""
    if tx.announces:
        await tx.run("announce", {"job_id": job_id, "kind": kind, "delay": delay})


async def announce_all(tx: Transaction, job_ids: Iterable[int], kind: SliceKind) -> None:
    for job_id in sorted(set(job_ids)):
        await announce(tx, job_id, kind)
