"""Decides by keys which arriving records become items, and which are known already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import orjson

from holdfast_client.transaction import Transaction

_OPEN = (None, "PENDING")
_LIVE = ("QUEUED", "RUNNING", "PAUSED")


@dataclass(frozen=True, slots=True)
class Dedupe:
    """Identity across jobs: a record whose key is known does not become a new item.

    `changed` and `failed` decide what happens to a known key whose content differs, or whose
    item did not end as DONE: "again" creates a new item, "skip" only counts it.
    """

    scope: str
    changed: str = "again"
    failed: str = "again"


class NewItem(NamedTuple):
    """A record before it becomes a row.

    `key` and `content_hash` matter if keys are deduped; an empty hash means that the content did
    not change."""

    input: str
    key: str | None = None
    content_hash: str = ""


@dataclass(slots=True)
class NewItems:
    """The rows of a page that become items, and how much of the page they use up."""

    rows: list[tuple[int, NewItem]]
    known: int
    consumed: int
    taken: Sequence[int] = ()  # the numbers that were taken for the page
    inputs: Sequence[str] = ()  # used instead of rows, with the first of these numbers

    @property
    def count(self) -> int:
        return len(self.rows) + len(self.inputs)


_ByKey = dict[str, tuple[int, NewItem]]


class _KeyOwner(NamedTuple):
    """The item that a key belongs to."""

    content_hash: str
    job_id: int
    seq: int
    job_state: str | None
    status: str | None


async def select_by_key(
    tx: Transaction,
    job_id: int,
    seqs: Sequence[int],
    items: Sequence[NewItem],
    room: int | None,
    dedupe: Dedupe,
) -> NewItems:
    known = await known_keys(tx, dedupe, items)
    new_items = NewItems([], 0, 0, seqs)
    seen: set[str] = set()
    while True:
        new, again = _pick(new_items, seen, items, room, known, dedupe)
        others = await take_keys(tx, job_id, new_items, _Keys(new, again, known), dedupe)
        # Keys that another transaction took leave room for more of the page.
        if not others or new_items.consumed == len(items):
            break
    new_items.rows.sort()
    return new_items


class _Keys(NamedTuple):
    """Keys to be taken: new ones, and known ones that a newer item gets."""

    new: _ByKey
    again: _ByKey
    known: dict[str, _KeyOwner]


async def take_keys(
    tx: Transaction, job_id: int, new_items: NewItems, keys: _Keys, dedupe: Dedupe
) -> int:
    """Takes the keys; returns how many turned out to be another's.

    Whatever another transaction did to a key since it was read is committed by now and decides: the
    key may have other content, or be deleted."""
    others = 0
    while keys.new or keys.again:
        ours = await add_keys(tx, job_id, dedupe, keys.new)
        ours |= await move_keys(tx, job_id, dedupe, keys.again, keys.known)
        wanted = keys.new | keys.again
        new_items.rows += [row for key, row in wanted.items() if key in ours]
        lost = {key: row for key, row in wanted.items() if key not in ours}
        if not lost:
            break
        known = await known_keys(tx, dedupe, [item for _, item in lost.values()])
        theirs = {key: row for key, row in lost.items() if key in known}
        new = {key: row for key, row in lost.items() if key not in known}
        again = {key: row for key, row in theirs.items() if takes_again(known[key], row[1], dedupe)}
        keys = _Keys(new, again, known)
        others += len(theirs) - len(again)
    new_items.known += others
    return others


def _pick(
    new_items: NewItems,
    seen: set[str],
    items: Sequence[NewItem],
    room: int | None,
    known: dict[str, _KeyOwner],
    dedupe: Dedupe,
) -> tuple[_ByKey, _ByKey]:
    """Continues through the page until the room is used up. Returns the keys that are new and those
    to be ingested again."""
    new: _ByKey = {}
    again: _ByKey = {}
    start = new_items.consumed
    for seq, item in zip(new_items.taken[start:], items[start:], strict=False):
        if room is not None and len(new) + len(again) + len(new_items.rows) >= room:
            break
        new_items.consumed += 1
        if item.key is None:
            new_items.rows.append((seq, item))
        elif item.key in seen:
            new_items.known += 1
        elif item.key not in known:
            new[item.key] = (seq, item)
        elif takes_again(known[item.key], item, dedupe):
            again[item.key] = (seq, item)
        else:
            new_items.known += 1
        if item.key is not None:
            seen.add(item.key)
    return new, again


async def known_keys(
    tx: Transaction, dedupe: Dedupe, items: Sequence[NewItem]
) -> dict[str, _KeyOwner]:
    keys = sorted({item.key for item in items if item.key is not None})
    # By position: one row for each record of a page.
    rows = await tx.scan("known_keys", {"scope": dedupe.scope, "keys": keys})
    return {row[0]: _KeyOwner(*row[1:]) for row in rows}


def takes_again(known: _KeyOwner, item: NewItem, dedupe: Dedupe) -> bool:
    """Whether a known key is ingested again.

    It is skipped while its item is DONE, or open in a live job, with the same content; otherwise
    the pipeline's policy decides."""
    is_open, is_live = known.status in _OPEN, known.job_state in _LIVE
    settled_well = known.status == "DONE" or (is_open and is_live)
    if settled_well and item.content_hash in ("", known.content_hash):
        return False
    policy = dedupe.changed if settled_well else dedupe.failed
    return policy == "again"


async def add_keys(tx: Transaction, job_id: int, dedupe: Dedupe, new: _ByKey) -> set[str]:
    if not new:
        return set()
    rows = [(key, item.content_hash, seq) for key, (seq, item) in sorted(new.items())]
    params = {"scope": dedupe.scope, "job_id": job_id, "rows": orjson.dumps(rows).decode()}
    return {row[0] for row in await tx.take("add_keys", params)}


async def move_keys(
    tx: Transaction,
    job_id: int,
    dedupe: Dedupe,
    again: _ByKey,
    known: dict[str, _KeyOwner],
) -> set[str]:
    if not again:
        return set()
    rows = [
        (key, item.content_hash, seq, known[key].job_id, known[key].seq)
        for key, (seq, item) in sorted(again.items())
    ]
    params = {"scope": dedupe.scope, "job_id": job_id, "rows": orjson.dumps(rows).decode()}
    return {row[0] for row in await tx.take("move_keys", params)}
