"""The database goes away in the middle of a run: it waits, says so, and continues exactly."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from tests.chaos.scene import DEEDS, Scene, finish, wait_until
from tests.postgres import PostgresServer
from tests.proxy import CHUNK_BYTES, Proxy

ITEMS = 1200
SLOWLY = ["sleep:0.02"] * ITEMS
FEW_AT_ONCE = {"HOLDFAST_CONCURRENCY_MAX": "8"}


class CommitCutter(Proxy):
    """Lets the commit of a settlement through to the server and cuts every connection before
    the reply."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.armed = False
        self.cuts = 0

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, to_server: bool = False
    ) -> None:
        settling = False
        try:
            while data := await reader.read(CHUNK_BYTES):
                settling = settling or b'"pid":' in data
                if self.armed and settling and b"COMMIT;" in data:
                    self.armed = False
                    self.stall()
                    writer.write(data)
                    asyncio.get_running_loop().call_later(0.1, self._cut_soon)
                    continue
                settling = settling and b"COMMIT;" not in data
                await self._flowing.wait()
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            return

    def _cut_soon(self) -> None:
        self._cutting = asyncio.create_task(self._cut_and_flow())

    async def _cut_and_flow(self) -> None:
        await self.cut()
        self.cuts += 1
        self.flow()


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """A server of the test's own, to be stopped as it likes."""
    with PostgresServer() as server:
        yield server


def test_run_outlives_crashes_of_its_server(
    scene_at: Callable[[str], Scene], own_server: PostgresServer
) -> None:
    scene = scene_at(own_server.create_database())
    run = scene.start("run", f"{DEEDS}:saving", scene.table(SLOWLY), **FEW_AT_ONCE)
    for _ in range(2):
        scene.wait_for_starts(100)
        own_server.stop_hard()
        own_server.start()
    finish(run)
    scene.assert_exact(1, done=ITEMS)
    scene.assert_saved_once(ITEMS)


async def test_run_waits_for_a_server_that_refuses_and_says_so(
    scene_at: Callable[[str], Scene], postgres_url: str
) -> None:
    direct = scene_at(postgres_url)
    async with Proxy(postgres_url) as proxy:
        scene = scene_at(proxy.url)
        run = scene.start("run", f"{DEEDS}:saving", scene.table(SLOWLY), **FEW_AT_ONCE)
        await asyncio.to_thread(scene.wait_for_starts, 100)
        await proxy.cut()
        await asyncio.to_thread(scene.wait_for_starts, 100)
        await proxy.refuse()
        await asyncio.sleep(3)
        await proxy.accept()
        said = await asyncio.to_thread(finish, run)
    assert "Waiting for the database" in said
    await asyncio.to_thread(direct.assert_exact, 1, done=ITEMS)


async def test_commit_whose_reply_was_lost_counts_once(
    scene_at: Callable[[str], Scene], postgres_url: str
) -> None:
    direct = scene_at(postgres_url)
    job_id = await asyncio.to_thread(direct.take_in, SLOWLY, "saving")
    async with CommitCutter(postgres_url) as proxy:
        worker = scene_at(proxy.url).start_worker(job_id, **FEW_AT_ONCE)
        ended = asyncio.create_task(asyncio.to_thread(finish, worker))
        while not ended.done():
            await asyncio.wait([ended], timeout=0.8)
            proxy.armed = bool(direct.witnessed())
        await ended
        assert proxy.cuts > 3
    await asyncio.to_thread(direct.assert_exact, job_id, done=ITEMS)
    await asyncio.to_thread(direct.assert_saved_once, ITEMS)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_file_that_another_process_locks_is_waited_for(scene: Scene, sqlite_url: str) -> None:
    run = scene.start("run", f"{DEEDS}:saving", scene.table(SLOWLY), **FEW_AT_ONCE)
    scene.wait_for_starts(100)
    with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as other:
        other.execute("begin exclusive")
        with pytest.raises(AssertionError):
            wait_until(lambda: False, "the lock is held for a while", 3)
        other.rollback()
    finish(run)
    scene.assert_exact(1, done=ITEMS)
