"""A local Wikidata and Reconciliation service, with a client that may reach loopback."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.http import HttpClient, HttpOptions
from holdfast.kernel import Store
from holdfast_linker.wikidata import Api
from pipelines.linker.tests.entity_world import EntityWorld, make_world
from pipelines.linker.tests.labelled import AGENT
from pipelines.linker.tests.reconciliation_server import ReconciliationServer
from pipelines.linker.tests.scene import LinkerScene
from pipelines.linker.tests.wikidata_server import WikidataServer
from tests.http_client import RecordingGates, http_client
from tests.web.conftest import browser, open_as, root, watch  # noqa: F401 - for test_browser


@pytest.fixture(scope="session")
def entity_world() -> EntityWorld:
    return make_world(1)


@pytest.fixture
async def wikidata(entity_world: EntityWorld) -> AsyncIterator[WikidataServer]:
    async with WikidataServer(entity_world) as server:
        yield server


@pytest.fixture
def api(wikidata: WikidataServer) -> Api:
    return Api(url=wikidata.url)


@pytest.fixture
async def service(entity_world: EntityWorld) -> AsyncIterator[ReconciliationServer]:
    async with ReconciliationServer(entity_world) as server:
        yield server


@pytest.fixture
def gates() -> RecordingGates:
    return RecordingGates()


@pytest.fixture
async def http(gates: RecordingGates) -> AsyncIterator[HttpClient]:
    options = HttpOptions(user_agent=AGENT, allow_private_addresses=True)
    async with http_client(options, gates) as client:
        yield client


@pytest.fixture
def scene(store: Store, tmp_path: Path, wikidata: WikidataServer) -> LinkerScene:
    folder = tmp_path / "rows"
    folder.mkdir()
    return LinkerScene(store, folder, wikidata.url)
