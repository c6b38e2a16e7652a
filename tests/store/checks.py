"""Steps that the store's tests share, and the promises that hold after every one of them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

import orjson

from holdfast.errors import LeaseLost
from holdfast.features.console import open_console
from holdfast.features.items.items import ItemFilter, ItemView
from holdfast.kernel import (
    Claimed,
    IngestPage,
    NewItem,
    NewJob,
    NewStream,
    Settlement,
    Store,
    StreamLease,
    open_store,
)
from holdfast.kernel.record.ingest import Ingested
from holdfast.model import ItemStatus, JobState, Lease, Outcome
from holdfast.pipeline import Dedupe

MANY = 100_000
MEGABYTES = 100_000_000


async def audit_of(store: Store, job_id: int) -> list[dict[str, Any]]:
    """Everything that was done to a job, oldest first."""
    entries = await open_console(store).audit.page(None, 10_000, job_id=job_id)
    return entries[::-1]


async def make_job(
    store: Store,
    *sources: str,
    pipeline: str = "demo",
    max_items: int | None = None,
    source_cap: int | None = None,
) -> int:
    """A running job; without named sources, with one of its own."""
    streams = [NewStream(source, source, source_cap) for source in sources or ("rows {job}",)]
    new = NewJob(pipeline, "a job", streams, max_items=max_items)
    return await store.jobs.create(new, "tester")


async def lease_stream(store: Store, job_id: int, worker: str = "walker") -> StreamLease:
    stream = await store.ingest.lease_stream(job_id, worker)
    assert stream is not None
    return stream


def records(count: int, start: int = 0) -> list[NewItem]:
    return [NewItem(f'{{"n": {start + number}}}') for number in range(count)]


def keyed(*keys: str, content: str = "same") -> list[NewItem]:
    return [NewItem(orjson.dumps({"k": key}).decode(), key, content) for key in keys]


def page_of(stream: StreamLease, items: Sequence[NewItem], **options: Any) -> IngestPage:
    options.setdefault("next_cursor", {"after": stream.pages_count + 1})
    options.setdefault("end", False)
    return IngestPage(items, **options)


async def ingest(
    store: Store,
    stream: StreamLease,
    items: Sequence[NewItem],
    dedupe: Dedupe | None = None,
    worker: str = "walker",
    **options: Any,
) -> Ingested:
    """Ingests a page and moves the lease on, as its holder does."""
    page = page_of(stream, items, **options)
    ingested = await store.ingest.ingest(stream, page, worker, dedupe)
    rows = await fetch(
        store,
        "select cursor, pages_count, records_count, items_count from streams where id = :id",
        id=stream.id,
    )
    stream.cursor = orjson.loads(rows[0][0])
    stream.pages_count, stream.records_count, stream.items_count = rows[0][1:]
    return ingested


async def filled_job(store: Store, *page_sizes: int, **options: Any) -> int:
    """A job whose source ended after these pages; each page that has records is one range."""
    job_id = await make_job(store, **options)
    stream = await lease_stream(store, job_id)
    for number, size in enumerate(page_sizes):
        end = number == len(page_sizes) - 1
        await ingest(store, stream, records(size, number * 1000), end=end)
    return job_id


async def claim(
    store: Store,
    job_id: int,
    size: int = MANY,
    worker: str = "one",
    max_bytes: int = MEGABYTES,
) -> list[Claimed]:
    return await store.leases.claim(job_id, worker, size, max_bytes)


async def claim_one(store: Store, job_id: int, size: int = MANY, worker: str = "one") -> Claimed:
    claims = await claim(store, job_id, size, worker)
    assert len(claims) == 1
    return claims[0]


def seqs_of(*claims: Claimed) -> list[int]:
    return [row[0] for claimed in claims for row in claimed.rows]


def outcome_of(row: Sequence[Any], status: ItemStatus = ItemStatus.DONE, **fields: Any) -> Outcome:
    """One more try of the item in a claimed row."""
    seq, _, tries, attempts, misses = row
    if status is ItemStatus.DONE:
        fields.setdefault("result", orjson.dumps({"seq": seq}).decode())
    if status in (ItemStatus.ERROR, ItemStatus.PENDING):
        fields.setdefault("error_code", "TIMEOUT")
        fields.setdefault("error_message", "it took too long")
    return Outcome(seq, status, tries + 1, attempts + 1, misses, **fields)


def settlement_of(
    claimed: Claimed,
    status: ItemStatus = ItemStatus.DONE,
    only: Sequence[int] | None = None,
    **fields: Any,
) -> Settlement:
    """All of the claim, which ends its range, or a part of it, which does not."""
    rows = [row for row in claimed.rows if only is None or row[0] in only]
    outcomes = [outcome_of(row, status, **fields) for row in rows]
    return Settlement(claimed.lease, outcomes, last=only is None)


async def settle(
    store: Store,
    claimed: Claimed,
    status: ItemStatus = ItemStatus.DONE,
    only: Sequence[int] | None = None,
    worker: str = "one",
    **fields: Any,
) -> list[Lease]:
    settlement = settlement_of(claimed, status, only, **fields)
    lost = await store.outcomes.settle(claimed.lease.job_id, worker, [settlement])
    if not lost:
        claimed.lease.settled += 1
    return lost


async def work_off(store: Store, job_id: int, status: ItemStatus = ItemStatus.DONE) -> int:
    """Claims and settles until nothing is due; returns how many items that were."""
    number = 0
    while claims := await claim(store, job_id):
        for claimed in claims:
            assert await settle(store, claimed, status) == []
            number += len(claimed.rows)
    return number


async def finished_job(store: Store, *statuses: ItemStatus, **options: Any) -> int:
    """A DONE job whose items ended so, in this order."""
    job_id = await filled_job(store, len(statuses), **options)
    claimed = await claim_one(store, job_id)
    ended = zip(claimed.rows, statuses, strict=True)
    outcomes = [outcome_of(row, status) for row, status in ended]
    settlement = Settlement(claimed.lease, outcomes, last=True)
    assert await store.outcomes.settle(job_id, "one", [settlement]) == []
    assert await store.outcomes.complete(job_id) is JobState.DONE
    return job_id


async def lose(store: Store, worker: str | None = None) -> list[int]:
    """One worker dies, or all that hold something; returns the jobs of their ranges."""
    names = [worker]
    if worker is None:
        holders = "select worker from ranges union select worker from streams"
        names = [row[0] for row in await fetch(store, holders)]
    lost = [await store.workers.stop_worker(name) for name in names if name is not None]
    return sorted({job_id for jobs in lost for job_id in jobs})


async def crash(store: Store, job_id: int) -> list[list[int]]:
    """A worker claims all it can get and dies of it; returns what each of its ranges held."""
    claims = await claim(store, job_id, worker="doomed")
    await store.workers.stop_worker("doomed")
    return [seqs_of(claimed) for claimed in claims]


async def execute(store: Store, sql: str, **params: Any) -> None:
    whole = spelled(store, sql)
    await store.database.write("test", lambda tx: tx.execute(whole, params))


#: Every schedule should have fired long ago.
MAKE_DUE = "update schedules set next_at = '2020-01-01T00:00:00.000Z'"


def execute_at(url: str, sql: str) -> None:
    """Changes a database beside the processes that work on it."""

    async def main() -> None:
        store = await open_store(url)
        try:
            await execute(store, sql)
        finally:
            await store.close()

    asyncio.run(main())


async def fetch(store: Store, sql: str, **params: Any) -> list[Any]:
    return [tuple(row) for row in await store.database.fetch(spelled(store, sql), params)]


def spelled(store: Store, sql: str) -> str:
    """A statement, not a query's name, with the whole names of its tables."""
    driver = store.database.driver
    return driver.names.in_query(driver.dialect, sql) if " " in sql else sql


async def items_of(
    store: Store, job_id: int, statuses: Sequence[ItemStatus] = ()
) -> list[ItemView]:
    job = await store.reads.job(job_id)
    pages = open_console(store).items.every(job, ItemFilter(tuple(statuses)))
    return [item async for page in pages for item in page]


async def statuses(store: Store, job_id: int) -> dict[int, ItemStatus]:
    return {item.seq: item.status for item in await items_of(store, job_id)}


async def status_counts(store: Store, job_id: int) -> dict[str, int]:
    return dict(Counter(str(status) for status in (await statuses(store, job_id)).values()))


async def state_of(store: Store, job_id: int) -> JobState:
    return (await store.reads.job(job_id)).state


async def rows_written(store: Store, job_id: int) -> tuple[Any, ...]:
    """Everything of a job that a verb which promises to write nothing must leave as it is."""
    found = []
    for table in ("items", "outcomes", "attempts", "ranges", "counters", "decisions", "audit"):
        rows = await fetch(store, f"select * from {table} where job_id = :job_id", job_id=job_id)
        found.append(sorted(str(tuple(row)) for row in rows))
    return tuple(found)


async def assert_sound(store: Store, job_id: int) -> None:
    """Counters equal rows, every item is accounted for, an open item is in exactly one range."""
    verification = await store.reads.verify(job_id)
    assert verification.problems == []
    counters = await store.reads.counters(job_id)
    assert counters.accepted == counters.finished + counters.open
    assert min(counters.open, counters.done, counters.error, counters.skipped) >= 0
    await _assert_each_open_item_in_one_range(store, job_id)


async def _assert_each_open_item_in_one_range(store: Store, job_id: int) -> None:
    ranges = await fetch(store, "select id, lo, hi, again from ranges where job_id = :j", j=job_id)
    items = await fetch(
        store,
        "select i.seq, o.status, o.range_id from items i left join outcomes o"
        " on o.job_id = i.job_id and o.seq = i.seq where i.job_id = :j",
        j=job_id,
    )
    again = {row[0] for row in ranges if row[3]}
    fresh = [(row[1], row[2]) for row in ranges if not row[3]]
    cancelled = await state_of(store, job_id) is JobState.CANCELLED
    if cancelled:
        assert not ranges, "a cancelled job has no ranges"
        return
    for seq, status, range_id in items:
        if status is None:
            assert sum(lo <= seq <= hi for lo, hi in fresh) == 1, f"item {seq} in one fresh range"
        elif status == ItemStatus.PENDING:
            assert range_id in again, f"item {seq} in one again range"
        else:
            assert range_id is None, f"finished item {seq} is in no range"


async def assert_all_sound(store: Store) -> None:
    # Of a job that is being deleted, there may be anything left.
    for row in await fetch(store, "select id from jobs where state <> 'DELETING'"):
        await assert_sound(store, row[0])


async def assert_takes_no_page(store: Store, stream: StreamLease) -> None:
    """The page is refused and leaves no trace."""
    before = await rows_written(store, stream.job_id)
    try:
        await store.ingest.ingest(stream, page_of(stream, records(3)), "walker")
    except LeaseLost:
        assert await rows_written(store, stream.job_id) == before
    else:
        raise AssertionError("the page was taken")


async def tables_of(store: Store) -> set[str]:
    """Without those by which SQLite keeps the words of a search."""
    if store.database.driver.dialect == "sqlite":
        rows = await fetch(
            store,
            "select name from pragma_table_list where type in ('table', 'virtual')"
            " and schema = 'main' and name like 'holdfast_%'",
        )
    else:
        rows = await fetch(store, "select tablename from pg_tables where schemaname = 'holdfast'")
    return {row[0].removeprefix("holdfast_") for row in rows} - {"schema_versions"}
