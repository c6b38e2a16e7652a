"""A regulatory world, and the pipeline at work on it in this process, on each database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.kernel import Store
from pipelines.regulations.tests.desk import Desk
from pipelines.regulations.tests.world import RegulatoryWorld


@pytest.fixture
async def world() -> AsyncIterator[RegulatoryWorld]:
    async with RegulatoryWorld(issues=6, acts=3) as made:
        yield made


@pytest.fixture
async def desk(store: Store, world: RegulatoryWorld, tmp_path: Path) -> Desk:
    made = Desk(store, world, tmp_path)
    await made.switch(True)
    return made
