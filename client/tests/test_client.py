"""The client's wheel in an empty environment, with the drivers of an application."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

import holdfast
import holdfast_client
from client.tests import application
from holdfast.errors import NotThere, SchemaError, UnfitState, UserError
from holdfast.kernel import NewJob, NewStream, Store
from tests.store.checks import assert_sound, items_of
from tests.wheels import ROOT, Environment, run

CLIENT = ROOT / "client"
DRIVERS = ["psycopg[binary]", "asyncpg", "sqlalchemy[asyncio]"]
STANDING = NewJob("events", "events", [NewStream("rows {job}", "v1")], standing=True)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return Environment(tmp_path_factory.mktemp("client"), [CLIENT], others=DRIVERS)


@pytest.mark.slow
def test_client_needs_at_most_three_packages(environment: Environment) -> None:
    assert set(environment.dependencies) == {"orjson"}


@pytest.mark.slow
async def test_application_without_holdfast_adds_records_with_every_library(
    environment: Environment, store: Store, database_url: str
) -> None:
    job_id, _ = await store.jobs.open(STANDING, "ada")
    command = [environment.python, Path(application.__file__), database_url]
    said = json.loads(
        await asyncio.to_thread(run, command, cwd=environment.work, env=environment.variables())
    )
    libraries = len(application.LIBRARIES[database_url.partition(":")[0]])
    assert said == [[job_id, 2, 0], [job_id, 1, 1]] * libraries
    inputs = sorted(json.loads(item.input)["id"] for item in await items_of(store, job_id))
    assert inputs == sorted([1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4][: 3 * libraries])
    await assert_sound(store, job_id)


def test_holdfast_gives_the_functions_and_errors_of_the_client() -> None:
    for name in ("Enqueued", "aenqueue", "enqueue"):
        assert getattr(holdfast, name) is getattr(holdfast_client, name)
    for error in (NotThere, SchemaError, UnfitState, UserError):
        assert error is getattr(holdfast_client, error.__name__)
