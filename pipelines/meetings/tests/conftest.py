"""Real Datasette servers, of both generations, and a town on each database.

On SQLite a test meets the older generation, on PostgreSQL the newer one. What must hold for each
generation on each database says so: `@each_generation`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from holdfast.kernel import Store
from pipelines.meetings.tests.front import Front
from pipelines.meetings.tests.site import Datasette, Site
from pipelines.meetings.tests.town import Town
from tests.web.conftest import browser, open_as, root, watch  # noqa: F401 - for test_browser

GENERATIONS = {"sqlite": 0, "postgres": 1}


@pytest.fixture(scope="session")
def datasette_0() -> Iterator[Datasette]:
    with Datasette(0) as server:
        yield server


@pytest.fixture(scope="session")
def datasette_1() -> Iterator[Datasette]:
    with Datasette(1) as server:
        yield server


@pytest.fixture
def datasette(request: pytest.FixtureRequest) -> Datasette:
    """An empty site."""
    database = request.node.callspec.params.get("database_url")
    generation = getattr(request, "param", GENERATIONS[database])
    server: Datasette = request.getfixturevalue(f"datasette_{generation}")
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
