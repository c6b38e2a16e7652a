"""The same backfill by a fleet: its slices are messages, and its workers are killed."""

from __future__ import annotations

import asyncio
import signal
from functools import partial
from pathlib import Path

import pytest

from holdfast.kernel import Store
from pipelines.meetings.tests.front import Front
from pipelines.meetings.tests.site import Datasette, generated
from pipelines.meetings.tests.test_killed import SETTINGS
from pipelines.meetings.tests.town import Town
from tests.chaos.children import can_stop_in_order
from tests.chaos.scene import wait_until
from tests.command import HoldfastCommand
from tests.fleet import FLEET

pytestmark = [pytest.mark.slow, pytest.mark.rabbit]

KILLS = 3


@pytest.fixture
def datasette(datasette_0: Datasette) -> Datasette:
    datasette_0.site.reset()
    return datasette_0


@pytest.mark.exhaustive  # test_killed.py shows it without a broker
@pytest.mark.parametrize("database_url", [FLEET], indirect=True)
async def test_full_backfill_by_messages_outlives_killed_workers(
    store: Store,
    front: Front,
    datasette: Datasette,
    fleet_settings: dict[str, str],
    database_url: str,
    tmp_path: Path,
) -> None:
    for kind in ("minutes", "agendas"):
        datasette.site.add(kind, generated(1000))
    town = Town(store, front.url)
    await town.add()
    command = HoldfastCommand(database_url, tmp_path, fleet_settings)
    workers = [command.start("work", "meetings", env=SETTINGS) for _ in range(2)]
    await town.order()
    try:
        for _ in range(KILLS):
            await _more_asked(front, 8)
            workers.pop(0).kill()
            workers.append(command.start("work", "meetings", env=SETTINGS))
        async with asyncio.timeout(90):
            while await town.fetch("select 1 from jobs where state <> 'DONE'"):
                await asyncio.sleep(0.1)
        for worker in workers:
            began = partial(can_stop_in_order, worker.pid)
            await asyncio.to_thread(wait_until, began, "the worker has begun")
            worker.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(worker.wait, 30) == 0
    finally:
        command.close()
    for kind in ("minutes", "agendas"):
        assert await town.pages(kind) == datasette.site.rows(kind)
    await town.assert_verified()


async def _more_asked(front: Front, count: int) -> None:
    goal = len(front.asked) + count
    async with asyncio.timeout(60):
        while len(front.asked) < goal:
            await asyncio.sleep(0.01)
