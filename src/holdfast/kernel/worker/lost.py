"""Frees everything in the name of a lost worker."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.kernel.database.driver import Transaction
from holdfast.kernel.database.notices import tell_workers
from holdfast.kernel.record.counters import add_counts
from holdfast.kernel.record.leases import FreeRange, range_of
from holdfast.model import ALONE_AFTER, LONE_EXPIRIES

_PIECES = 8


async def free_all(tx: Transaction, worker: str) -> list[int]:
    """Frees all that is in a worker's name; returns the jobs of its ranges, whose items lost a
    worker."""
    name = {"worker": worker}
    held = [range_of(row) for row in await tx.fetch("leases_of_worker", name)]
    walks = await tx.take("drop_streams_of_worker", name)
    await tx.run("free_operations_of", name)
    await tx.run("free_exports_of", name)
    await tx.run("free_adapters_of", name)
    await tx.run("free_keys_of", name)
    await tx.run("drop_slots", name)
    await tx.run("drop_duties", {"holder": worker})
    await tx.run("end_transactions_of", name)
    freed = await _expire_all(tx, held)
    await tell_workers(tx, *freed, *(row["job_id"] for row in walks))
    return freed


async def _expire_all(tx: Transaction, expired: Sequence[FreeRange]) -> list[int]:
    for lost in expired:
        await _expire(tx, lost)
    return sorted({lost.job_id for lost in expired})


async def _expire(tx: Transaction, expired: FreeRange) -> None:
    """Puts back a range whose worker was lost.

    The first loss charges no item; later ones narrow down on the item that kills workers."""
    expiries = expired.expiries + 1
    if expiries < ALONE_AFTER:
        await _free(tx, expired, expiries, 0)
        return
    seqs = await _open_seqs(tx, expired)
    if not seqs:
        await tx.run("drop_range", {"id": expired.id})
    elif len(seqs) > 1:
        await _cut_in_pieces(tx, expired, seqs, expiries)
    else:
        lone_expiries = expired.lone_expiries + expired.alone
        if lone_expiries < LONE_EXPIRIES:
            await _free(tx, expired, expiries, lone_expiries)
        else:
            await _quarantine(tx, expired, seqs[0], expiries)


async def _free(tx: Transaction, expired: FreeRange, expiries: int, lone_expiries: int) -> None:
    params = {"id": expired.id, "expiries": expiries, "lone_expiries": lone_expiries}
    await tx.run("free_range", params)


async def _open_seqs(tx: Transaction, expired: FreeRange) -> list[int]:
    if expired.again:
        rows = await tx.fetch("again_seqs", {"range_id": expired.id})
    else:
        span = {"job_id": expired.job_id, "lo": expired.lo, "hi": expired.hi}
        rows = await tx.fetch("remaining_seqs", span)
    return [row["seq"] for row in rows]


async def _cut_in_pieces(
    tx: Transaction, expired: FreeRange, seqs: list[int], expiries: int
) -> None:
    size = -(-len(seqs) // _PIECES)
    for start in range(0, len(seqs), size):
        piece = seqs[start : start + size]
        params = {
            "job_id": expired.job_id,
            "lo": piece[0],
            "hi": piece[-1],
            "again": expired.again,
            "delay": 0.0,
            "settled": expired.settled,
            "expiries": expiries,
            "item_bytes": expired.item_bytes,
            "waiting_for": None,
        }
        range_id = (await tx.take("add_range", params))[0][0]
        if expired.again:
            moved = {"job_id": expired.job_id, "seqs": piece, "range_id": range_id}
            await tx.run("move_to_range", moved)
    await tx.run("drop_range", {"id": expired.id})


async def _quarantine(tx: Transaction, expired: FreeRange, seq: int, expiries: int) -> None:
    message = (
        f"its worker died {expiries} times while processing it, {LONE_EXPIRIES} times on its own"
    )
    item = {"job_id": expired.job_id, "seq": seq, "message": message}
    await tx.run("quarantine_item", {**item, "tries": expiries})
    await tx.run("add_dead_letter", {**item, "code": "CRASHED"})
    await add_counts(tx, expired.job_id, error=1)
    await tx.run("drop_range", {"id": expired.id})
