"""The short form of `make chaos` for a fleet: everything fails at once, and nothing is lost."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from tests.chaos.children import Children
from tests.chaos.fleet_chaos import FleetChaos, Pace
from tests.chaos.scene import Scene
from tests.chaos.test_killed_workers import random_deeds

ITEMS = 2000
PATIENCE_SECONDS = 300.0
#: Each trouble comes at least once, and hardly more than ten times.
PACE = Pace(kill=0.5, freeze=3.0, cut=1.0, postgres=3.0, rabbit=5.0, items=150)


@pytest.mark.exhaustive  # the tests of tests/messaging let one thing fail at a time
@pytest.mark.postgres
@pytest.mark.rabbit
@pytest.mark.slow
def test_fleet_of_which_everything_fails_loses_nothing_and_settles_nothing_twice(
    tmp_path: Path, children: Children
) -> None:
    chance = random.Random(11)
    chaos = FleetChaos(tmp_path, chance, PACE, durable=False)
    with chaos.servers() as url:
        deeds = random_deeds(chance, ITEMS)
        asyncio.run(chaos.run(url, deeds, children, PATIENCE_SECONDS))
        scene = Scene(url, tmp_path, children)
        scene.assert_exact(1, done=ITEMS)
        scene.assert_saved_once(ITEMS)
        assert len(scene.witnessed()) == ITEMS
        assert scene.dead_items() == []
    troubles = {"kills", "freezes", "cuts", "restarts of PostgreSQL", "restarts of RabbitMQ"}
    assert set(chaos.counts) == troubles, chaos.counts
