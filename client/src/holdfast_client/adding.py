"""Adds records to a standing job, in whatever transaction it is given.

Nothing that another process needs is locked or updated: an application may hold its transaction
open for long. A cancel does not wait for it either; what is committed after it is swept away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

import orjson

from holdfast_client.errors import NotThere, UnfitState
from holdfast_client.keys import Dedupe, NewItem, NewItems, select_by_key
from holdfast_client.sequence import stretches, take_sequence
from holdfast_client.transaction import Transaction


class Enqueued(NamedTuple):
    """`known`: records that became no item, because their key is known."""

    job_id: int
    accepted: int
    known: int


@dataclass(frozen=True, slots=True)
class Records:
    """Records for the standing job of a pipeline and topic: of one owner, or the only one that it
    has."""

    pipeline: str
    owner: str  # "": whichever
    items: Sequence[NewItem]
    run_at: datetime | None = None
    topic: str = ""

    @property
    def item_bytes(self) -> int:
        return sum(len(item.input) for item in self.items) // max(1, len(self.items))

    @property
    def has_keys(self) -> bool:
        return any(item.key is not None for item in self.items)

    @property
    def due(self) -> str | None:
        return None if self.run_at is None else instant_text(self.run_at)


def instant_text(value: datetime) -> str:
    """The instant as SQLite's columns hold it, so that texts compare like times."""
    utc = value.astimezone(UTC).replace(tzinfo=None)
    return f"{utc.isoformat(timespec='milliseconds')}Z"


async def enqueue(tx: Transaction, records: Records) -> Enqueued:
    if not records.items:
        return Enqueued((await standing_job(tx, records))[0], 0, 0)
    write = _write_together if tx.writes_together and not records.has_keys else _write_in_steps
    return await write(tx, records)


async def _write_together(tx: Transaction, records: Records) -> Enqueued:
    params = {
        "pipeline": records.pipeline,
        "owner": records.owner,
        "topic": records.topic,
        "inputs": f"[{','.join(item.input for item in records.items)}]",
        "total": len(records.items),
        "item_bytes": records.item_bytes,
        "run_at": records.due,
    }
    rows = await tx.take("enqueue", params)
    _require_one(records, rows[0][0])
    return Enqueued(rows[0][1], len(records.items), 0)


async def _write_in_steps(tx: Transaction, records: Records) -> Enqueued:
    job_id, reading, owner = await standing_job(tx, records)
    seqs = await take_sequence(tx, job_id, len(records.items))
    dedupe = Dedupe(**reading.get("dedupe") or {"scope": f"{records.pipeline} of {owner}"})
    new_items = await select_by_key(tx, job_id, seqs, records.items, None, dedupe)
    if new_items.rows:
        await _add_items(tx, job_id, new_items, records)
    counts = {"accepted": new_items.count, "known": new_items.known}
    await tx.run("count_added", {"job_id": job_id, **counts})
    if new_items.rows and records.run_at is None:
        await tx.run("notify_work", {"job_id": job_id})
    return Enqueued(job_id, new_items.count, new_items.known)


async def _add_items(tx: Transaction, job_id: int, new_items: NewItems, records: Records) -> None:
    rows = [(seq, item.key, item.input) for seq, item in new_items.rows]
    await tx.run("add_enqueued_items", {"job_id": job_id, "rows": orjson.dumps(rows).decode()})
    due, item_bytes = records.due, records.item_bytes
    for lo, hi in stretches(new_items.taken, [seq for seq, _ in new_items.rows]):
        span = {"job_id": job_id, "lo": lo, "hi": hi}
        await tx.run("add_enqueued_range", {**span, "run_at": due, "item_bytes": item_bytes})


async def standing_job(tx: Transaction, records: Records) -> tuple[int, Mapping[str, Any], str]:
    """Returns its id, how its records are read, and its owner."""
    target = {"pipeline": records.pipeline, "owner": records.owner, "topic": records.topic}
    rows = await tx.scan("standing_jobs", target)
    _require_one(records, len(rows))
    return int(rows[0][0]), orjson.loads(rows[0][1]), rows[0][2]


def _require_one(records: Records, jobs: int) -> None:
    if jobs > 1:
        raise UnfitState(
            f"several owners have a standing job of the pipeline {records.pipeline}",
            "Name one of them: owner=...",
        )
    if not jobs:
        whose = f"{records.owner} has no" if records.owner else "there is no"
        by = f"HOLDFAST_OWNER={records.owner} " if records.owner else ""
        raise NotThere(
            f"{whose} standing job of the pipeline {records.pipeline}",
            f"Open one: {by}holdfast open {records.pipeline} (or FILE.py, if it is in a file)",
        )
