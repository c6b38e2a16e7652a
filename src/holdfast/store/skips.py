"""Skips items that somebody chose one by one: those that are open and that nobody works on."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from holdfast.store.counters import add_counts
from holdfast.store.driver import Row, Transaction


class _Free(NamedTuple):
    id: int
    lo: int
    hi: int


async def skip_named(tx: Transaction, job_id: int, seqs: Sequence[int], reason: str) -> int:
    """How many were skipped. Finished ones, and those under a lease, are left alone."""
    skipped = 0
    for found, chosen in (await _fresh(tx, job_id, seqs)).items():
        skipped += await _skip_in_fresh(tx, job_id, found, chosen, reason)
    for range_id, chosen in (await _waiting(tx, job_id, seqs)).items():
        skipped += await _skip_waiting(tx, range_id, chosen, reason)
    if skipped:
        await add_counts(tx, job_id, "skip", skipped=skipped)
    return skipped


async def _fresh(tx: Transaction, job_id: int, seqs: Sequence[int]) -> dict[_Free, list[int]]:
    """The chosen seqs by the fresh range in which each lies; the ranges are held."""
    span = {"job_id": job_id, "first": min(seqs), "last": max(seqs)}
    near = [_Free(*row) for row in await tx.fetch("free_ranges_between", span)]
    wanted = {found.id for found in _by_range(near, seqs)}
    if not wanted:
        return {}
    rows = await tx.fetch("hold_fresh_ranges", {"ids": sorted(wanted)})
    return _by_range(sorted(map(_free, rows), key=lambda found: found.lo), seqs)


def _free(row: Row) -> _Free:
    return _Free(*row)


def _by_range(ranges: Sequence[_Free], seqs: Sequence[int]) -> dict[_Free, list[int]]:
    starts = [found.lo for found in ranges]
    chosen: dict[_Free, list[int]] = defaultdict(list)
    for seq in seqs:
        place = bisect_right(starts, seq) - 1
        if place >= 0 and seq <= ranges[place].hi:
            chosen[ranges[place]].append(seq)
    return chosen


async def _skip_in_fresh(
    tx: Transaction, job_id: int, found: _Free, chosen: Sequence[int], reason: str
) -> int:
    rows = await tx.fetch("unfinished_items", {"job_id": job_id, "seqs": list(chosen)})
    seqs = [row[0] for row in rows]
    if not seqs:
        return 0
    await tx.run("skip_fresh", {"job_id": job_id, "seqs": seqs, "reason": reason})
    await _split_around(tx, job_id, found, seqs[0], seqs[-1])
    return len(seqs)


async def _split_around(tx: Transaction, job_id: int, found: _Free, first: int, last: int) -> None:
    """Whoever claims what lies between has to look for outcomes; what lies before and after is
    read plainly, as it was."""
    part = {"id": found.id, "settled": 0}
    if found.lo < first:
        await tx.take("split_range", {**part, "lo": found.lo, "hi": first - 1})
    if await tx.fetch("remaining_seqs", {"job_id": job_id, "lo": first, "hi": last}):
        await tx.take("split_range", {**part, "lo": first, "hi": last, "settled": 1})
    if last < found.hi:
        await tx.run("cut_range", {"id": found.id, "lo": last + 1})
    else:
        await tx.run("drop_range", {"id": found.id})


async def _waiting(tx: Transaction, job_id: int, seqs: Sequence[int]) -> dict[int, list[int]]:
    """The chosen seqs that wait to be tried again, by their range; the ranges are held."""
    rows = await tx.fetch("waiting_items", {"job_id": job_id, "seqs": list(seqs)})
    chosen: dict[int, list[int]] = defaultdict(list)
    for range_id, seq in rows:
        chosen[range_id].append(seq)
    if not chosen:
        return {}
    held = await tx.fetch("hold_again_ranges", {"ids": sorted(chosen)})
    return {row[0]: chosen[row[0]] for row in held}


async def _skip_waiting(tx: Transaction, range_id: int, chosen: list[int], reason: str) -> int:
    params = {"range_id": range_id, "seqs": chosen, "reason": reason}
    skipped = await tx.take("skip_waiting", params)
    if not await tx.fetch("left_in_range", {"range_id": range_id}):
        await tx.run("drop_range", {"id": range_id})
    return len(skipped)
