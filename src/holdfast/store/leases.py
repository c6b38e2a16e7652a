"""Claim, renew, release, rescue: a worker's hold on ranges."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from holdfast.model import ALONE_AFTER, LONE_EXPIRIES, Lease, SliceKind
from holdfast.store.announcements import announce, announce_all
from holdfast.store.counters import add_counts
from holdfast.store.database import Database
from holdfast.store.driver import Row, Transaction, Values

_CANDIDATES = 16
_PIECES = 8


class Claimed(NamedTuple):
    lease: Lease
    rows: Sequence[Values]  # seq, input, tries, attempts, misses: the fields of model.Item


class _Range(NamedTuple):
    id: int
    job_id: int
    lo: int
    hi: int
    again: int
    settled: int
    expiries: int
    lone_expiries: int
    item_bytes: int

    @property
    def span(self) -> int:
        return self.hi - self.lo + 1

    @property
    def alone(self) -> bool:
        return self.expiries >= ALONE_AFTER


#: The ranges that this process works on. Asked when leases that ran out were found, not before:
#: while an item blocks the process, its own leases run out in the middle of a transaction.
InWork = Callable[[], Collection[int]]


class Leases:
    def __init__(
        self, database: Database, new_token: Callable[[], str], owner_slices: int | None
    ) -> None:
        """`owner_slices`: how many workers may work for one owner at once."""
        self._database = database
        self._new_token = new_token
        self._owner_slices = owner_slices

    async def claim(
        self,
        job_id: int,
        worker: str,
        size: int,
        max_bytes: int,
        seconds: float,
        in_work: InWork = tuple,
    ) -> list[Claimed]:
        """Leases up to `size` items of a job, and reads them."""

        async def body(tx: Transaction) -> list[Claimed]:
            if await self._owner_has_enough(tx, job_id, worker):
                return []
            taking = _Taking(tx, worker, seconds, self._new_token, size, max_bytes)
            # One first: whoever claims at the same time passes over all that is locked here.
            for limit in (1, _CANDIDATES):
                await taking.lease(await _free_ranges(tx, job_id, limit, in_work))
                if taking.full:
                    break
            return [Claimed(lease, await _read_items(tx, lease)) for lease in taking.leases]

        return await self._database.write("claim", body, relaxed=True)

    async def _owner_has_enough(self, tx: Transaction, job_id: int, worker: str) -> bool:
        if self._owner_slices is None:
            return False
        # Locked first and counted in the next statement: of two claims, the second sees the first.
        await tx.fetch("hold_owner", {"job_id": job_id})
        others = await tx.fetch("other_workers_of_owner", {"job_id": job_id, "worker": worker})
        return bool(others[0][0] >= self._owner_slices)

    async def renew(self, leases: Sequence[Lease], seconds: float) -> list[Lease]:
        """Extends the leases; returns those that are lost."""

        async def body(tx: Transaction) -> set[int]:
            params = {
                "ids": [lease.range_id for lease in leases],
                "tokens": [lease.token for lease in leases],
                "seconds": seconds,
            }
            return {row[0] for row in await tx.take("renew_leases", params)}

        kept = await self._database.write("renew", body)
        return [lease for lease in leases if lease.range_id not in kept]

    async def release(
        self, leases: Sequence[Lease], delay: float = 0.0, waiting_for: str | None = None
    ) -> None:
        """Gives the open items of the leases back, uncharged."""

        async def body(tx: Transaction) -> None:
            for lease in leases:
                hold = {"id": lease.range_id, "token": lease.token}
                wait = {"delay": delay, "waiting_for": waiting_for}
                if await tx.take("release_range", hold | wait):
                    await announce(tx, lease.job_id, SliceKind.PROCESS, delay)

        await self._database.write("release", body)

    async def rescue(self, in_work: InWork = tuple) -> list[int]:
        """Frees leases that ran out; returns the jobs they belong to."""

        async def body(tx: Transaction) -> list[int]:
            expired = await tx.fetch("expired_leases")
            ours = in_work()
            freed = await _expire_all(tx, [row for row in expired if row[0] not in ours])
            await announce_all(tx, freed, SliceKind.PROCESS)
            return freed

        return await self._database.write("rescue", body)

    async def return_leases(self, worker: str) -> list[int]:
        """Frees what a dead worker held, as if its leases had run out."""

        async def body(tx: Transaction) -> list[int]:
            held = await tx.fetch("leases_of_worker", {"worker": worker})
            walks = await tx.take("drop_streams_of_worker", {"worker": worker})
            await announce_all(tx, [row[0] for row in walks], SliceKind.DISCOVER)
            await tx.run("drop_slots", {"worker": worker})
            freed = await _expire_all(tx, held)
            await announce_all(tx, freed, SliceKind.PROCESS)
            return freed

        return await self._database.write("return_leases", body)


async def _free_ranges(tx: Transaction, job_id: int, limit: int, in_work: InWork) -> list[_Range]:
    """The job's claimable ranges, after those whose lease ran out were freed or cut."""
    params = {"job_id": job_id, "limit": limit}
    rows = await tx.fetch("claimable_ranges", params)
    ours = in_work()
    expired = [row[:-1] for row in rows if row[-1] and row[0] not in ours]
    if expired:
        await _expire_all(tx, expired)
        rows = await tx.fetch("claimable_ranges", params)
    return [_Range(*row[:-1]) for row in rows if not row[-1]]


class _Taking:
    """Leases ranges until the claim has its size, its bytes, or a range that runs alone."""

    def __init__(
        self,
        tx: Transaction,
        worker: str,
        seconds: float,
        new_token: Callable[[], str],
        room: int,
        room_bytes: int,
    ) -> None:
        self._tx = tx
        self._worker = worker
        self._seconds = seconds
        self._new_token = new_token
        self._room = room
        self._room_bytes = room_bytes
        self.leases: list[Lease] = []
        self.full = False

    async def lease(self, free: Sequence[_Range]) -> None:
        for found in free:
            if self.full or (self.leases and found.alone):
                self.full = True
                return
            fitting = min(self._room, max(1, self._room_bytes // max(1, found.item_bytes)))
            split = not found.again and not found.alone and found.span > fitting
            taken = found._replace(hi=found.lo + fitting - 1) if split else found
            self.leases.append(
                await _lease_one(
                    self._tx, found, taken, self._worker, self._seconds, self._new_token()
                )
            )
            self._room -= taken.span
            self._room_bytes -= taken.span * taken.item_bytes
            self.full = found.alone or split or self._room <= 0 or self._room_bytes <= 0


async def _lease_one(
    tx: Transaction, found: _Range, taken: _Range, worker: str, seconds: float, token: str
) -> Lease:
    hold = {"token": token, "worker": worker, "seconds": seconds}
    range_id = found.id
    if taken is found:
        await tx.run("lease_range", {"id": found.id, **hold})
    else:
        head = {"id": found.id, "lo": taken.lo, "hi": taken.hi, **hold}
        range_id = (await tx.take("add_leased_range", head))[0][0]
        await tx.run("cut_range", {"id": found.id, "lo": taken.hi + 1})
    return Lease(
        range_id=range_id,
        job_id=taken.job_id,
        lo=taken.lo,
        hi=taken.hi,
        again=bool(taken.again),
        token=token,
        settled=taken.settled,
        expiries=taken.expiries,
        seconds=seconds,
    )


async def _read_items(tx: Transaction, lease: Lease) -> list[Row]:
    if lease.again:
        return await tx.fetch("again_items", {"range_id": lease.range_id})
    # A range that was never settled has no outcomes: no need to look for them.
    query = "remaining_items" if lease.settled else "fresh_items"
    return await tx.fetch(query, {"job_id": lease.job_id, "lo": lease.lo, "hi": lease.hi})


async def _expire_all(tx: Transaction, rows: Sequence[Row]) -> list[int]:
    for row in rows:
        await _expire(tx, _Range(*row))
    return sorted({row[1] for row in rows})


async def _expire(tx: Transaction, expired: _Range) -> None:
    """The first expiry charges nobody; later ones narrow down on the item that kills."""
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


async def _free(tx: Transaction, expired: _Range, expiries: int, lone_expiries: int) -> None:
    params = {"id": expired.id, "expiries": expiries, "lone_expiries": lone_expiries}
    await tx.run("free_range", params)


async def _open_seqs(tx: Transaction, found: _Range) -> list[int]:
    if found.again:
        rows = await tx.fetch("again_seqs", {"range_id": found.id})
    else:
        span = {"job_id": found.job_id, "lo": found.lo, "hi": found.hi}
        rows = await tx.fetch("remaining_seqs", span)
    return [row[0] for row in rows]


async def _cut_in_pieces(tx: Transaction, expired: _Range, seqs: list[int], expiries: int) -> None:
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


async def _quarantine(tx: Transaction, expired: _Range, seq: int, expiries: int) -> None:
    message = f"its worker died {expiries} times while it was in work, {LONE_EXPIRIES} times alone"
    item = {"job_id": expired.job_id, "seq": seq, "message": message}
    await tx.run("quarantine_item", {**item, "tries": expiries})
    await tx.run("add_dead_letter", {**item, "code": "CRASHED"})
    await add_counts(tx, expired.job_id, "rescue", error=1)
    await tx.run("drop_range", {"id": expired.id})
