"""`holdfast posts messages` and `release`, as an operator types them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from subprocess import CompletedProcess

import pytest

from holdfast.kernel import Store
from pipelines.posts.tests.desk import Desk


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_messages_are_listed_and_released_by_key_or_event_id(
    store: Store, run_holdfast: Callable[..., CompletedProcess[str]]
) -> None:
    desk = Desk(store)
    await desk.take(desk.event("broken.json", b"{"))

    async def run(*arguments: str) -> CompletedProcess[str]:
        return await asyncio.to_thread(run_holdfast, "posts", *arguments)

    listed = json.loads((await run("messages", "--json")).stdout)
    assert [(row["state"], row["code"], row["due_at"]) for row in listed] == [
        ("DEAD", "BATCH_CORRUPT", None)
    ]
    event_id = listed[0]["key"].removeprefix("event:")
    missing = await run("release", "evt_none")
    assert missing.returncode == 1
    assert "holdfast posts messages" in missing.stderr
    assert "1 message will be tried again" in (await run("release", event_id)).stderr
    assert "WAITING" in (await run("messages", "--state", "waiting")).stdout
