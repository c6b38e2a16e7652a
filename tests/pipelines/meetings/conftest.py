"""Real Datasette servers, of both generations, and a town on each database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from holdfast.store import Store
from tests.pipelines.meetings.front import Front
from tests.pipelines.meetings.site import Datasette, Site
from tests.pipelines.meetings.town import Town


@pytest.fixture(scope="session")
def datasette_0() -> Iterator[Datasette]:
    with Datasette(0) as server:
        yield server


@pytest.fixture(scope="session")
def datasette_1() -> Iterator[Datasette]:
    with Datasette(1) as server:
        yield server


@pytest.fixture(params=[0, 1], ids=["datasette-0.65", "datasette-1.0"])
def datasette(request: pytest.FixtureRequest) -> Datasette:
    """An empty site, on each generation in turn."""
    server: Datasette = request.getfixturevalue(f"datasette_{request.param}")
    server.site.reset()
    return server


@pytest.fixture
def site(datasette: Datasette) -> Site:
    return datasette.site


@pytest.fixture
async def front(datasette: Datasette) -> AsyncIterator[Front]:
    async with Front(datasette.url) as front:
        yield front


@pytest.fixture
async def town(store: Store, front: Front) -> Town:
    made = Town(store, front.url)
    await made.add()
    return made
