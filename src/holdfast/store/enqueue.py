"""Adds records to a standing job, in whatever transaction it is given. Applications, requests,
commands, messages and consumers of queues all pass an `Addition`.

Nothing that another process needs is locked or updated: an application may hold its transaction
open for long. A cancel does not wait for it either; what is committed after it is removed by the
sweep.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple

import orjson

from holdfast.columns import BAD_ROW, NAMES, require_chosen_names
from holdfast.errors import NotThere, UnfitState, UserError
from holdfast.json_depth import DEEPEST, is_too_deep
from holdfast.reading import Dedupe, Reading, reading_of
from holdfast.store.admission import admit_records, hold_quota, within_items
from holdfast.store.counters import add_counts
from holdfast.store.database import Database, verb
from holdfast.store.driver import Transaction
from holdfast.store.idempotency import Key, is_first, note_made
from holdfast.store.instants import sqlite_instant
from holdfast.store.jobs import NewJob, open_job
from holdfast.store.keys import NewItem, NewItems, select_by_key
from holdfast.store.sequence import stretches, take_sequence
from holdfast.store.storable import storable_key

#: The name of a field whose value is a record's key, or a function that finds it.
RowKey = str | Callable[[Any], str | None]
#: The same limit as the setting HOLDFAST_MAX_INPUT_BYTES, which applications do not read.
MAX_INPUT_BYTES = 10 * 1024 * 1024


class Enqueued(NamedTuple):
    """How many records became items; `known` counts those that did not because their key is
    known."""

    job_id: int
    accepted: int
    known: int


@dataclass(frozen=True, slots=True)
class Addition:
    """Records for the standing job of a pipeline and topic: of one owner, or the only one that it
    has. With `opens`, that job is created if there is none."""

    pipeline: str
    owner: str  # "": any owner
    items: Sequence[NewItem]
    run_at: datetime | None = None
    topic: str = ""
    opens: NewJob | None = None

    @property
    def item_bytes(self) -> int:
        return sum(len(item.input) for item in self.items) // max(1, len(self.items))

    @property
    def has_keys(self) -> bool:
        return any(item.key is not None for item in self.items)

    @property
    def due(self) -> str | None:
        return None if self.run_at is None else sqlite_instant(self.run_at)


#: Decides in the transaction what to add; None adds nothing.
Fill = Callable[[Transaction], Awaitable[Addition | None]]


class Additions:
    """Adds records of requests and messages, whose transaction is ours."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def standing_job(self, pipeline: str, owner: str) -> int:
        """Returns the standing job of an owner, or the only one of the pipeline."""
        async with self._database.driver.reading() as tx:
            return (await _standing_job(tx, Addition(pipeline, owner, ())))[0]

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


async def enqueue(tx: Transaction, addition: Addition) -> Enqueued:
    if not addition.items:
        return Enqueued((await _standing_job(tx, addition))[0], 0, 0)
    write = _write_together if tx.writes_together and not addition.has_keys else _write_in_steps
    return await write(tx, addition)


async def _write_together(tx: Transaction, addition: Addition) -> Enqueued:
    params = {
        "pipeline": addition.pipeline,
        "owner": addition.owner,
        "topic": addition.topic,
        "inputs": f"[{','.join(item.input for item in addition.items)}]",
        "total": len(addition.items),
        "item_bytes": addition.item_bytes,
        "run_at": addition.due,
    }
    rows = await tx.take("enqueue", params)
    _require_one(addition, rows[0][0])
    return Enqueued(rows[0][1], len(addition.items), 0)


async def _write_in_steps(tx: Transaction, addition: Addition) -> Enqueued:
    job_id, reading, owner = await _standing_job(tx, addition)
    seqs = await take_sequence(tx, job_id, len(addition.items))
    dedupe = reading.dedupe or Dedupe(f"{addition.pipeline} of {owner}")
    new_items = await select_by_key(tx, job_id, seqs, addition.items, None, dedupe)
    if new_items.rows:
        await _add_items(tx, job_id, new_items, addition)
    await add_counts(tx, job_id, accepted=new_items.count, known=new_items.known)
    if new_items.rows and addition.run_at is None:
        await tx.run("notify_work", {"job_id": job_id})
    return Enqueued(job_id, new_items.count, new_items.known)


async def _add_items(tx: Transaction, job_id: int, new_items: NewItems, addition: Addition) -> None:
    rows = [(seq, item.key, item.input) for seq, item in new_items.rows]
    await tx.run("add_enqueued_items", {"job_id": job_id, "rows": orjson.dumps(rows).decode()})
    due, item_bytes = addition.due, addition.item_bytes
    for lo, hi in stretches(new_items.taken, [seq for seq, _ in new_items.rows]):
        span = {"job_id": job_id, "lo": lo, "hi": hi}
        await tx.run("add_enqueued_range", {**span, "run_at": due, "item_bytes": item_bytes})


async def _standing_job(tx: Transaction, addition: Addition) -> tuple[int, Reading, str]:
    """Returns its id, reading and owner."""
    target = {"pipeline": addition.pipeline, "owner": addition.owner, "topic": addition.topic}
    rows = await tx.scan("standing_jobs", target)
    _require_one(addition, len(rows))
    return int(rows[0][0]), reading_of(rows[0][1]), rows[0][2]


def _require_one(addition: Addition, jobs: int) -> None:
    if jobs > 1:
        raise UnfitState(
            f"several owners have a standing job of the pipeline {addition.pipeline}",
            "Name one of them: owner=...",
        )
    if not jobs:
        whose = f"{addition.owner} has no" if addition.owner else "there is no"
        by = f"HOLDFAST_OWNER={addition.owner} " if addition.owner else ""
        raise NotThere(
            f"{whose} standing job of the pipeline {addition.pipeline}",
            f"Open one: {by}holdfast open {addition.pipeline} (or FILE.py, if it is in a file)",
        )


def new_items(
    rows: Iterable[Any], key: RowKey | None = None, max_bytes: int = MAX_INPUT_BYTES
) -> list[NewItem]:
    """Converts rows to items.

    `key` names the field whose value is a record's key, or is a function that finds it."""
    if key is None:
        return [new_item(row, None, max_bytes) for row in rows]
    key_of = partial(field_key, name=key) if isinstance(key, str) else key
    return [new_item(row, _text_key(key_of(row)), max_bytes) for row in rows]


def _text_key(key: Any) -> str | None:
    if key is not None and not isinstance(key, str):
        raise UserError(f"the key of a record is not text: {key!r:.80}")
    return key


def new_item(row: Any, key: str | None = None, max_bytes: int = MAX_INPUT_BYTES) -> NewItem:
    """Converts a row to an item: JSON of a size and depth that every process can read."""
    if type(row) is not dict:
        if not isinstance(row, Mapping):
            raise UserError(f"a record is not an object: {row!r:.80}")
        row = dict(row)
    if NAMES in row and BAD_ROW not in row:
        require_chosen_names(row)
    try:
        encoded = orjson.dumps(row)
    except (TypeError, ValueError) as error:
        raise UserError(f"a record is not JSON: {error}") from error
    if len(encoded) > max_bytes:
        raise UserError(f"a record has {len(encoded):,} bytes; at most {max_bytes:,} are accepted")
    text = encoded.decode()
    if is_too_deep(text):
        raise UserError(f"a record nests deeper than {DEEPEST} levels")
    if key is None:
        return NewItem(text)
    return NewItem(text, storable_key(key), content_hash(encoded))


def require_time(run_at: datetime | None) -> None:
    """Refuses a time that no database can store."""
    if run_at is None:
        return
    if not isinstance(run_at, datetime) or run_at.tzinfo is None:
        raise UserError(
            "run_at has no time zone", "For example: 2026-03-01T06:00:00Z, or datetime.now(UTC)."
        )
    try:
        run_at.astimezone(UTC)
    except OverflowError:
        raise UserError("the time to run at is not between the years 1 and 9999") from None


def field_key(row: Any, name: str) -> str:
    """Returns the value of one field as the record's key."""
    value = row.get(name) if isinstance(row, Mapping) else None
    if value is None:
        raise UserError(f"a record has no {name!r}, which is the key")
    return str(value)


def content_hash(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:32]
