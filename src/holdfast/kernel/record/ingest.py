"""Ingest: rows, their range, their keys and the cursor in one transaction."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any

import orjson

from holdfast.errors import DiscoveryError, LeaseLost
from holdfast.kernel.database.database import Database, verb
from holdfast.kernel.database.driver import Row, Transaction
from holdfast.kernel.database.notices import tell_workers
from holdfast.kernel.database.rows import fields_of
from holdfast.kernel.record.counters import add_counts
from holdfast.kernel.record.decisions import DecisionRow, add_decisions
from holdfast.kernel.record.stream_history import (
    PageOfPass,
    add_page,
    begin_slice,
    end_slice,
    release_slice,
)
from holdfast.model import JobState, StreamState
from holdfast.reading import Dedupe
from holdfast_client.keys import NewItem, NewItems, known_keys, select_by_key, takes_again
from holdfast_client.sequence import stretches, take_sequence


@dataclass(slots=True)
class StreamLease:
    """A worker's hold on a stream: only its holder advances the cursor, page by page."""

    id: int
    pipeline: str
    source: str
    mode: str
    job_id: int
    generation: int
    cursor: Any  # {"page": the source's cursor, "skip": records of that page already taken}
    fingerprint: str
    pages_count: int
    records_count: int
    items_count: int
    max_items: int | None
    failures: int
    token: str
    slice_id: int


@dataclass(frozen=True, slots=True)
class IngestPage:
    """A page to ingest: `items` if keys matter, else plain `inputs`, which cost less."""

    items: Sequence[NewItem]
    next_cursor: Any
    end: bool
    expected_count: int | None = None
    inputs: Sequence[str] = ()
    notes: Any = None
    skipped: int = 0  # records at its beginning that were already ingested

    @property
    def records_count(self) -> int:
        return len(self.items) + len(self.inputs)


@dataclass(frozen=True, slots=True)
class Ingested:
    """The result of ingesting a page: `state` is the stream's after it."""

    accepted: int
    known: int
    state: StreamState
    held_back: bool = False  # the job is paused, or a kill switch is on
    waited_seconds: float = 0.0  # for a connection, or for SQLite's writer


#: Writes what a page contains besides the records taken from it, while the cursor is moved.
Note = Callable[[Transaction, int], Awaitable[None]]


class Ingest:
    def __init__(self, database: Database, new_token: Callable[[], str]) -> None:
        self._database = database
        self._new_token = new_token
        self.in_flight: set[str] = set()  # tokens of streams that may have been leased

    async def lease_stream(self, job_id: int, worker: str) -> StreamLease | None:
        """Leases a stream of the job that has more pages and that no worker holds."""
        token = self._new_token()
        self.in_flight.add(token)
        try:
            return await self._lease_stream(job_id, worker, token)
        finally:
            self.in_flight.discard(token)

    @verb("lease_stream")
    async def _lease_stream(
        self, tx: Transaction, job_id: int, worker: str, token: str
    ) -> StreamLease | None:
        free = await tx.fetch("leasable_stream", {"job_id": job_id})
        if not free:
            return None
        stream_id = free[0]["id"]
        hold = {"id": stream_id, "token": token, "worker": worker}
        rows = await tx.take("lease_stream", hold)
        if not rows:
            return None
        slice_id = await begin_slice(tx, stream_id, worker)
        return _stream_lease(rows[0], token, slice_id)

    async def ingest(
        self,
        stream: StreamLease,
        page: IngestPage,
        worker: str,
        dedupe: Dedupe | None = None,
        note: Note | None = None,
        decisions: Sequence[DecisionRow] = (),
    ) -> Ingested:
        """Writes a page and moves the cursor past it; at a cap, past the part that fits."""
        seqs, waited = await self._take_sequence(stream.job_id, page.records_count)
        try:
            ingested = await self._ingest(stream, page, worker, seqs, dedupe, note, decisions)
            return replace(ingested, waited_seconds=ingested.waited_seconds + waited)
        except _AlreadyIngested as earlier:
            return Ingested(0, 0, earlier.state)

    @verb
    async def _ingest(
        self,
        tx: Transaction,
        stream: StreamLease,
        page: IngestPage,
        worker: str,
        seqs: Sequence[int],
        dedupe: Dedupe | None,
        note: Note | None,
        decisions: Sequence[DecisionRow],
    ) -> Ingested:
        room, held_back = await _room(tx, stream)
        new_items = await _select(tx, stream.job_id, seqs, page, room, dedupe)
        advanced = await _advance(tx, stream, page, new_items)
        if not page.end and new_items.consumed == page.records_count:
            await _remember_cursor(tx, stream, page, new_items)
        await _add_items(tx, stream.job_id, new_items)
        if note is not None:
            await note(tx, page.skipped + new_items.consumed)
        if new_items.count:
            await tell_workers(tx, stream.job_id)
        counts = {"accepted": new_items.count, "known": new_items.known}
        await add_counts(tx, stream.job_id, **counts)
        await add_decisions(tx, stream.job_id, worker, decisions)
        if advanced is not StreamState.RUNNING:
            await end_slice(tx, stream.slice_id, advanced.lower())
            await _end_discovery(tx, stream.job_id)
        return Ingested(new_items.count, new_items.known, advanced, held_back, tx.waited_seconds)

    async def are_new(self, items: Sequence[NewItem], dedupe: Dedupe, seen: set[str]) -> list[bool]:
        """Whether a job would accept each item now; not if its key was `seen` before."""
        async with self._database.driver.reading() as tx:
            known = await known_keys(tx, dedupe, items)

        def is_new(item: NewItem) -> bool:
            if item.key is None or item.key in seen:
                return item.key is None
            seen.add(item.key)
            return item.key not in known or takes_again(known[item.key], item, dedupe)

        return [is_new(item) for item in items]

    @verb
    async def release_stream(
        self,
        tx: Transaction,
        stream: StreamLease,
        delay: float = 0.0,
        error: str | None = None,
        waiting_for: str | None = None,
    ) -> None:
        """Ends a slice; with `error`, after a failure that may go away by itself.

        `waiting_for` says what the stream waits for in other cases."""
        params = {
            "id": stream.id,
            "token": stream.token,
            "delay": delay,
            "failures": stream.failures if error is None else stream.failures + 1,
            "error": error,
            "waiting_for": waiting_for,
        }
        if error is None:
            await release_slice(tx, stream.slice_id)
        else:
            await end_slice(tx, stream.slice_id, "postponed", error)
        await tx.run("release_stream", params)

    @verb
    async def fail_stream(self, tx: Transaction, stream: StreamLease, error: str) -> None:
        """Ends discovery with an error; the cursor stays where it is."""
        await end_slice(tx, stream.slice_id, "failed", error)
        await tx.run("fail_stream", {"id": stream.id, "token": stream.token, "error": error})
        await _end_discovery(tx, stream.job_id)

    @verb(relaxed=True)
    async def _take_sequence(
        self, tx: Transaction, job_id: int, count: int
    ) -> tuple[Sequence[int], float]:
        """Takes numbers ahead, so that the page's transaction holds no lock on them; returns them
        and how long it waited for a connection."""
        return await take_sequence(tx, job_id, count), tx.waited_seconds


class _AlreadyIngested(Exception):
    """Raised if this page was committed and the reply was lost, so that the keys which the second
    try moved are rolled back."""

    def __init__(self, state: StreamState) -> None:
        self.state = state


async def _room(tx: Transaction, stream: StreamLease) -> tuple[int | None, bool]:
    """Returns how many new items the caps allow, and whether the stream has to stop after this
    page. The job's row is locked until the page is committed: shared, so that a cancel waits for
    the page; exclusively if a cap has to be exact."""
    job = {"job_id": stream.job_id}
    cap = await tx.fetch("job_cap", job | {"source": stream.source})
    capped = bool(cap) and cap[0]["max_items"] is not None
    rows = await tx.fetch("job_state" if capped else "share_job", job)
    if not rows or rows[0]["state"] not in (JobState.RUNNING, JobState.PAUSED):
        raise LeaseLost(f"job {stream.job_id} takes no more items")
    rooms = []
    if capped:
        count = (await tx.fetch("accepted_count", job))[0]["accepted"]
        rooms.append(rows[0]["max_items"] - count)
    if stream.max_items is not None:
        rooms.append(stream.max_items - stream.items_count)
    return max(0, min(rooms)) if rooms else None, bool(cap and cap[0]["held_back"])


async def _select(
    tx: Transaction,
    job_id: int,
    seqs: Sequence[int],
    page: IngestPage,
    room: int | None,
    dedupe: Dedupe | None,
) -> NewItems:
    if dedupe is not None:
        return await select_by_key(tx, job_id, seqs, page.items, room, dedupe)
    if page.inputs:
        inputs = page.inputs if room is None else page.inputs[:room]
        return NewItems([], 0, len(inputs), seqs, inputs)
    items = page.items if room is None else page.items[:room]
    return NewItems(list(zip(seqs, items, strict=False)), 0, len(items), seqs)


async def _advance(
    tx: Transaction, stream: StreamLease, page: IngestPage, new_items: NewItems
) -> StreamState:
    cut = new_items.consumed < page.records_count
    records = stream.records_count + new_items.consumed
    state, error = _state_after(page, cut, records)
    params = {
        "id": stream.id,
        "token": stream.token,
        "pages_count": stream.pages_count,
        "cursor": orjson.dumps(_cursor_after(stream, page, new_items, state)).decode(),
        "records": new_items.consumed,
        "items": new_items.count,
        "state": state,
        "error": error,
        "expected_count": page.expected_count,
    }
    if await tx.take("advance_stream", params):
        return state
    rows = await tx.fetch("stream_pages_count", {"id": stream.id, "token": stream.token})
    if rows and rows[0]["pages_count"] == stream.pages_count + 1:
        raise _AlreadyIngested(StreamState(rows[0]["state"]))
    raise LeaseLost(f"stream {stream.id} was taken over")


def _state_after(page: IngestPage, cut: bool, records: int) -> tuple[StreamState, str | None]:
    if cut:
        return StreamState.CAPPED, None
    if not page.end:
        return StreamState.RUNNING, None
    if page.expected_count is not None and records < page.expected_count:
        return (
            StreamState.FAILED,
            f"the source says it has {page.expected_count} records, but its pages gave {records}",
        )
    return StreamState.COMPLETE, None


def _cursor_after(
    stream: StreamLease, page: IngestPage, new_items: NewItems, state: StreamState
) -> dict[str, Any]:
    """Returns the cursor past the page; if the stream stopped in it, past the records that were
    taken."""
    if state in (StreamState.RUNNING, StreamState.COMPLETE):
        return {"page": page.next_cursor, "skip": 0}
    before = stream.cursor or {"page": None, "skip": 0}
    return {"page": before["page"], "skip": before["skip"] + new_items.consumed}


async def _remember_cursor(
    tx: Transaction, stream: StreamLease, page: IngestPage, new_items: NewItems
) -> None:
    place = PageOfPass(stream.id, stream.generation, stream.pages_count + 1)
    if not await add_page(tx, place, page.next_cursor, new_items.consumed, new_items.count):
        raise DiscoveryError(
            f"{stream.source} returned the same cursor twice: {page.next_cursor!r}"
        )


async def _add_items(tx: Transaction, job_id: int, new_items: NewItems) -> None:
    if not new_items.count:
        return
    inputs = new_items.inputs
    seqs = new_items.taken[: len(inputs)]
    keys: Iterator[str | None] = repeat(None)
    if new_items.rows:
        seqs = [seq for seq, _ in new_items.rows]
        inputs = [item.input for _, item in new_items.rows]
        keys = iter([item.key for _, item in new_items.rows])
    rows = zip(repeat(job_id), seqs, keys, inputs, strict=False)
    await tx.copy("items", ("job_id", "seq", "key", "input"), rows)
    for lo, hi in stretches(new_items.taken, seqs):
        params = {
            "job_id": job_id,
            "lo": lo,
            "hi": hi,
            "again": 0,
            "delay": 0.0,
            "settled": 0,
            "expiries": 0,
            "item_bytes": sum(map(len, inputs)) // len(inputs),
            "waiting_for": None,
        }
        await tx.take("add_range", params)


async def _end_discovery(tx: Transaction, job_id: int) -> None:
    """Ends discovery if this was the last stream.

    Locks the job first and looks in the next statement: two last pages at once would each see the
    other's stream still running."""
    await tx.fetch("hold_job", {"job_id": job_id})
    await tx.run("discover_job", {"job_id": job_id})


def _stream_lease(row: Row, token: str, slice_id: int) -> StreamLease:
    cursor = orjson.loads(row["cursor"]) if row["cursor"] else None
    fields = fields_of(row) | {"cursor": cursor}
    return StreamLease(**fields, token=token, slice_id=slice_id)
