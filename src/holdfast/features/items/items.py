"""Pages of items by keyset: the same rows in the same order for grid, pending list and export.

Without a filter, items come by seq. With statuses or dates, finished ones come first by
(updated_at, seq), then open ones, the longest waiting first, in the order of their ranges: by
(since, range, seq). A position is plain JSON; an item that changes between two pages may come
twice, and moves only forward.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from holdfast.features.rulings.rules import rulings_of
from holdfast.kernel.database.chunks import EARLIEST, LATEST
from holdfast.kernel.database.database import Database
from holdfast.kernel.database.driver import Row, Transaction, Values
from holdfast.kernel.database.instants import parse_instant
from holdfast.kernel.database.rows import fields_of
from holdfast.model import FINAL, OPEN, ItemStatus, Job, JobState
from holdfast.rulings import Ruling, RulingKind

_EVERYTHING = 2**31 - 1
_HEAD_CHARACTERS = 2000
_RESULT_CHARACTERS = 100_000
_RANGES = 50
_MOST_RANGES = 2000

Position = dict[str, Any]


class Sizes(NamedTuple):
    """How much of an item is read: inputs are cut off there, larger results left out."""

    input_chars: int
    result_chars: int


IN_BRIEF = Sizes(_HEAD_CHARACTERS, _RESULT_CHARACTERS)
WHOLE = Sizes(_EVERYTHING, _EVERYTHING)
RESULTS_ONLY = Sizes(0, _EVERYTHING)


class ItemView(NamedTuple):
    seq: int
    input: str
    status: ItemStatus
    result: str | None
    error_code: str | None
    error_message: str | None
    tries: int
    attempts: int
    updated_at: datetime | None
    worker: str | None = None
    job_id: int = 0
    ruling: Ruling | None = None  # what a person decided about it


@dataclass(frozen=True, slots=True)
class ItemFilter:
    """Which items are meant.

    Dates are of the last change, or for untouched items of their ingest."""

    statuses: tuple[ItemStatus, ...] = ()
    code: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    rulings: tuple[RulingKind, ...] = ()  # only items about which such a decision counts

    @property
    def is_empty(self) -> bool:
        return self == ItemFilter()

    @property
    def final(self) -> list[ItemStatus]:
        """The finished statuses in a fixed order, whatever order they were given in."""
        return [status for status in ItemStatus if status in FINAL and self._wants(status)]

    @property
    def open(self) -> list[ItemStatus]:
        return [status for status in ItemStatus if status in OPEN and self._wants(status)]

    def fits(self, item: ItemView) -> bool:
        at = item.updated_at or EARLIEST
        return (
            self._wants(item.status)
            and self.code in (None, item.error_code)
            and (self.since or EARLIEST) <= at <= (self.until or LATEST)
        )

    def _wants(self, status: ItemStatus) -> bool:
        return status in self.statuses or not self.statuses


class ItemPage(NamedTuple):
    items: list[ItemView]
    next: Position | None


@dataclass(slots=True)
class _PageBuilder:
    """A page that is being read."""

    tx: Transaction
    job: Job | None  # None: all jobs
    filter: ItemFilter
    limit: int
    sizes: Mapping[str, int]
    items: list[ItemView]

    @property
    def room(self) -> int:
        return self.limit - len(self.items)


class Items:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(
        self,
        job: Job,
        filter: ItemFilter,
        position: Position | None,
        limit: int,
        sizes: Sizes = IN_BRIEF,
    ) -> ItemPage:
        """Returns a page of one job's items."""
        async with self._database.driver.reading() as tx:
            builder = self._builder(tx, job, filter, limit, sizes)
            phases = _phases(job, filter)
            # A job that was cancelled since has no more open items to continue with.
            at = position if position and position["phase"] in phases else {"phase": phases[0]}
            if position and at is not position:
                return ItemPage([], None)
            for phase in phases[phases.index(at["phase"]) :]:
                more = await _PHASES[phase](builder, at if at["phase"] == phase else {})
                if more is not None:
                    return ItemPage(await _with_rulings(builder), {"phase": phase, **more})
            return ItemPage(await _with_rulings(builder), None)

    async def every(
        self, job: Job, filter: ItemFilter, size: int = 1000, sizes: Sizes = WHOLE
    ) -> AsyncGenerator[list[ItemView]]:
        """Yields all pages, for exports."""
        position: Position | None = None
        while True:
            page = await self.page(job, filter, position, size, sizes)
            if page.items:
                yield page.items
            position = page.next
            if position is None:
                return

    async def pending(
        self,
        scope: str | None,
        pipeline: str | None,
        filter: ItemFilter,
        position: Position | None,
        limit: int,
    ) -> ItemPage:
        """Lists open items over all jobs of one owner, or of all owners."""
        async with self._database.driver.reading() as tx:
            builder = self._builder(tx, None, filter, limit, IN_BRIEF)
            extra = {"any_pipeline": int(pipeline is None), "pipeline": pipeline or ""}
            if scope is None:
                more = await _open(builder, position or {}, "open_ranges", extra)
            else:
                owned = {**extra, "scope": scope}
                more = await _open(builder, position or {}, "open_ranges_of_owner", owned)
            return ItemPage(builder.items, more)

    async def item(self, job_id: int, seq: int) -> dict[str, Any] | None:
        rows = await self._database.fetch("item", {"job_id": job_id, "seq": seq})
        if not rows:
            return None
        item = fields_of(rows[0]) | {"worker": None}
        if item["status"] in (None, ItemStatus.PENDING):
            leased = await self._database.fetch("leased_ranges", {"job_id": job_id})
            item["worker"] = holder_of(seq, item["status"], item["range_id"], leased)
        if item["worker"] is not None:
            item["status"] = ItemStatus.PROCESSING
        return item

    async def attempts(self, job_id: int, seq: int) -> list[dict[str, Any]]:
        """Lists the tries before the last, the oldest first."""
        params = {"job_id": job_id, "seq": seq}
        return [fields_of(row) for row in await self._database.fetch("attempts_of_item", params)]

    async def normalized(self, job_id: int, seqs: Sequence[int]) -> dict[int, str]:
        """Returns the normalized rows of these items that have one that is not too large."""
        params = {"job_id": job_id, "seqs": list(seqs), "chars": _RESULT_CHARACTERS}
        rows = await self._database.fetch("normalized_of_items", params)
        return {row[0]: row[1] for row in rows}

    async def pending_count(self, scope: str | None, pipeline: str | None, job_id: int) -> int:
        params = {"scope": scope or "", "pipeline": pipeline or "", "job_id": job_id}
        return int((await self._database.fetch("pending_count", params))[0][0])

    def _builder(
        self, tx: Transaction, job: Job | None, filter: ItemFilter, limit: int, sizes: Sizes
    ) -> _PageBuilder:
        return _PageBuilder(tx, job, filter, limit, sizes._asdict(), [])


def _phases(job: Job, filter: ItemFilter) -> list[str]:
    if filter.is_empty:
        return ["seq"]
    if filter.rulings:
        return ["ruled"]
    if filter.code is not None and filter.code != "CANCELLED":
        return ["code"]
    cancelled = job.state is JobState.CANCELLED
    phases = ["final"] if filter.final else []
    if cancelled and ItemStatus.SKIPPED in filter.final:
        phases.append("cancelled")
    if filter.open and not cancelled:
        phases.append("open")
    return phases or ["final"]


async def _ruled(builder: _PageBuilder, at: Position) -> Position | None:
    """Fills a page with items that people decided about.

    There are few: the rest of the filter is applied after reading."""
    assert builder.job is not None
    job, after = {"job_id": builder.job.id}, at.get("seq", 0)
    leased = await builder.tx.fetch("leased_ranges", job)
    kinds = [str(kind) for kind in builder.filter.rulings]
    while True:
        limits = {"after": after, "kinds": kinds, "limit": builder.limit + 1}
        rows = await builder.tx.scan("page_of_ruled", {**job, **builder.sizes, **limits})
        found = [_item(row, builder.job, leased) for row in rows]
        more = _fill(builder, [item for item in found if builder.filter.fits(item)])
        if more is not None or len(rows) <= builder.limit:
            return more
        after = found[-1].seq
        if not builder.room:
            return {"seq": after}


async def _with_rulings(builder: _PageBuilder) -> list[ItemView]:
    assert builder.job is not None
    rulings = await rulings_of(builder.tx, builder.job.id, [item.seq for item in builder.items])
    if not rulings:
        return builder.items
    return [item._replace(ruling=rulings.get(item.seq)) for item in builder.items]


async def _in_order(builder: _PageBuilder, at: Position, query: str) -> Position | None:
    assert builder.job is not None
    job = {"job_id": builder.job.id}
    params = {**job, **builder.sizes, "after": at.get("seq", 0), "limit": builder.room + 1}
    rows = await builder.tx.scan(query, params)
    leased = await builder.tx.fetch("leased_ranges", job)
    return _fill(builder, [_item(row, builder.job, leased) for row in rows])


async def _by_status(builder: _PageBuilder, at: Position) -> Position | None:
    """Merges one seek for each status: an index on (status, time) gives no order over two."""
    found: list[ItemView] = []
    for status in builder.filter.final:
        found += await _changed(builder, at, "page_by_status", {"status": status})
    found.sort(key=_changed_at)
    return _fill(builder, found)


async def _by_code(builder: _PageBuilder, at: Position) -> Position | None:
    statuses = {*builder.filter.final, *(["PENDING"] if builder.filter.open else [])}
    params = {"code": builder.filter.code, "statuses": sorted(map(str, statuses))}
    return _fill(builder, await _changed(builder, at, "page_by_code", params))


async def _changed(
    builder: _PageBuilder, at: Position, query: str, extra: Mapping[str, Any]
) -> list[ItemView]:
    assert builder.job is not None
    filter = builder.filter
    start = datetime.fromisoformat(at["at"]) if "at" in at else filter.since or EARLIEST
    params = {
        **builder.sizes,
        **extra,
        "job_id": builder.job.id,
        "updated_at": start,
        "seq": at.get("seq", 0),
        "until": filter.until or LATEST,
        "limit": builder.room + 1,
    }
    rows = await builder.tx.scan(query, params)
    leased = await builder.tx.fetch("leased_ranges", {"job_id": builder.job.id})
    return [_item(row, builder.job, leased) for row in rows]


def _changed_at(item: ItemView) -> tuple[datetime, int]:
    return (item.updated_at or EARLIEST, item.seq)


def _fill(builder: _PageBuilder, found: list[ItemView]) -> Position | None:
    """Adds the items that fit; returns where to continue if some did not."""
    room = builder.room
    builder.items += found[:room]
    if len(found) <= room:
        return None
    if not room:
        return {}
    last = found[room - 1]
    at = {} if last.updated_at is None else {"at": last.updated_at.isoformat()}
    return {"seq": last.seq, **at}


async def _open_of_job(builder: _PageBuilder, at: Position) -> Position | None:
    assert builder.job is not None
    return await _open(builder, at, "open_ranges_of_job", {"job_id": builder.job.id})


async def _open(
    builder: _PageBuilder, at: Position, query: str, extra: Mapping[str, Any]
) -> Position | None:
    """Fills a page with open items.

    They lie only in ranges, so the cost does not grow with what is finished. After many ranges
    without any, the page ends early, with the place to continue from."""
    filter = builder.filter
    start = at.get("at") or (filter.since or EARLIEST).isoformat()
    place = {"at": start, "range": at.get("range", 0), "seq": at.get("seq", 0)}
    for _ in range(_MOST_RANGES // _RANGES):
        params = {
            **extra,
            "since": datetime.fromisoformat(place["at"]),
            "id": place["range"],
            "until": filter.until or LATEST,
            "want": _wanted_leases(filter),
            "limit": _RANGES,
            "size": builder.limit + 1,
        }
        ranges = [_OpenRange(*row) for row in await builder.tx.fetch(query, params)]
        for group in _groups(ranges, place, builder.limit):
            found = await _open_items(builder, group, place)
            room = builder.room
            builder.items += [item for _, item in found[:room]]
            if len(found) > room:
                last, item = found[room - 1]
                return last.place(item.seq) if room else place
            place = group[-1].place(group[-1].hi)
        if len(ranges) < _RANGES:
            return None
    return place


class _OpenRange(NamedTuple):
    id: int
    job_id: int
    lo: int
    hi: int
    again: int
    since: Any
    worker: str | None
    leased: int
    size: int  # an upper bound; a larger again range is cut off above a page's size

    def place(self, seq: int) -> Position:
        since = parse_instant(self.since) or EARLIEST
        return {"at": since.isoformat(), "range": self.id, "seq": seq}


def _wanted_leases(filter: ItemFilter) -> int:
    """Returns the filter as the queries spell it: 0 any, 1 leased, 2 free."""
    if len(filter.open) == 2:
        return 0
    return 1 if filter.open == [ItemStatus.PROCESSING] else 2


def _groups(
    ranges: Sequence[_OpenRange], place: Position, limit: int
) -> Iterator[list[_OpenRange]]:
    """Groups small ranges to be read together, up to a page's size: one query for each of a hundred
    would be slow. A large one, or one of which a part was shown before, is read by itself."""
    group: list[_OpenRange] = []
    for candidate in ranges:
        alone = candidate.size > limit or candidate.id == place["range"]
        if group and (
            alone or sum(open_range.size for open_range in group) + candidate.size > limit
        ):
            yield group
            group = []
        if alone:
            yield [candidate]
        else:
            group.append(candidate)
    if group:
        yield group


async def _open_items(
    builder: _PageBuilder, group: Sequence[_OpenRange], place: Position
) -> list[tuple[_OpenRange, ItemView]]:
    """Reads open items in order; of a range that is read by itself only what the page can take, and
    one more."""
    rows: list[Values]
    if len(group) == 1:
        rows = [(group[0].id, *row) for row in await _rows_of_one(builder, group[0], place)]
    else:
        rows = await _rows_of_several(builder, group)
    order = {open_range.id: number for number, open_range in enumerate(group)}
    rows.sort(key=lambda row: (order[row[0]], row[1]))
    pairs = [(group[order[row[0]]], row) for row in rows]
    return [(open_range, _open_item(open_range, *row[1:])) for open_range, row in pairs]


async def _rows_of_one(
    builder: _PageBuilder, open_range: _OpenRange, place: Position
) -> Sequence[Values]:
    after = place["seq"] if open_range.id == place["range"] else 0
    params = {
        **builder.sizes,
        "job_id": open_range.job_id,
        "range_id": open_range.id,
        "hi": open_range.hi,
        "after": max(after, open_range.lo - 1),
        "limit": builder.room + 1,
    }
    return await builder.tx.scan("page_of_again" if open_range.again else "page_of_fresh", params)


async def _rows_of_several(builder: _PageBuilder, group: Sequence[_OpenRange]) -> list[Values]:
    rows: list[Values] = []
    for query, again in (("open_of_fresh_ranges", 0), ("open_of_again_ranges", 1)):
        range_ids = [open_range.id for open_range in group if open_range.again == again]
        if range_ids:
            rows += await builder.tx.scan(query, {**builder.sizes, "range_ids": range_ids})
    return rows


def _open_item(
    open_range: _OpenRange,
    seq: int,
    text: str,
    code: str | None = None,
    message: str | None = None,
    tries: int = 0,
    attempts: int = 0,
    at: Any = None,
) -> ItemView:
    """Returns an open item.

    One of a fresh range has nothing but its input, and has waited since its range has."""
    status = ItemStatus.PROCESSING if open_range.leased == 1 else ItemStatus.PENDING
    worker = open_range.worker if open_range.leased == 1 else None
    since = parse_instant(at or open_range.since)
    return ItemView(
        seq=seq,
        input=text,
        status=status,
        result=None,
        error_code=code,
        error_message=message,
        tries=tries,
        attempts=attempts,
        updated_at=since,
        worker=worker,
        job_id=open_range.job_id,
    )


def _item(row: Values, job: Job, leased: Sequence[Row]) -> ItemView:
    """Returns an item.

    Without an outcome it is PENDING; under a live lease PROCESSING; in a cancelled job SKIPPED."""
    seq, text, status, result, code, message, tries, attempts, at, range_id = row
    worker = None
    if status in (None, ItemStatus.PENDING):
        if job.state is JobState.CANCELLED:
            status, code, message = ItemStatus.SKIPPED, "CANCELLED", "the job was cancelled"
        else:
            worker = holder_of(seq, status, range_id, leased)
            status = ItemStatus.PENDING if worker is None else ItemStatus.PROCESSING
    return ItemView(
        seq=seq,
        input=text,
        status=ItemStatus(status),
        result=result,
        error_code=code,
        error_message=message,
        tries=tries or 0,
        attempts=attempts or 0,
        updated_at=parse_instant(at),
        worker=worker,
        job_id=job.id,
    )


def holder_of(
    seq: int, status: str | None, range_id: int | None, leased: Sequence[Row]
) -> str | None:
    """Returns which worker holds the open item's range now."""
    for leased_id, lo, hi, again, worker in leased:
        if leased_id == range_id if again else status is None and lo <= seq <= hi:
            return str(worker)
    return None


_PHASES: dict[str, Callable[[_PageBuilder, Position], Awaitable[Position | None]]] = {
    "seq": partial(_in_order, query="page_by_seq"),
    "code": _by_code,
    "final": _by_status,
    "cancelled": partial(_in_order, query="page_of_cancelled"),
    "ruled": _ruled,
    "open": _open_of_job,
}
