"""Pages of what is open: every item once and in one order, however its ranges are cut."""

from __future__ import annotations

from holdfast.features.console import open_console
from holdfast.features.items.items import ItemFilter, ItemView, Position
from holdfast.kernel import Store
from holdfast.model import ItemStatus
from tests.store.checks import claim, filled_job, settle, statuses

OPEN = ItemFilter((ItemStatus.PENDING, ItemStatus.PROCESSING))


async def _paged(store: Store, limit: int, filter: ItemFilter = OPEN) -> list[ItemView]:
    found: list[ItemView] = []
    position: Position | None = None
    while True:
        page = await open_console(store).items.pending(None, None, filter, position, limit)
        found += page.items
        assert len(page.items) <= limit
        if page.next is None:
            return found
        assert page.items
        position = page.next


async def _ranges_of_all_kinds(store: Store) -> int:
    """Fresh ranges large and small, some with holes in them, and items that wait to be retried in
    again ranges of one, two or forty."""
    job_id = await filled_job(store, 40, 1, 2, 30, 1, 1, 60, 5)
    (first,) = await claim(store, job_id, 40)
    for retried in ([3], [5, 9], [11]):
        await settle(store, first, ItemStatus.PENDING, only=retried)
    await settle(store, first, ItemStatus.DONE, only=[1, 2, 40])
    await store.workers.stop_worker("one")
    _, second, *others = await claim(store, job_id, 45)
    for claimed in (second, *others):
        await settle(store, claimed, ItemStatus.PENDING)
    return job_id


async def test_open_items_come_once_and_in_the_same_order_whatever_the_page_size(
    store: Store,
) -> None:
    job_id = await _ranges_of_all_kinds(store)
    whole = [item.seq for item in await _paged(store, 1000)]
    known = await statuses(store, job_id)
    still_open = {seq for seq, status in known.items() if status in OPEN.statuses}
    assert sorted(whole) == sorted(still_open)
    for limit in (1, 2, 3, 7, 40, 41, 100):
        assert [item.seq for item in await _paged(store, limit)] == whole, limit


async def test_waiting_items_keep_their_story_when_their_ranges_are_read_together(
    store: Store,
) -> None:
    job_id = await filled_job(store, 3)
    (claimed,) = await claim(store, job_id)
    for seq in (1, 2, 3):
        await settle(store, claimed, ItemStatus.PENDING, only=[seq], error_code=f"CODE_{seq}")
    await store.workers.stop_worker("one")
    found = {item.seq: item for item in await _paged(store, 10)}
    assert {seq: item.error_code for seq, item in found.items()} == {
        1: "CODE_1",
        2: "CODE_2",
        3: "CODE_3",
    }
    assert all(item.attempts == 1 and item.tries == 1 for item in found.values())
    assert all(item.status is ItemStatus.PENDING for item in found.values())


async def test_items_under_a_lease_are_distinguished_among_small_ranges(store: Store) -> None:
    job_id = await filled_job(store, 1, 2, 1)
    (held, *_) = await claim(store, job_id, 1)
    (seq,) = [row[0] for row in held.rows]
    found = await _paged(store, 10)
    assert {item.seq: item.worker for item in found if item.worker} == {seq: "one"}
    assert [item.seq for item in await _paged(store, 10, ItemFilter((ItemStatus.PROCESSING,)))] == [
        seq
    ]
