"""Claim, renew, release, rescue: a worker's hold on ranges."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from holdfast.model import ALONE_AFTER, LONE_EXPIRIES, Lease, SliceKind
from holdfast.store.announcements import announce, announce_all
from holdfast.store.counters import add_counts
from holdfast.store.database import Database, verb
from holdfast.store.driver import Row, Transaction, Values

_CANDIDATES = 16
_PIECES = 8


class Claimed(NamedTuple):
    lease: Lease
    # seq, input, tries, attempts, misses: the fields of model.Item. By position, as `scan` reads
    # them: every item passes here.
    rows: Sequence[Values]


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


#: The ranges that this process works on. Called once expired leases were read, not before: while an
#: item blocks the process, its own leases expire in the middle of a transaction.
InWork = Callable[[], Collection[int]]


class Leases:
    def __init__(
        self, database: Database, new_token: Callable[[], str], owner_slices: int | None
    ) -> None:
        """`owner_slices`: how many workers may work for one owner at once."""
        self._database = database
        self._new_token = new_token
        self._owner_slices = owner_slices

    @verb(relaxed=True)
    async def claim(
        self,
        tx: Transaction,
        job_id: int,
        worker: str,
        size: int,
        max_bytes: int,
        seconds: float,
        in_work: InWork = tuple,
    ) -> list[Claimed]:
        """Leases up to `size` items of a job, and reads them."""
        if await self._owner_has_enough(tx, job_id, worker):
            return []
        claim = _Claim(tx, worker, seconds, self._new_token, size, max_bytes)
        # One first: a claim at the same time passes over every range that is locked here.
        for limit in (1, _CANDIDATES):
            await claim.lease(await _free_ranges(tx, job_id, limit, in_work))
            if claim.full:
                break
        return [Claimed(lease, await _read_items(tx, lease)) for lease in claim.leases]

    async def _owner_has_enough(self, tx: Transaction, job_id: int, worker: str) -> bool:
        if self._owner_slices is None:
            return False
        # Locked first and counted in the next statement: of two claims, the second sees the first.
        await tx.fetch("hold_owner", {"job_id": job_id})
        others = await tx.fetch("other_workers_of_owner", {"job_id": job_id, "worker": worker})
        return bool(others[0][0] >= self._owner_slices)

    @verb
    async def renew(self, tx: Transaction, leases: Sequence[Lease], seconds: float) -> list[Lease]:
        """Extends the leases; returns those that are lost."""
        params = {
            "ids": [lease.range_id for lease in leases],
            "tokens": [lease.token for lease in leases],
            "seconds": seconds,
        }
        renewed = {row["id"] for row in await tx.take("renew_leases", params)}
        return [lease for lease in leases if lease.range_id not in renewed]

    @verb
    async def release(
        self,
        tx: Transaction,
        leases: Sequence[Lease],
        delay: float = 0.0,
        waiting_for: str | None = None,
    ) -> None:
        """Gives the open items of the leases back, uncharged."""
        for lease in leases:
            hold = {"id": lease.range_id, "token": lease.token}
            wait = {"delay": delay, "waiting_for": waiting_for}
            if await tx.take("release_range", hold | wait):
                await announce(tx, lease.job_id, SliceKind.PROCESS, delay)

    @verb
    async def rescue(self, tx: Transaction, in_work: InWork = tuple) -> list[int]:
        """Frees expired leases; returns the jobs they belong to."""
        expired = [_range(row) for row in await tx.fetch("expired_leases")]
        ours = in_work()
        freed = await _expire_all(tx, [lost for lost in expired if lost.id not in ours])
        await announce_all(tx, freed, SliceKind.PROCESS)
        return freed

    @verb
    async def return_leases(self, tx: Transaction, worker: str) -> list[int]:
        """Frees what a dead worker held, as if its leases had expired."""
        held = [_range(row) for row in await tx.fetch("leases_of_worker", {"worker": worker})]
        walks = await tx.take("drop_streams_of_worker", {"worker": worker})
        await announce_all(tx, [row["job_id"] for row in walks], SliceKind.DISCOVER)
        await tx.run("drop_slots", {"worker": worker})
        freed = await _expire_all(tx, held)
        await announce_all(tx, freed, SliceKind.PROCESS)
        return freed


async def _free_ranges(tx: Transaction, job_id: int, limit: int, in_work: InWork) -> list[_Range]:
    """The job's claimable ranges, after those whose lease expired were freed or cut."""
    params = {"job_id": job_id, "limit": limit}
    rows = await tx.fetch("claimable_ranges", params)
    ours = in_work()
    expired = [_range(row) for row in rows if row["expired"] and row["id"] not in ours]
    if expired:
        await _expire_all(tx, expired)
        rows = await tx.fetch("claimable_ranges", params)
    return [_range(row) for row in rows if not row["expired"]]


def _range(row: Row) -> _Range:
    return _Range(**{name: row[name] for name in _Range._fields})


class _Claim:
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
        for candidate in free:
            if self.full or (self.leases and candidate.alone):
                self.full = True
                return
            fitting = min(self._room, max(1, self._room_bytes // max(1, candidate.item_bytes)))
            split = not candidate.again and not candidate.alone and candidate.span > fitting
            part = candidate._replace(hi=candidate.lo + fitting - 1) if split else candidate
            self.leases.append(
                await _lease_one(
                    self._tx, candidate, part, self._worker, self._seconds, self._new_token()
                )
            )
            self._room -= part.span
            self._room_bytes -= part.span * part.item_bytes
            self.full = candidate.alone or split or self._room <= 0 or self._room_bytes <= 0


async def _lease_one(
    tx: Transaction, free: _Range, part: _Range, worker: str, seconds: float, token: str
) -> Lease:
    hold = {"token": token, "worker": worker, "seconds": seconds}
    range_id = free.id
    if part is free:
        await tx.run("lease_range", {"id": free.id, **hold})
    else:
        head = {"id": free.id, "lo": part.lo, "hi": part.hi, **hold}
        range_id = (await tx.take("add_leased_range", head))[0][0]
        await tx.run("cut_range", {"id": free.id, "lo": part.hi + 1})
    return Lease(
        range_id=range_id,
        job_id=part.job_id,
        lo=part.lo,
        hi=part.hi,
        again=bool(part.again),
        token=token,
        settled=part.settled,
        expiries=part.expiries,
        seconds=seconds,
    )


async def _read_items(tx: Transaction, lease: Lease) -> Sequence[Values]:
    if lease.again:
        return await tx.scan("again_items", {"range_id": lease.range_id})
    # A range that was never settled has no outcomes: no need to look for them.
    query = "remaining_items" if lease.settled else "fresh_items"
    return await tx.scan(query, {"job_id": lease.job_id, "lo": lease.lo, "hi": lease.hi})


async def _expire_all(tx: Transaction, expired: Sequence[_Range]) -> list[int]:
    for lost in expired:
        await _expire(tx, lost)
    return sorted({lost.job_id for lost in expired})


async def _expire(tx: Transaction, expired: _Range) -> None:
    """The first expiry charges no item; later ones narrow down on the one that kills."""
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


async def _open_seqs(tx: Transaction, expired: _Range) -> list[int]:
    if expired.again:
        rows = await tx.fetch("again_seqs", {"range_id": expired.id})
    else:
        span = {"job_id": expired.job_id, "lo": expired.lo, "hi": expired.hi}
        rows = await tx.fetch("remaining_seqs", span)
    return [row["seq"] for row in rows]


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
    message = (
        f"its worker died {expiries} times while processing it, {LONE_EXPIRIES} times on its own"
    )
    item = {"job_id": expired.job_id, "seq": seq, "message": message}
    await tx.run("quarantine_item", {**item, "tries": expiries})
    await tx.run("add_dead_letter", {**item, "code": "CRASHED"})
    await add_counts(tx, expired.job_id, error=1)
    await tx.run("drop_range", {"id": expired.id})
