"""Skips open items that are not being processed, a chunk at a time.

A range is locked while its items are skipped, so that no worker claims them."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from holdfast.kernel.database.chunks import EARLIEST, FreeRanges, NamedItems, Skipped
from holdfast.kernel.database.driver import Row, Transaction
from holdfast.kernel.database.instants import parse_instant
from holdfast.kernel.jobs.job_states import require
from holdfast.kernel.record.counters import add_counts

_CHUNK = 2000


class _Range(NamedTuple):
    id: int
    lo: int
    hi: int


async def skip(
    tx: Transaction, job_id: int, items: NamedItems | FreeRanges, reason: str
) -> Skipped:
    """Skips a chunk of the items; finished and leased ones stay unchanged."""
    await require(tx, job_id, "cancel")
    if isinstance(items, NamedItems):
        step = await _skip_named(tx, job_id, sorted(set(items.seqs)), reason)
    else:
        step = await _skip_in_next_range(tx, job_id, items, reason)
    if step.skipped:
        await add_counts(tx, job_id, skipped=step.skipped)
    return step


async def _skip_named(tx: Transaction, job_id: int, seqs: Sequence[int], reason: str) -> Skipped:
    if not seqs:
        return Skipped(0, 0, None)
    skipped = 0
    for free, inside in (await _fresh_ranges(tx, job_id, seqs)).items():
        rows = await tx.fetch("unfinished_items", {"job_id": job_id, "seqs": inside})
        untouched = [row["seq"] for row in rows]
        if untouched:
            part = free._replace(lo=untouched[0], hi=untouched[-1])
            skipped += await _skip_fresh(tx, job_id, free, part, untouched, reason)
    for range_id, inside in (await _again_ranges(tx, job_id, seqs)).items():
        skipped += await _skip_again(tx, range_id, inside, reason)
    return Skipped(skipped, len(seqs) - skipped, None)


async def _skip_in_next_range(
    tx: Transaction, job_id: int, items: FreeRanges, reason: str
) -> Skipped:
    params = {"job_id": job_id, "since": items.since, "id": items.range_id, "until": items.until}
    rows = await tx.fetch("next_free_range", {**params, "only_again": int(items.code is not None)})
    if not rows:
        return Skipped(0, 0, None)
    row = rows[0]
    since = parse_instant(row["since"]) or EARLIEST
    if row["again"]:
        seqs = await _waiting_seqs(tx, row["id"], items.code)
        skipped = await _skip_again(tx, row["id"], seqs, reason)
        return Skipped(skipped, 0, replace(items, since=since, range_id=row["id"]))
    return await _skip_start(tx, job_id, row, replace(items, since=since), reason)


async def _skip_start(
    tx: Transaction, job_id: int, row: Row, items: FreeRanges, reason: str
) -> Skipped:
    """Skips the first open items of a fresh range: all of them, or a chunk."""
    free = _range(row)
    params = {"job_id": job_id, "lo": free.lo, "hi": free.hi, "limit": _CHUNK}
    seqs = [row["seq"] for row in await tx.fetch("first_unfinished_items", params)]
    part = free if len(seqs) < _CHUNK else free._replace(hi=seqs[-1])
    skipped = await _skip_fresh(tx, job_id, free, part, seqs, reason)
    # A range that still has items is looked at again: from just before it.
    range_id = free.id if part.hi == free.hi else free.id - 1
    return Skipped(skipped, 0, replace(items, range_id=range_id))


async def _skip_fresh(
    tx: Transaction, job_id: int, free: _Range, part: _Range, seqs: list[int], reason: str
) -> int:
    """Skips untouched items, which all lie in that part of a fresh range.

    What remains of the part becomes a range whose items are read with a look at their outcomes; the
    items before and after it are read plainly, as before."""
    await tx.run("skip_fresh", {"job_id": job_id, "seqs": seqs, "reason": reason})
    if free.lo < part.lo:
        await _split(tx, free.id, free.lo, part.lo - 1, 0)
    if len(seqs) <= part.hi - part.lo:
        span = {"job_id": job_id, "lo": part.lo, "hi": part.hi}
        if await tx.fetch("remaining_seqs", span):
            await _split(tx, free.id, part.lo, part.hi, 1)
    if part.hi < free.hi:
        await tx.run("cut_range", {"id": free.id, "lo": part.hi + 1})
    else:
        await tx.run("drop_range", {"id": free.id})
    return len(seqs)


async def _split(tx: Transaction, range_id: int, lo: int, hi: int, settled: int) -> None:
    await tx.take("split_range", {"id": range_id, "lo": lo, "hi": hi, "settled": settled})


async def _skip_again(tx: Transaction, range_id: int, seqs: list[int], reason: str) -> int:
    """Skips items that wait to be tried again."""
    params = {"range_id": range_id, "seqs": seqs, "reason": reason}
    skipped = await tx.take("skip_waiting", params)
    if not await tx.fetch("left_in_range", {"range_id": range_id}):
        await tx.run("drop_range", {"id": range_id})
    return len(skipped)


async def _waiting_seqs(tx: Transaction, range_id: int, code: str | None) -> list[int]:
    params = {"range_id": range_id, "any_code": int(code is None), "code": code or ""}
    return [row["seq"] for row in await tx.fetch("waiting_seqs", params)]


async def _fresh_ranges(
    tx: Transaction, job_id: int, seqs: Sequence[int]
) -> dict[_Range, list[int]]:
    """Returns the named items by the fresh range in which each lies; the ranges are locked."""
    span = {"job_id": job_id, "first": seqs[0], "last": seqs[-1]}
    near = [_range(row) for row in await tx.fetch("free_ranges_between", span)]
    ids = sorted(free.id for free in _by_range(near, seqs))
    if not ids:
        return {}
    held = [_range(row) for row in await tx.fetch("hold_fresh_ranges", {"ids": ids})]
    return _by_range(sorted(held, key=lambda free: free.lo), seqs)


def _range(row: Row) -> _Range:
    return _Range(row["id"], row["lo"], row["hi"])


def _by_range(ranges: Sequence[_Range], seqs: Sequence[int]) -> dict[_Range, list[int]]:
    starts = [free.lo for free in ranges]
    inside: dict[_Range, list[int]] = defaultdict(list)
    for seq in seqs:
        place = bisect_right(starts, seq) - 1
        if place >= 0 and seq <= ranges[place].hi:
            inside[ranges[place]].append(seq)
    return inside


async def _again_ranges(tx: Transaction, job_id: int, seqs: Sequence[int]) -> dict[int, list[int]]:
    """Returns the named items that wait to be tried again, by their range; the ranges are
    locked."""
    inside: dict[int, list[int]] = defaultdict(list)
    for row in await tx.fetch("waiting_items", {"job_id": job_id, "seqs": list(seqs)}):
        inside[row["range_id"]].append(row["seq"])
    if not inside:
        return {}
    held = await tx.fetch("hold_again_ranges", {"ids": sorted(inside)})
    return {row["id"]: inside[row["id"]] for row in held}
