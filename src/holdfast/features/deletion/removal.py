"""Removes finished items of standing jobs, a chunk at a time, while workers run.

The job's row is locked during each chunk, as a reprocess and a decision lock it: an item is either
opened again or decided about before, and stays, or it is gone. Open items are never looked at. The
counters stay; how many items of each status are gone is written beside them, in the same
transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

import orjson

from holdfast.kernel.database.chunks import EARLIEST
from holdfast.kernel.database.driver import Row, Transaction
from holdfast.kernel.database.instants import parse_instant
from holdfast.kernel.database.rows import removed_of
from holdfast.kernel.jobs.audit import add_audit
from holdfast.model import ItemStatus

_CHUNK = 1_000
_BY = "retention"
_OF_ITEMS = ("remove_items", "remove_outcomes", "remove_attempts", "remove_item_letters")


@dataclass(frozen=True, slots=True)
class OldItems:
    """Items of a standing job that finished with one status more than `seconds` ago; those up to
    (`since`, `seq`) were seen before."""

    job_id: int
    status: ItemStatus
    seconds: float
    since: datetime = EARLIEST
    seq: int = 0


class Removed(NamedTuple):
    removed: int
    next: OldItems | None  # the next chunk; None at the end


async def remove_items(tx: Transaction, old: OldItems) -> Removed:
    """Removes the next chunk, with all that belongs to it."""
    jobs = await tx.fetch("hold_standing_job", {"job_id": old.job_id})
    if not jobs:
        return Removed(0, None)
    params = {"job_id": old.job_id, "status": old.status, "ago": -old.seconds, "limit": _CHUNK}
    rows = await tx.fetch("old_items", {**params, "since": old.since, "seq": old.seq})
    seqs = await _remove_keys(tx, old.job_id, rows)
    if seqs:
        for query in _OF_ITEMS:
            await tx.run(query, {"job_id": old.job_id, "seqs": seqs})
        removed = removed_of(jobs[0]["removed"])
        removed[old.status.value] = removed.get(old.status.value, 0) + len(seqs)
        noted = {"job_id": old.job_id, "removed": orjson.dumps(removed).decode()}
        await tx.run("note_removed", noted)
        await _audit(tx, old, sum(removed.values()))
    return Removed(len(seqs), _next(old, rows))


async def _remove_keys(tx: Transaction, job_id: int, rows: Sequence[Row]) -> list[int]:
    """Removes the keys; returns the items that can go.

    An item whose key an application's transaction is about to take stays for now: that may take
    long, and the job is locked."""
    seqs = sorted(row["seq"] for row in rows)
    keys = [row["key"] for row in rows if row["key"] is not None]
    if not keys:
        return seqs
    scopes = [row["scope"] for row in await tx.fetch("key_scopes")]
    params: dict[str, Any] = {"job_id": job_id, "keys": keys, "scopes": scopes}
    named = {row["seq"] for row in await tx.fetch("keys_of_items", {**params, "seqs": seqs})}
    held = {row["seq"] for row in await tx.fetch("hold_keys_of_items", {**params, "seqs": seqs})}
    if held:
        await tx.run("remove_keys", {**params, "seqs": sorted(held)})
    return [seq for seq in seqs if seq in held or seq not in named]


async def _audit(tx: Transaction, old: OldItems, total: int) -> None:
    """Adds an audit entry, once a day for each job."""
    if not await tx.fetch("removal_in_audit", {"job_id": old.job_id}):
        detail = {"older_than_days": old.seconds / 86_400, "removed_before_and_now": total}
        await add_audit(tx, _BY, "items.removed", old.job_id, "retention", detail)


def _next(old: OldItems, rows: Sequence[Row]) -> OldItems | None:
    if len(rows) < _CHUNK:
        return None
    since = parse_instant(rows[-1]["updated_at"]) or EARLIEST
    return replace(old, since=since, seq=rows[-1]["seq"])
