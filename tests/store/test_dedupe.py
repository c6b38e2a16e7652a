"""Keys: identity across jobs, and what the pipeline's policy makes of a known one."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.kernel import Store, StreamLease
from holdfast.model import ItemStatus, StreamState
from holdfast.pipeline import Dedupe
from holdfast_client.storable import storable_key
from tests.store.checks import (
    claim_one,
    execute,
    fetch,
    ingest,
    keyed,
    lease_stream,
    make_job,
    page_of,
    records,
    settle,
    statuses,
    work_off,
)

PLAIN = Dedupe("shop")


async def _stream(store: Store, max_items: int | None = None) -> StreamLease:
    return await lease_stream(store, await make_job(store, max_items=max_items))


async def _key(store: Store, key: str) -> tuple[int, int]:
    rows = await fetch(store, "select job_id, seq from keys where key = :key", key=key)
    return rows[0][0], rows[0][1]


async def test_known_key_makes_no_item_only_a_count(store: Store) -> None:
    first = await _stream(store)
    await ingest(store, first, keyed("a", "b"), PLAIN)
    await work_off(store, first.job_id)
    second = await _stream(store)
    taken = await ingest(store, second, keyed("a", "b", "c"), PLAIN)
    assert (taken.accepted, taken.known) == (1, 2)
    counters = await store.reads.counters(second.job_id)
    assert (counters.accepted, counters.known) == (1, 2)
    assert list(await statuses(store, second.job_id)) == [3]


async def test_key_twice_in_a_page_makes_one_item(store: Store) -> None:
    stream = await _stream(store)
    taken = await ingest(store, stream, keyed("a", "b", "a", "a"), PLAIN)
    assert (taken.accepted, taken.known) == (2, 2)


async def test_record_without_a_key_is_always_taken(store: Store) -> None:
    stream = await _stream(store)
    taken = await ingest(store, stream, [*records(2), *keyed("a"), *records(1)], PLAIN)
    assert taken.accepted == 4
    taken = await ingest(store, stream, [*records(2), *keyed("a")], PLAIN)
    assert (taken.accepted, taken.known) == (2, 1)


async def test_key_of_another_scope_is_unknown(store: Store) -> None:
    stream = await _stream(store)
    await ingest(store, stream, keyed("a"), PLAIN)
    taken = await ingest(store, stream, keyed("a"), Dedupe("market"))
    assert taken.accepted == 1


def test_keys_that_have_to_be_escaped_are_no_other_keys() -> None:
    """The text of an escape is a key of its own."""
    keys = ("a\0", r"a\x00", "a\n", r"a\n", "a", "a" * 600, "a" * 601)
    assert len({storable_key(key) for key in keys}) == len(keys)


async def test_odd_keys_are_kept_apart(store: Store) -> None:
    odd = keyed("1", "01", "1.0", "null", "true", "", " ", 'a"b', "á", "a\u0301", "[1]", "Ü/ß")
    stream = await _stream(store)
    assert (await ingest(store, stream, odd, PLAIN)).accepted == len(odd)
    assert (await ingest(store, stream, odd, PLAIN)).known == len(odd)


@pytest.mark.parametrize(
    ("ended", "content", "policy", "taken"),
    [
        (ItemStatus.DONE, "same", Dedupe("shop", "again", "again"), False),
        (ItemStatus.DONE, "new", Dedupe("shop", "again", "skip"), True),
        (ItemStatus.DONE, "new", Dedupe("shop", "skip", "again"), False),
        (None, "same", Dedupe("shop", "again", "again"), False),
        (None, "new", Dedupe("shop", "again", "skip"), True),
        (None, "new", Dedupe("shop", "skip", "again"), False),
        (ItemStatus.PENDING, "same", Dedupe("shop", "again", "again"), False),
        (ItemStatus.ERROR, "same", Dedupe("shop", "skip", "again"), True),
        (ItemStatus.ERROR, "same", Dedupe("shop", "again", "skip"), False),
        (ItemStatus.ERROR, "new", Dedupe("shop", "skip", "again"), True),
        (ItemStatus.NOT_FOUND, "same", Dedupe("shop", "skip", "again"), True),
        (ItemStatus.SKIPPED, "same", Dedupe("shop", "again", "skip"), False),
    ],
)
async def test_policy_decides_on_a_known_key(
    store: Store, ended: ItemStatus | None, content: str, policy: Dedupe, taken: bool
) -> None:
    first = await _stream(store)
    await ingest(store, first, keyed("a"), policy)
    if ended is not None:
        await settle(store, await claim_one(store, first.job_id), ended)
    second = await _stream(store)
    result = await ingest(store, second, keyed("a", content=content), policy)
    assert (result.accepted, result.known) == ((1, 0) if taken else (0, 1))
    assert (await _key(store, "a"))[0] == (second.job_id if taken else first.job_id)


async def test_key_of_an_item_that_was_cancelled_is_taken_again(store: Store) -> None:
    first = await _stream(store)
    await ingest(store, first, keyed("a"), PLAIN)
    await store.jobs.cancel(first.job_id, "tester")
    second = await _stream(store)
    assert (await ingest(store, second, keyed("a"), PLAIN)).accepted == 1


async def test_key_names_its_newest_item(store: Store) -> None:
    first = await _stream(store)
    await ingest(store, first, keyed("a", "b"), PLAIN)
    await work_off(store, first.job_id, ItemStatus.ERROR)
    second = await _stream(store)
    await ingest(store, second, keyed("a"), PLAIN)
    await work_off(store, second.job_id)
    assert await _key(store, "a") == (second.job_id, 1)
    third = await _stream(store)
    taken = await ingest(store, third, keyed("a", "b"), PLAIN)
    assert (taken.accepted, taken.known) == (1, 1)


async def test_cap_counts_new_items_and_not_known_ones(store: Store) -> None:
    first = await _stream(store)
    await ingest(store, first, keyed("a", "b"), PLAIN)
    second = await _stream(store, max_items=2)
    taken = await ingest(store, second, keyed("a", "c", "b", "d", "e", "a"), PLAIN)
    assert (taken.accepted, taken.known, taken.state) == (2, 2, StreamState.CAPPED)
    assert second.cursor == {"page": None, "skip": 4}


async def test_page_sent_again_moves_no_key(store: Store) -> None:
    stream = await _stream(store)
    page = page_of(stream, keyed("a", "b"))
    await store.ingest.ingest(stream, page, "walker", PLAIN)
    await settle(store, await claim_one(store, stream.job_id), ItemStatus.ERROR)
    before = await _key(store, "a")
    again = await store.ingest.ingest(stream, page, "walker", PLAIN)
    assert again.accepted == 0
    assert await _key(store, "a") == before


async def test_two_jobs_that_meet_the_same_new_keys_share_them_out(
    store: Store, other_store: Store
) -> None:
    names = [f"k{number}" for number in range(40)]
    one, two = await _stream(store), await _stream(other_store)

    async def walk(opened: Store, stream: StreamLease, order: list[str]) -> int:
        taken = 0
        for start in range(0, len(order), 8):
            page = keyed(*order[start : start + 8])
            taken += (await ingest(opened, stream, page, PLAIN)).accepted
        return taken

    taken = await asyncio.gather(
        walk(store, one, names), walk(other_store, two, list(reversed(names)))
    )
    assert sum(taken) == len(names)
    owners = await fetch(store, "select job_id, seq from keys")
    items = await fetch(store, "select job_id, seq from items")
    assert sorted(map(tuple, owners)) == sorted(map(tuple, items))


async def test_two_jobs_that_meet_the_same_failed_keys_share_them_out(
    store: Store, other_store: Store
) -> None:
    names = [f"k{number}" for number in range(20)]
    first = await _stream(store)
    await ingest(store, first, keyed(*names), PLAIN)
    await work_off(store, first.job_id, ItemStatus.ERROR)
    one, two = await _stream(store), await _stream(other_store)
    taken = await asyncio.gather(
        ingest(store, one, keyed(*names), PLAIN),
        ingest(other_store, two, keyed(*reversed(names)), PLAIN),
    )
    assert sum(result.accepted for result in taken) == len(names)


async def test_key_of_a_pruned_job_is_taken_again(store: Store) -> None:
    first = await _stream(store)
    await ingest(store, first, keyed("a"), PLAIN)
    await execute(store, "delete from items where job_id = :id", id=first.job_id)
    for table in ("ranges", "counters", "streams"):
        await execute(store, f"delete from {table} where job_id = :id", id=first.job_id)
    await execute(store, "delete from jobs where id = :id", id=first.job_id)
    second = await _stream(store)
    assert (await ingest(store, second, keyed("a"), PLAIN)).accepted == 1
