"""Ingest: rows, their range, their keys and the cursor in one transaction."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, NamedTuple

import orjson

from holdfast.errors import DiscoveryError, LeaseLost
from holdfast.model import ItemStatus, JobState, SliceKind, StreamState
from holdfast.pipeline import Dedupe
from holdfast.store.announcements import announce
from holdfast.store.counters import add_counts
from holdfast.store.database import Database
from holdfast.store.decisions import DecisionRow, add_decisions
from holdfast.store.driver import Transaction


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


class NewItem(NamedTuple):
    """A record as it becomes a row. `key` and `content_hash` matter where keys are deduped."""

    input: str
    key: str | None = None
    content_hash: str = ""


@dataclass(frozen=True, slots=True)
class IngestPage:
    """A page on its way in: `items` where keys matter, else plain `inputs`, which cost less."""

    items: Sequence[NewItem]
    next_cursor: Any
    end: bool
    expected_count: int | None = None
    inputs: Sequence[str] = ()
    notes: Any = None

    @property
    def records_count(self) -> int:
        return len(self.items) + len(self.inputs)


@dataclass(frozen=True, slots=True)
class Ingested:
    """What became of a page: `state` is the stream's after it."""

    accepted: int
    known: int
    state: StreamState
    waited_seconds: float = 0.0  # for a connection, or for SQLite's writer


#: Writes what a page tells besides its records, in the transaction that moves the cursor.
Note = Callable[[Transaction], Awaitable[None]]


class Ingest:
    def __init__(self, database: Database, new_token: Callable[[], str]) -> None:
        self._database = database
        self._new_token = new_token

    async def lease_stream(self, job_id: int, worker: str, seconds: float) -> StreamLease | None:
        """Takes a stream of the job that has more pages and that nobody holds."""
        token = self._new_token()

        async def body(tx: Transaction) -> StreamLease | None:
            found = await tx.fetch("leasable_stream", {"job_id": job_id})
            if not found:
                return None
            hold = {"id": found[0][0], "token": token, "worker": worker, "seconds": seconds}
            rows = await tx.take("lease_stream", hold)
            if not rows:
                return None
            begun = {"stream_id": found[0][0], "worker": worker}
            await tx.run("end_lost_slices", begun)
            slice_id = (await tx.take("add_slice", begun))[0][0]
            return _stream_lease(rows[0], token, slice_id)

        return await self._database.write("lease_stream", body)

    async def ingest(
        self,
        stream: StreamLease,
        page: IngestPage,
        worker: str,
        seconds: float,
        dedupe: Dedupe | None = None,
        note: Note | None = None,
        decisions: Sequence[DecisionRow] = (),
    ) -> Ingested:
        """Writes a page and moves the cursor past it; at a cap, past the part that fits."""
        first_seq, waited = await self._take_sequence(stream.job_id, page.records_count)

        async def body(tx: Transaction) -> Ingested:
            room = await _room(tx, stream)
            chosen = await _choose(tx, stream.job_id, first_seq, page, room, dedupe)
            advanced = await _advance(tx, stream, page, chosen, seconds)
            if not await _remember_cursor(tx, stream, page, chosen):
                raise DiscoveryError(
                    f"{stream.source} gave the same cursor twice: {page.next_cursor!r}"
                )
            await _add_items(tx, stream.job_id, chosen)
            if note is not None:
                await note(tx)
            if chosen.count:
                await announce(tx, stream.job_id, SliceKind.PROCESS)
            counts = {"accepted": chosen.count, "known": chosen.known}
            await add_counts(tx, stream.job_id, worker, **counts)
            await add_decisions(tx, stream.job_id, worker, decisions)
            if advanced is not StreamState.RUNNING:
                await _end_slice(tx, stream, advanced.lower())
                await _end_discovery(tx, stream.job_id)
            return Ingested(chosen.count, chosen.known, advanced, waited + tx.waited_seconds)

        try:
            return await self._database.write("ingest", body)
        except _TakenBefore as taken:
            return Ingested(0, 0, taken.state)

    async def renew_stream(self, stream: StreamLease, seconds: float) -> None:
        """Keeps the stream while its source takes long for a page."""

        async def body(tx: Transaction) -> None:
            hold = {"id": stream.id, "token": stream.token, "seconds": seconds}
            if not await tx.take("renew_stream", hold):
                raise LeaseLost(f"stream {stream.id} was taken over")

        await self._database.write("renew_stream", body)

    async def release_stream(
        self, stream: StreamLease, delay: float = 0.0, error: str | None = None
    ) -> None:
        """Ends a slice; with `error`, after a failure that waiting may mend."""

        async def body(tx: Transaction) -> None:
            params = {
                "id": stream.id,
                "token": stream.token,
                "delay": delay,
                "failed": 0 if error is None else 1,
                "error": error,
            }
            await _end_slice(tx, stream, "released" if error is None else "put off", error)
            await tx.run("release_stream", params)

        await self._database.write("release_stream", body)

    async def fail_stream(self, stream: StreamLease, error: str) -> None:
        """Ends discovery with an error; the cursor stays where it is."""

        async def body(tx: Transaction) -> None:
            await _end_slice(tx, stream, "failed", error)
            await tx.run("fail_stream", {"id": stream.id, "token": stream.token, "error": error})
            await _end_discovery(tx, stream.job_id)

        await self._database.write("fail_stream", body)

    async def _take_sequence(self, job_id: int, count: int) -> tuple[int, float]:
        """A block of numbers, taken ahead so that the page's transaction holds no lock on it; and
        how long it waited for a connection."""

        async def body(tx: Transaction) -> tuple[int, float]:
            rows = await tx.take("take_sequence", {"job_id": job_id, "count": count})
            if not rows:
                raise LeaseLost(f"job {job_id} is gone")
            return int(rows[0][0]), tx.waited_seconds

        return await self._database.write("take_sequence", body, relaxed=False)


class _TakenBefore(Exception):
    """This very page was committed and its reply lost. Raised, so that the keys which the second
    try moved are rolled back."""

    def __init__(self, state: StreamState) -> None:
        self.state = state


@dataclass(slots=True)
class _Chosen:
    """The rows of a page that become items, and how much of the page they use up."""

    rows: list[tuple[int, NewItem]]
    known: int
    consumed: int
    first_seq: int = 0
    inputs: Sequence[str] = ()  # instead of rows, numbered from first_seq on

    @property
    def count(self) -> int:
        return len(self.rows) + len(self.inputs)


async def _room(tx: Transaction, stream: StreamLease) -> int | None:
    """How many new items the caps leave. The job's row is held until the page is committed:
    shared, so that a cancel waits for the page; alone, where a cap has to be exact."""
    job = {"job_id": stream.job_id}
    cap = await tx.fetch("job_cap", job)
    capped = bool(cap) and cap[0][0] is not None
    rows = await tx.fetch("job_state" if capped else "share_job", job)
    if not rows or rows[0][0] not in (JobState.RUNNING, JobState.PAUSED):
        raise LeaseLost(f"job {stream.job_id} takes no more items")
    rooms = []
    if capped:
        accepted = (await tx.fetch("accepted_count", job))[0][0]
        rooms.append(rows[0][1] - accepted)
    if stream.max_items is not None:
        rooms.append(stream.max_items - stream.items_count)
    return max(0, min(rooms)) if rooms else None


async def _choose(
    tx: Transaction,
    job_id: int,
    first_seq: int,
    page: IngestPage,
    room: int | None,
    dedupe: Dedupe | None,
) -> _Chosen:
    if dedupe is not None:
        return await _choose_by_key(tx, job_id, first_seq, page.items, room, dedupe)
    if page.inputs:
        inputs = page.inputs if room is None else page.inputs[:room]
        return _Chosen([], 0, len(inputs), first_seq, inputs)
    taken = page.items if room is None else page.items[:room]
    return _Chosen(list(enumerate(taken, first_seq)), 0, len(taken))


async def _choose_by_key(
    tx: Transaction,
    job_id: int,
    first_seq: int,
    items: Sequence[NewItem],
    room: int | None,
    dedupe: Dedupe,
) -> _Chosen:
    known = await _known_keys(tx, dedupe, items)
    chosen = _Chosen([], 0, 0)
    seen: set[str] = set()
    while True:
        new, again = _pick(chosen, seen, first_seq, items, room, known, dedupe)
        kept = await _add_keys(tx, job_id, dedupe, new)
        kept |= await _move_keys(tx, job_id, dedupe, again, known)
        picked = new | again
        chosen.known += len(picked) - len(kept)
        chosen.rows += [row for key, row in picked.items() if key in kept]
        # Keys that another job got meanwhile leave room for more of the page.
        if len(kept) == len(picked) or chosen.consumed == len(items):
            break
    chosen.rows.sort()
    return chosen


_ByKey = dict[str, tuple[int, NewItem]]


def _pick(
    chosen: _Chosen,
    seen: set[str],
    first_seq: int,
    items: Sequence[NewItem],
    room: int | None,
    known: dict[str, _Known],
    dedupe: Dedupe,
) -> tuple[_ByKey, _ByKey]:
    """Goes on through the page until the room is used up: keys that are new, keys to be taken
    again."""
    new: _ByKey = {}
    again: _ByKey = {}
    start = chosen.consumed
    for seq, item in enumerate(items[start:], first_seq + start):
        if room is not None and len(new) + len(again) + len(chosen.rows) >= room:
            break
        chosen.consumed += 1
        if item.key is None:
            chosen.rows.append((seq, item))
        elif item.key in seen:
            chosen.known += 1
        elif item.key not in known:
            new[item.key] = (seq, item)
        elif _takes_again(known[item.key], item, dedupe):
            again[item.key] = (seq, item)
        else:
            chosen.known += 1
        if item.key is not None:
            seen.add(item.key)
    return new, again


class _Known(NamedTuple):
    content_hash: str
    job_id: int
    seq: int
    job_state: str | None
    status: str | None


async def _known_keys(
    tx: Transaction, dedupe: Dedupe, items: Sequence[NewItem]
) -> dict[str, _Known]:
    keys = sorted({item.key for item in items if item.key is not None})
    rows = await tx.fetch("known_keys", {"scope": dedupe.scope, "keys": keys})
    return {row[0]: _Known(*row[1:]) for row in rows}


def _takes_again(known: _Known, item: NewItem, dedupe: Dedupe) -> bool:
    """A known key is skipped while its item is DONE, or open in a live job, with the same
    content; otherwise the pipeline's policy decides."""
    is_open = known.status in (None, ItemStatus.PENDING)
    live = known.job_state in (JobState.QUEUED, JobState.RUNNING, JobState.PAUSED)
    settled_well = known.status == ItemStatus.DONE or (is_open and live)
    if settled_well and known.content_hash == item.content_hash:
        return False
    policy = dedupe.changed if settled_well else dedupe.failed
    return policy == "again"


async def _add_keys(tx: Transaction, job_id: int, dedupe: Dedupe, new: _ByKey) -> set[str]:
    if not new:
        return set()
    rows = [(key, item.content_hash, seq) for key, (seq, item) in sorted(new.items())]
    params = {"scope": dedupe.scope, "job_id": job_id, "rows": orjson.dumps(rows).decode()}
    return {row[0] for row in await tx.take("add_keys", params)}


async def _move_keys(
    tx: Transaction,
    job_id: int,
    dedupe: Dedupe,
    again: _ByKey,
    known: dict[str, _Known],
) -> set[str]:
    if not again:
        return set()
    rows = [
        (key, item.content_hash, seq, known[key].job_id, known[key].seq)
        for key, (seq, item) in sorted(again.items())
    ]
    params = {"scope": dedupe.scope, "job_id": job_id, "rows": orjson.dumps(rows).decode()}
    return {row[0] for row in await tx.take("move_keys", params)}


async def _advance(
    tx: Transaction, stream: StreamLease, page: IngestPage, chosen: _Chosen, seconds: float
) -> StreamState:
    cut = chosen.consumed < page.records_count
    records = stream.records_count + chosen.consumed
    state, error = _state_after(page, cut, records)
    params = {
        "id": stream.id,
        "token": stream.token,
        "pages_count": stream.pages_count,
        "cursor": orjson.dumps(_cursor_after(stream, page, chosen, state)).decode(),
        "records": chosen.consumed,
        "items": chosen.count,
        "state": state,
        "error": error,
        "seconds": seconds,
        "expected_count": page.expected_count,
    }
    if await tx.take("advance_stream", params):
        return state
    rows = await tx.fetch("stream_pages_count", {"id": stream.id, "token": stream.token})
    if rows and rows[0][0] == stream.pages_count + 1:
        raise _TakenBefore(StreamState(rows[0][1]))
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
    stream: StreamLease, page: IngestPage, chosen: _Chosen, state: StreamState
) -> dict[str, Any]:
    """Past the page; or, where the stream stopped in it, past the records that were taken."""
    if state in (StreamState.RUNNING, StreamState.COMPLETE):
        return {"page": page.next_cursor, "skip": 0}
    before = stream.cursor or {"page": None, "skip": 0}
    return {"page": before["page"], "skip": before["skip"] + chosen.consumed}


async def _remember_cursor(
    tx: Transaction, stream: StreamLease, page: IngestPage, chosen: _Chosen
) -> bool:
    if page.end or chosen.consumed < page.records_count:
        return True
    written = orjson.dumps(page.next_cursor, option=orjson.OPT_SORT_KEYS)
    params = {
        "stream_id": stream.id,
        "generation": stream.generation,
        "cursor_hash": hashlib.sha256(written).hexdigest(),
        "number": stream.pages_count + 1,
        "records": chosen.consumed,
        "items": chosen.count,
    }
    return bool(await tx.take("add_stream_page", params))


async def _add_items(tx: Transaction, job_id: int, chosen: _Chosen) -> None:
    if not chosen.count:
        return
    seqs: Sequence[int] = range(chosen.first_seq, chosen.first_seq + len(chosen.inputs))
    inputs = chosen.inputs
    keys: Iterator[str | None] = repeat(None)
    if chosen.rows:
        seqs = [seq for seq, _ in chosen.rows]
        inputs = [item.input for _, item in chosen.rows]
        keys = iter([item.key for _, item in chosen.rows])
    rows = zip(repeat(job_id), seqs, keys, inputs, strict=False)
    await tx.copy("items", ("job_id", "seq", "key", "input"), rows)
    params = {
        "job_id": job_id,
        "lo": seqs[0],
        "hi": seqs[-1],
        "again": 0,
        "delay": 0.0,
        "settled": 0,
        "expiries": 0,
        "item_bytes": sum(map(len, inputs)) // len(inputs),
        "waiting_for": None,
    }
    await tx.take("add_range", params)


async def _end_discovery(tx: Transaction, job_id: int) -> None:
    """Locks the job first and looks in the next statement: of two last pages at once, each
    would see the other's stream still running."""
    await tx.fetch("hold_job", {"job_id": job_id})
    await tx.run("discover_job", {"job_id": job_id})


async def _end_slice(
    tx: Transaction, stream: StreamLease, ended: str, error: str | None = None
) -> None:
    await tx.run("end_slice", {"id": stream.slice_id, "ended": ended, "error": error})


def _stream_lease(row: Sequence[Any], token: str, slice_id: int) -> StreamLease:
    cursor = orjson.loads(row[6]) if row[6] else None
    values = [*row[:6], cursor, *row[7:], token, slice_id]
    return StreamLease(*values)
