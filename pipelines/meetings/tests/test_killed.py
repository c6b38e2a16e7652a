"""Workers killed all through a full backfill: it continues by itself, exactly, and does not request
a page again that was stored."""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.kernel import Store
from pipelines.meetings.tests.front import Front
from pipelines.meetings.tests.site import Datasette, generated
from pipelines.meetings.tests.town import HASTE, Town
from tests.chaos.children import Child, Children
from tests.command import HoldfastCommand

pytestmark = pytest.mark.slow

SETTINGS = {
    **HASTE,
    "HOLDFAST_MEETINGS_PAGE_SIZE": "50",
    "HOLDFAST_MEETINGS_REBUILD_SECONDS": "0.05",
    "HOLDFAST_LOCK_FLOOR_MS": "2000",
    "HOLDFAST_LOCK_CAP_MS": "2000",
    "FULL_BACKFILL_BATCH_SIZE": "7",
}
KILLS = 6


@pytest.fixture
def datasette(datasette_0: Datasette) -> Datasette:
    datasette_0.site.reset()
    return datasette_0


@pytest.fixture
def start_worker(children: Children, database_url: str, tmp_path: Path) -> Callable[..., Child]:
    """`start_worker(NAME="value")` starts one that works until nothing is left."""
    command = HoldfastCommand(database_url, tmp_path)

    def start(**more: str) -> Child:
        words = ["work", "meetings", "--until-idle"]
        return children.holdfast(words, command.environment({**SETTINGS, **more}))

    return start


async def wait_for(pages: int, front: Front) -> None:
    """Until this many more requests were made."""
    goal = len(front.asked) + pages
    while len(front.asked) < goal:
        await asyncio.sleep(0.005)


async def test_full_backfill_outlives_workers_killed_at_random(
    store: Store, front: Front, datasette: Datasette, start_worker: Callable[..., Child]
) -> None:
    datasette.site.add("minutes", generated(3000))
    town = Town(store, front.url)
    await town.add()
    await town.order(types=["minutes"])
    rng = random.Random(7)
    for _ in range(KILLS):
        worker = start_worker()
        async with asyncio.timeout(30):
            await wait_for(rng.randint(3, 10), front)
        await asyncio.sleep(rng.uniform(0, 0.05))
        worker.send_signal(signal.SIGKILL)
        await asyncio.to_thread(worker.wait, 30)
    assert await asyncio.to_thread(start_worker().wait, 90) == 0
    assert await town.pages() == datasette.site.rows("minutes")
    await town.assert_verified()
    repeated = {token: count for token, count in front.walked("minutes").items() if count > 1}
    # At a kill, one page is being stored while the next is in flight; no other is requested twice.
    assert sum(count - 1 for count in repeated.values()) <= 2 * KILLS
    pages = await town.fetch("select count(*), count(distinct cursor_hash) from stream_pages")
    assert pages[0][0] == pages[0][1]
    verification = await store.reads.verify((await town.stream())["job_id"])
    assert verification.problems == []


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize(
    "point",
    ["ingest/advance_stream", "ingest/commit", "ingest/committed", "settle/copy meetings_pages",
     "settle/meetings_add_counts", "settle/commit", "settle/committed", "complete/reopen_stream",
     "complete/verify_stream", "complete/committed", "lease_stream/add_slice",
     "ingest/meetings_add_differences"],
)  # fmt: skip
async def test_full_backfill_outlives_a_kill_at_each_kind_of_write(
    store: Store,
    front: Front,
    datasette: Datasette,
    start_worker: Callable[..., Child],
    point: str,
) -> None:
    rows = generated(400)
    datasette.site.add("minutes", rows)
    town = Town(store, front.url)
    await town.add()
    if point == "ingest/meetings_add_differences":
        await town.backfill(types=["minutes"])
        datasette.site.remove("minutes", *rows[:2])
    await town.order(types=["minutes"], mode="full")
    doomed = start_worker(HOLDFAST_FAULT=f"{point}@1")
    assert await asyncio.to_thread(doomed.wait, 60) == -signal.SIGKILL
    assert await asyncio.to_thread(start_worker().wait, 60) == 0
    assert await town.pages() == datasette.site.rows("minutes")
    await town.assert_verified()
