"""Servers that go away in the middle, and a consumer that is killed between any two steps."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import aio_pika
import pytest
from aio_pika.abc import AbstractConnection

from holdfast.kernel import Store
from pipelines.posts.tests.scene import Scene, opened_scene, post
from tests.chaos.children import Children
from tests.fixtures import INCOMING
from tests.rabbitmq import RabbitServer
from tests.seaweedfs import S3Server

KILLS = 5


async def test_broker_restarted_in_the_middle(scene: Scene, rabbit_server: RabbitServer) -> None:
    paths = [await scene.put(f"{n}.json", [post(n), post(f"b{n}")]) for n in range(6)]
    async with scene.consuming() as pipeline:
        for number, path in enumerate(paths[:3]):
            await scene.send(scene.event(path, f"evt_{number}"))
        await asyncio.to_thread(rabbit_server.stop)
        await asyncio.to_thread(rabbit_server.start)
        scene.connection = await _connected(scene)
        for number, path in enumerate(paths[3:], 3):
            await scene.send(scene.event(path, f"evt_{number}"))
        await scene.until_events(6, "TAKEN")
        await scene.work(pipeline)
    assert len(await scene.posts()) == 12
    assert {row["state"] for row in await scene.batches()} == {"DONE"}


async def _connected(scene: Scene) -> AbstractConnection:
    return await aio_pika.connect(scene.environment["HOLDFAST_BROKER_URL"])


@pytest.fixture
def own_s3() -> Iterator[S3Server]:
    with S3Server([INCOMING]) as server:
        yield server


@pytest.fixture
async def scene_with_own_s3(
    store: Store, broker_url: str, queue_prefix: str, own_s3: S3Server
) -> AsyncIterator[Scene]:
    settings = own_s3.settings(INCOMING)
    async with opened_scene(store, broker_url, queue_prefix, settings) as scene:
        yield scene


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_message_is_held_while_the_object_store_is_gone(
    scene_with_own_s3: Scene, own_s3: S3Server
) -> None:
    scene = scene_with_own_s3
    path = await scene.put("a.json", [post(1)])
    await asyncio.to_thread(own_s3.stop)
    async with scene.consuming() as pipeline:
        await scene.send(scene.event(path))
        await scene.until(lambda: _is_delivered(scene))
        assert await scene.events() == []
        await asyncio.to_thread(own_s3.start)
        await scene.until_events(1, "TAKEN")
        await scene.work(pipeline)
    assert [row["content_id"] for row in await scene.posts()] == ["1"]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_consumer_killed_at_any_moment(
    scene: Scene, children: Children, database_url: str
) -> None:
    """A real process, killed again and again while it takes messages."""
    environment = {
        **scene.environment,
        **scene.names,
        "HOLDFAST_DATABASE_URL": database_url,
        "HOLDFAST_LOG_LEVEL": "error",
        # A message that three processes die with becomes a dead letter: each has one at a time,
        # and the next one begins with it.
        "HOLDFAST_POSTS_MAX_CONCURRENT_BATCHES": "1",
    }
    paths = [await scene.put(f"{n}.json", [post(n)]) for n in range(30)]
    async with scene.consuming():
        pass  # declares the queues
    for number, path in enumerate(paths):
        await scene.send(scene.event(path, f"evt_{number}"))
    for _ in range(KILLS):
        goal = min(len(await scene.events()) + 3, len(paths))
        child = children.holdfast(["consume", "posts"], environment)
        await scene.until(_at_least(scene, goal))
        child.send_signal(signal.SIGKILL)
        await asyncio.to_thread(child.wait, 30)
    async with scene.consuming() as pipeline:
        await scene.until_events(30, "TAKEN")
        await scene.work(pipeline)
    assert len(await scene.posts()) == len(await scene.batches()) == 30
    accepted = await scene.rows("select sum(accepted) as n from counters")
    assert accepted[0]["n"] == 30


async def _is_delivered(scene: Scene) -> bool:
    return await scene.waiting() == 0


def _at_least(scene: Scene, count: int) -> Callable[[], Awaitable[bool]]:
    async def holds() -> bool:
        return len(await scene.events()) >= count

    return holds
