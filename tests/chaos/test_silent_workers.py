"""Workers that live and give no sign of it: their items run elsewhere, and count once."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from holdfast.kernel import Store
from tests.chaos.scene import Scene, finish, wait_until
from tests.store.checks import claim_one, filled_job, lease_stream, make_job


def _done(scene: Scene, job_id: int) -> int:
    query = f"select count(*) from outcomes where job_id = {job_id} and status = 'DONE'"
    return int(scene.fetch(query)[0][0])


def test_items_of_a_worker_that_blocks_its_loop_run_elsewhere(scene: Scene) -> None:
    flag = scene.folder / "blocked"
    job_id = scene.take_in([f"block_once:{flag}", *["sleep:0.01"] * 100], "saving")
    blocked = scene.start_worker(job_id)
    wait_until(flag.exists, "the first worker blocks")
    other = scene.start_worker(job_id)
    wait_until(lambda: _done(scene, job_id) == 101, "the other one has done everything")
    assert blocked.returncode is None
    flag.with_suffix(".go").touch()
    finish(other)
    finish(blocked)
    scene.assert_exact(job_id, done=101)
    scene.assert_saved_once(101)


def test_items_of_a_frozen_worker_run_elsewhere(scene: Scene) -> None:
    job_id = scene.take_in(["sleep:0.05"] * 200, "saving")
    frozen = scene.start_worker(job_id)
    scene.wait_for_starts(20)
    frozen.send_signal(signal.SIGSTOP)
    other = scene.start_worker(job_id)
    wait_until(lambda: _done(scene, job_id) == 200, "the other one has done everything")
    frozen.send_signal(signal.SIGCONT)
    finish(other)
    finish(frozen)
    scene.assert_exact(job_id, done=200)
    scene.assert_saved_once(200)


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
async def test_items_of_a_worker_frozen_in_a_copy_run_elsewhere(
    store: Store, database_url: str
) -> None:
    """The server waits for the rest of the rows, and holds the ranges locked until then."""
    job_id = await filled_job(store, 5)
    held = await claim_one(store, job_id, worker="frozen")
    async with _frozen_in_copy(database_url, _SETTLE, held.lease.range_id, "outcomes"):
        while not (freed := await store.workers.free_left_behind()):
            await asyncio.sleep(0.05)
    assert freed == [job_id]
    assert len((await claim_one(store, job_id, worker="next")).rows) == 5


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
async def test_stream_of_a_worker_frozen_in_a_copy_is_read_elsewhere(
    store: Store, database_url: str
) -> None:
    """Nor do its ranges wait for that."""
    job_id, read_id = await filled_job(store, 5), await make_job(store)
    await store.workers.add_worker("frozen", "host", 1, [])
    await claim_one(store, job_id, worker="frozen")
    stream = await lease_stream(store, read_id, "frozen")
    async with _frozen_in_copy(database_url, _ADVANCE, stream.id, "items"):
        assert await store.workers.lose("frozen", gone=True) == [job_id]
        while await store.ingest.lease_stream(read_id, "next") is None:
            await store.workers.free_left_behind()
            await asyncio.sleep(0.05)


_SETTLE = "update holdfast.ranges set settled = settled + 1 where id = $1"
_ADVANCE = "update holdfast.streams set pages_count = pages_count + 1 where id = $1"


@asynccontextmanager
async def _frozen_in_copy(url: str, before: str, row_id: int, table: str) -> AsyncIterator[None]:
    """Until the server ends the transaction."""
    connection, begun = await asyncpg.connect(url), asyncio.Event()
    copying = asyncio.create_task(_copy_for_ever(connection, before, row_id, table, begun))
    try:
        async with asyncio.timeout(180):
            await begun.wait()
            yield
        assert connection.is_closed()
    finally:
        copying.cancel()
        await asyncio.gather(copying, return_exceptions=True)
        connection.terminate()


async def _copy_for_ever(
    connection: Any, before: str, row_id: int, table: str, begun: asyncio.Event
) -> None:
    async def rows() -> AsyncIterator[tuple[Any, ...]]:
        begun.set()
        await asyncio.Event().wait()
        yield ()

    async with connection.transaction():
        await connection.execute(before, row_id)
        await connection.copy_records_to_table(table, schema_name="holdfast", records=rows())
