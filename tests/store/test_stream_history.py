"""The history of a stream stays small, and still finds every repeated cursor."""

from __future__ import annotations

import random

import pytest

from holdfast.kernel import Store
from holdfast.kernel.database.driver import Transaction
from holdfast.kernel.record import stream_history
from holdfast.kernel.record.stream_history import PageOfPass, add_page
from tests.store.checks import fetch, ingest, lease_stream, make_job, records


@pytest.fixture
def short_history(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_history, "PAGES_KEPT", 20)
    monkeypatch.setattr(stream_history, "SLICES_KEPT", 5)
    monkeypatch.setattr(stream_history, "_PRUNED_EVERY", 10)


async def _walk(store: Store, stream_id: int, pages: int, before: int, loop: int) -> int | None:
    """Pages whose cursors, after `before` others, repeat; the number of the first that is
    recognised."""

    async def walk(tx: Transaction) -> int | None:
        for number in range(1, pages + 1):
            cursor = number if number <= before else before + (number - before) % loop
            if not await add_page(tx, PageOfPass(stream_id, 1, number), cursor, 0, 0):
                return number
        return None

    return await store.database.write("test", walk)


@pytest.mark.usefixtures("short_history")
async def test_latest_pages_and_powers_of_two_stay(store: Store) -> None:
    assert await _walk(store, 1, 200, 1000, 1) is None
    rows = await fetch(store, "select number from stream_pages order by number")
    assert [row[0] for row in rows] == [1, 2, 4, 8, 16, 32, 64, 128, *range(181, 201)]


@pytest.mark.usefixtures("short_history")
async def test_loop_of_any_length_is_found(store: Store) -> None:
    rng = random.Random(7)
    for stream_id in range(1, 9):
        before, loop = rng.randrange(0, 80), rng.randrange(1, 90)
        most = 4 * (before + loop) + 4
        assert await _walk(store, stream_id, most, before, loop) is not None, (before, loop)


async def test_pages_of_earlier_passes_are_dropped(store: Store) -> None:
    first = await make_job(store, "north")
    stream = await lease_stream(store, first)
    await ingest(store, stream, records(1), next_cursor="same")
    await store.jobs.cancel(first, "tester")
    stream = await lease_stream(store, await make_job(store, "north"))
    await ingest(store, stream, records(1), next_cursor="same")
    rows = await fetch(store, "select generation, number from stream_pages")
    assert rows == [(2, 1)]


@pytest.mark.usefixtures("short_history")
async def test_latest_slices_stay_and_empty_ones_are_not_kept(store: Store) -> None:
    job_id = await make_job(store)
    for _ in range(30):
        stream = await lease_stream(store, job_id)
        await store.ingest.release_stream(stream, 0, "502 from the source")
    stream = await lease_stream(store, job_id)
    await store.ingest.release_stream(stream, 0, waiting_for="new records")
    slices = await store.streams.slices(stream.id, 100)
    assert len(slices) == 5
    assert {one.ended for one in slices} == {"postponed"}
