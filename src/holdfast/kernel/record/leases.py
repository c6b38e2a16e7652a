"""Claims and releases ranges: a worker's hold on them lasts as long as its heartbeat."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from operator import itemgetter
from typing import Any, NamedTuple

import orjson

from holdfast.clock import Clock
from holdfast.kernel.database.database import Database, verb
from holdfast.kernel.database.driver import Conflict, Row, Transaction, Values
from holdfast.kernel.database.notices import tell_workers
from holdfast.model import ALONE_AFTER, Lease

#: Maximum number of ranges in a claim.
MOST_RANGES = 256
#: How many ranges a claim looks at after the first; more if that one is small.
_CANDIDATES = (16, MOST_RANGES)

#: While a transaction is held open, ended ranges stay in the index, and a look that starts with the
#: oldest passes over all of them. A queue whose oldest range has just arrived is read from there
#: on, and from the beginning once in this many seconds, after what is new.
_RECENT_SECONDS = 1.0


class Claimed(NamedTuple):
    lease: Lease
    # seq, input, tries, attempts, misses: the fields of model.Item. Read by position, as `scan`
    # does, because every item passes here.
    rows: Sequence[Values]


class FreeRange(NamedTuple):
    id: int
    job_id: int
    lo: int
    hi: int
    again: int
    settled: int
    expiries: int
    lone_expiries: int
    item_bytes: int
    recent: bool = False  # due for only a moment

    @property
    def span(self) -> int:
        return self.hi - self.lo + 1

    @property
    def alone(self) -> bool:
        return self.expiries >= ALONE_AFTER


_COLUMNS = FreeRange._fields[:-1]


class Leases:
    def __init__(
        self,
        database: Database,
        new_token: Callable[[], str],
        clock: Clock,
    ) -> None:
        self._database = database
        self._new_token = new_token
        self._clock = clock
        self._recent_until: dict[int, float] = {}  # by job: only recent ranges are claimed
        self._owed: set[int] = set()  # jobs whose old ranges are next, because new ones came first
        self.in_flight: set[str] = set()  # tokens of claims that may have been made

    async def claim(
        self,
        job_id: int,
        worker: str,
        size: int,
        max_bytes: int,
        standing: bool = False,
        brief: bool = False,
    ) -> list[Claimed]:
        """Leases up to `size` items of a job, and reads them. A claim of a standing job takes
        recent arrivals before it looks at old ranges, which it may pass over for a moment; a
        `brief` claim always does if nothing new is there.

        If the answer is lost, the worker frees what this may have leased: see hands.py."""
        token = self._new_token()
        hold = {"token": token, "worker": worker}
        self.in_flight.add(token)
        try:
            if standing and self._may_claim_arrivals(job_id):
                with suppress(Conflict):
                    claims, others = await self._arrivals(job_id, size, max_bytes, hold)
                    if claims or (brief and not others and self._looks_at_recent(job_id)):
                        return claims
            return await self._claim(job_id, size, max_bytes, hold, standing)
        finally:
            self.in_flight.discard(token)

    def owes_look(self, job_id: int) -> bool:
        """Whether the next claim of a standing job has to look at old ranges, whatever arrives."""
        return job_id in self._owed

    def _may_claim_arrivals(self, job_id: int) -> bool:
        if "claim_arrivals" not in self._database.driver.queries:
            return False
        if self._looks_at_recent(job_id):
            return True
        self._owed ^= {job_id}
        return job_id in self._owed

    def _looks_at_recent(self, job_id: int) -> bool:
        return self._clock.monotonic() < self._recent_until.get(job_id, -math.inf)

    async def _arrivals(
        self, job_id: int, size: int, max_bytes: int, hold: Mapping[str, Any]
    ) -> tuple[list[Claimed], bool]:
        """Claims items in one round trip, because round trips are most of the time until an item
        starts. If nothing was claimed, also says whether there are new ranges of another kind."""
        limit = min(_CANDIDATES[1], size)
        params = {
            **hold,
            "job_id": job_id,
            "limit": limit,
            "most_items": max(1, size // limit),
            "most_bytes": max(1, max_bytes // size),
        }
        rows = await self._database.fetch("claim_arrivals", params)
        claims: dict[int, tuple[Lease, list[Values]]] = {}
        for range_id, lo, hi, _, *item in rows:
            if range_id is None:
                break
            if range_id not in claims:
                lease = Lease(range_id, job_id, lo, hi, False, hold["token"], 0, 0)
                claims[range_id] = (lease, [])
            if item[0] is not None:
                claims[range_id][1].append(tuple(item))
        return [Claimed(*claim) for claim in claims.values()], bool(rows[0][3])

    @verb("claim", relaxed=True)
    async def _claim(
        self,
        tx: Transaction,
        job_id: int,
        size: int,
        max_bytes: int,
        hold: Mapping[str, Any],
        standing: bool,
    ) -> list[Claimed]:
        self._owed.discard(job_id)
        choice = _Choice(size, max_bytes)
        if standing:
            recent = self._looks_at_recent(job_id)
            few, many = _CANDIDATES
            limit = min(many, max(few, size))
            choice.add(await _free_ranges(tx, job_id, limit, recent))
            if not recent:
                self._note_look(job_id, choice)
        else:
            # Only one first: a claim at the same time passes over every range that is locked here.
            choice.add(await _free_ranges(tx, job_id, 1))
            if not choice.full:
                choice.add(await _free_ranges(tx, job_id, choice.candidates))
        leases = await _lease(tx, choice.parts, hold)
        return await _read_items(tx, leases)

    def _note_look(self, job_id: int, choice: _Choice) -> None:
        if all(part.free.recent for part in choice.parts.values()):
            self._recent_until[job_id] = self._clock.monotonic() + _RECENT_SECONDS

    @verb
    async def release(
        self,
        tx: Transaction,
        leases: Sequence[Lease],
        delay: float = 0.0,
        waiting_for: str | None = None,
    ) -> None:
        """Puts the open items of the leases back, uncharged."""
        for lease in leases:
            hold = {"id": lease.range_id, "token": lease.token}
            wait = {"delay": delay, "waiting_for": waiting_for}
            if await tx.take("release_range", hold | wait) and not delay:
                await tell_workers(tx, lease.job_id)


async def _free_ranges(
    tx: Transaction, job_id: int, limit: int, recent: bool = False
) -> list[FreeRange]:
    """Returns the job's claimable ranges."""
    query = "recent_ranges" if recent else "claimable_ranges"
    rows = await tx.fetch(query, {"job_id": job_id, "limit": limit})
    return [range_of(row)._replace(recent=bool(row["recent"])) for row in rows]


def range_of(row: Row) -> FreeRange:
    return FreeRange(**{name: row[name] for name in _COLUMNS})


class _Part(NamedTuple):
    """The part of a free range that a claim takes: all of it, or its head."""

    free: FreeRange
    hi: int

    @property
    def is_whole(self) -> bool:
        return self.hi == self.free.hi


class _Choice:
    """Chooses ranges until the claim has its size, its bytes, or a range that runs alone."""

    def __init__(self, room: int, room_bytes: int) -> None:
        self._room = room
        self._room_bytes = room_bytes
        self.parts: dict[int, _Part] = {}
        self.full = False

    @property
    def candidates(self) -> int:
        """How many more ranges to look at: one claim takes many small ones."""
        few, many = _CANDIDATES
        spans = [part.free.span for part in self.parts.values()]
        return min(many, max(few, self._room // min(spans, default=self._room)))

    def add(self, free: Sequence[FreeRange]) -> None:
        for candidate in free:
            if candidate.id in self.parts:
                continue
            if self.full or (self.parts and candidate.alone):
                self.full = True
                return
            fitting = min(self._room, max(1, self._room_bytes // max(1, candidate.item_bytes)))
            split = not candidate.again and not candidate.alone and candidate.span > fitting
            part = _Part(candidate, candidate.lo + fitting - 1 if split else candidate.hi)
            self.parts[candidate.id] = part
            taken = part.hi - candidate.lo + 1
            self._room -= taken
            self._room_bytes -= taken * candidate.item_bytes
            self.full = candidate.alone or split or self._room <= 0 or self._room_bytes <= 0


async def _lease(
    tx: Transaction, parts: Mapping[int, _Part], hold: Mapping[str, Any]
) -> list[Lease]:
    """Leases all whole ranges in one statement; at most one is split."""
    whole = [range_id for range_id, part in parts.items() if part.is_whole]
    if whole:
        await tx.run("lease_ranges", {"ids": whole, **hold})
    leases = []
    for range_id, part in parts.items():
        if not part.is_whole:
            head = {"id": range_id, "lo": part.free.lo, "hi": part.hi, **hold}
            range_id = (await tx.take("add_leased_range", head))[0][0]
            await tx.run("cut_range", {"id": part.free.id, "lo": part.hi + 1})
        leases.append(_lease_of(range_id, part, hold))
    return leases


def _lease_of(range_id: int, part: _Part, hold: Mapping[str, Any]) -> Lease:
    return Lease(
        range_id=range_id,
        job_id=part.free.job_id,
        lo=part.free.lo,
        hi=part.hi,
        again=bool(part.free.again),
        token=hold["token"],
        settled=part.free.settled,
        expiries=part.free.expiries,
    )


async def _read_items(tx: Transaction, leases: Sequence[Lease]) -> list[Claimed]:
    # A range that was never settled has no outcomes, so there is no need to look for them.
    fresh = [lease for lease in leases if not lease.again and not lease.settled]
    others = [lease for lease in leases if lease.again or lease.settled]
    rows = await _fresh_items(tx, fresh) if fresh else []
    together = [Claimed(lease, _rows_of(lease, rows)) for lease in fresh]
    return together + [Claimed(lease, await _items_of(tx, lease)) for lease in others]


async def _fresh_items(tx: Transaction, leases: Sequence[Lease]) -> Sequence[Values]:
    """Reads the items of leases of one job, in the order of their numbers."""
    job_id, stretches = leases[0].job_id, _stretches(leases)
    if len(stretches) == 1:
        lo, hi = stretches[0]
        return await tx.scan("fresh_items", {"job_id": job_id, "lo": lo, "hi": hi})
    spans = orjson.dumps(stretches).decode()
    rows = await tx.scan("fresh_items_of", {"job_id": job_id, "spans": spans})
    return sorted(rows, key=itemgetter(0))


def _stretches(leases: Sequence[Lease]) -> list[tuple[int, int]]:
    """Returns the ranges' numbers with neighbours joined: pages of one file follow each other."""
    stretches: list[tuple[int, int]] = []
    for lo, hi in sorted((lease.lo, lease.hi) for lease in leases):
        if stretches and stretches[-1][1] + 1 == lo:
            lo = stretches.pop()[0]
        stretches.append((lo, hi))
    return stretches


def _rows_of(lease: Lease, rows: Sequence[Values]) -> Sequence[Values]:
    """Returns the rows of one range, out of rows in the order of their numbers."""
    start = bisect_left(rows, lease.lo, key=itemgetter(0))
    end = bisect_right(rows, lease.hi, lo=start, key=itemgetter(0))
    return rows[start:end]


async def _items_of(tx: Transaction, lease: Lease) -> Sequence[Values]:
    if lease.again:
        return await tx.scan("again_items", {"range_id": lease.range_id})
    return await tx.scan(
        "remaining_items", {"job_id": lease.job_id, "lo": lease.lo, "hi": lease.hi}
    )
