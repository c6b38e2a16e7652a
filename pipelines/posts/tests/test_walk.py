"""The migration of docs/migrate.md under load, and its rollback by the commands there."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from pipelines.posts.tests.scene import Scene, post

DOCS = Path(__file__).parents[3] / "pipelines/posts/src/holdfast_posts/docs/migrate.md"
_EACH = 6  # events and legacy messages of each step


class Crawlers:
    """Send events of many jobs, and legacy messages, and know what must come of them."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self.sent = 0

    async def send(self) -> None:
        for _ in range(_EACH):
            self.sent += 1
            number = self.sent
            path = await self._scene.put(f"{number}.json", [post(f"e{number}")])
            job = f"proj_x-brand-{number}"
            event = self._scene.event(path, f"evt_{number}", job_id=job)
            await self._scene.send(event)
            await self._scene.send(event)  # every one twice
            await self._scene.send(post(f"l{number}", job_id="proj_x-brand-0"), "legacy")


@asynccontextmanager
async def _sending(crawlers: Crawlers) -> AsyncIterator[None]:
    """While the mode changes."""
    task = asyncio.create_task(crawlers.send())
    yield
    await task


async def test_walk_loses_and_doubles_nothing(scene: Scene) -> None:
    crawlers = Crawlers(scene)

    async def flag(name: str, value: Any) -> None:
        async with _sending(crawlers):
            await scene.store.flags.set_flag(name, value, "tester")

    async with scene.consuming(relays=True) as pipeline:
        await flag("posts_new_mode", False)
        while "PARKED" not in {row["state"] for row in await scene.events()}:
            await crawlers.send()  # the consumer reads flags now and then
        await scene.store.flags.set_flag("posts_canary", 10, "tester")
        await flag("posts_new_mode", True)
        await flag("posts_canary", 50)
        await flag("posts_canary", 100)
        await flag("posts_legacy_mode", False)
        # The rollback, and forward again.
        await scene.store.flags.set_flag("posts_legacy_mode", True, "tester")
        await flag("posts_new_mode", False)
        await flag("posts_new_mode", True)
        await scene.until_events(2 * crawlers.sent, "TAKEN")
        await scene.work(pipeline)
    ids = {row["content_id"] for row in await scene.posts()}
    assert ids == {f"{kind}{n}" for kind in "el" for n in range(1, crawlers.sent + 1)}
    assert len(await scene.batches()) == 2 * crawlers.sent
    accepted = await scene.rows("select sum(accepted) as n from counters")
    assert accepted[0]["n"] == 2 * crawlers.sent
    assert {row["state"] for row in await scene.events()} == {"TAKEN"}


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_runbook_of_the_docs_rolls_back_and_forward(
    scene: Scene, run_holdfast: Callable[..., CompletedProcess[str]]
) -> None:
    runbook = DOCS.read_text().partition("## Roll back")[2].partition("## The schema")[0]
    commands = re.findall(r"`holdfast ([^`]+)`", runbook)
    assert commands == [
        "posts rollback", "posts status", "flag set posts_new_mode on",
        "posts release --state parked",
    ]  # fmt: skip

    async def run(command: str) -> str:
        done = await asyncio.to_thread(run_holdfast, *command.split())
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    path = await scene.put("a.json", [post(1)])
    assert "Events are parked" in await run(commands[0])
    async with scene.consuming(relays=True) as pipeline:
        await scene.send(scene.event(path))
        await scene.send(post(2, job_id="proj_x-brand-0"), "legacy")
        await scene.until_events(1, "TAKEN")
        await scene.until_events(1, "PARKED")
        status = await run(commands[1])
        assert "PARKED" in status
        assert "NEW_MODE_OFF" in status
        await run(commands[2])
        await run(commands[3])
        await scene.until_events(2, "TAKEN")
        await scene.work(pipeline)
    assert [row["content_id"] for row in await scene.posts()] == ["1", "2"]
