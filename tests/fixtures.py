"""A fresh, migrated database for every test, on SQLite and on a real PostgreSQL; a real RabbitMQ.

A test that takes `database_url`, `store` or `run_holdfast` runs once on each database. To keep
one to SQLite: `@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)`. In tests/cli
and tests/chaos it runs once more as a fleet: on PostgreSQL, with RabbitMQ and a relay.

`broker_url` is the session's RabbitMQ, `queue_prefix` a name for queues of the test's own.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import aio_pika
import pytest
import structlog
from hypothesis import HealthCheck, settings

from tests import selection
from tests.chaos.children import Children
from tests.command import HoldfastCommand
from tests.fleet import FLEET, broker_settings, forget_queues, running_relay
from tests.folders import work_in_memory
from tests.postgres import POSTGRES_MISSING, PostgresServer, database_name, find_binaries
from tests.rabbitmq import RABBITMQ_MISSING, RabbitServer, rabbitmq_is_installed
from tests.seaweedfs import S3Server

#: How many values Hypothesis tries at random. If it is 0, the same ones are tried in every run.
EXAMPLES = int(os.environ.get("HYPOTHESIS_EXAMPLES", "0"))

settings.register_profile(
    "suite",
    max_examples=EXAMPLES or 100,
    derandomize=not EXAMPLES,
    deadline=None,  # A busy machine is slow, which is not a failure.
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("suite")

#: Where the tests keep files, and one whose files they may import.
BUCKET, INCOMING = "holdfast", "incoming"

on_each_database = pytest.fixture(
    params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]
)


@pytest.fixture(autouse=True)
def logs_of_one_test() -> Iterator[None]:
    """A command that ran in this process has sent its logs to a stream that is closed by now."""
    yield
    structlog.reset_defaults()


def pytest_addoption(parser: pytest.Parser) -> None:
    selection.add_options(parser)


def pytest_report_header(config: pytest.Config) -> str | None:
    return selection.describe(config)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """A worker process has ended (pytest-xdist)."""
    selection.receive_from_worker(node)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    selection.summarize(terminalreporter, config)


def pytest_configure(config: pytest.Config) -> None:
    """The tester's own settings must not reach the tests."""
    for name in [name for name in os.environ if name.startswith("HOLDFAST_")]:
        del os.environ[name]
    work_in_memory()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Before -m deselects: whatever asks for a server by name needs it."""
    selection.keep_selection(config, items)
    for item in items:
        names = getattr(item, "fixturenames", ())
        if "postgres_server" in names:
            item.add_marker("postgres")
        if "rabbit_server" in names:
            item.add_marker("rabbit")
        if "s3_server" in names:
            item.add_marker("s3")
        if "browser" in names:
            item.add_marker("browser")
        if "datasette" in names:
            item.add_marker("datasette")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """The session's PostgreSQL server, started when the first test needs it."""
    if find_binaries() is None:
        pytest.fail(POSTGRES_MISSING, pytrace=False)
    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="session")
def rabbit_server() -> Iterator[RabbitServer]:
    """The session's RabbitMQ server, started when the first test needs it."""
    if not rabbitmq_is_installed():
        pytest.fail(RABBITMQ_MISSING, pytrace=False)
    with RabbitServer() as server:
        yield server


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """The session's S3 server with its buckets, started when the first test needs it."""
    with S3Server([BUCKET, INCOMING]) as server:
        yield server


@pytest.fixture
def bucket_settings(s3_server: S3Server) -> dict[str, str]:
    """A place in the session's bucket of the test's own."""
    return s3_server.settings(BUCKET, f"test-{uuid4().hex[:12]}")


@pytest.fixture
def broker_url(rabbit_server: RabbitServer) -> str:
    """The session's RabbitMQ, running and well, even if the test before has stopped it."""
    rabbit_server.renew()
    return rabbit_server.url


@pytest.fixture
async def queue_prefix(rabbit_server: RabbitServer, broker_url: str) -> AsyncIterator[str]:
    """A prefix of the test's own; queues and exchanges under it are removed afterwards."""
    prefix = f"test-{uuid4().hex[:12]}"
    yield prefix
    rabbit_server.start()
    # A server that has just started may answer with an internal error.
    with suppress(aio_pika.exceptions.AMQPError):
        async with await aio_pika.connect(broker_url) as connection:
            channel = await connection.channel()
            for word in ("interactive", "bulk", "discover", "dead"):
                await channel.queue_delete(f"{prefix}.{word}")
            for word in ("work", "dead"):
                await channel.exchange_delete(f"{prefix}.{word}")


@pytest.fixture(scope="session")
def migrated_template(postgres_server: PostgresServer) -> str:
    """The name of a PostgreSQL database that was migrated once and is only copied."""
    from holdfast.kernel.database.migrate import upgrade

    url = postgres_server.create_database(name="migrated")
    upgrade(url)
    return database_name(url)


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file that was migrated once and is only copied."""
    from holdfast.kernel.database.migrate import upgrade

    path = tmp_path_factory.mktemp("migrated") / "holdfast.db"
    upgrade(sqlite_url_of(path))
    with closing(sqlite3.connect(path)) as connection:
        # A copy of the file alone must be whole.
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


@pytest.fixture
def sqlite_url(migrated_file: Path, tmp_path: Path) -> str:
    path = tmp_path / "holdfast.db"
    shutil.copyfile(migrated_file, path)
    return sqlite_url_of(path)


@pytest.fixture
def postgres_url(postgres_server: PostgresServer, migrated_template: str) -> Iterator[str]:
    url = postgres_server.create_database(template=migrated_template)
    yield url
    postgres_server.drop_database(url)


@pytest.fixture
def empty_sqlite_url(tmp_path: Path) -> str:
    return sqlite_url_of(tmp_path / "empty.db")


@pytest.fixture
def empty_postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    url = postgres_server.create_database()
    yield url
    postgres_server.drop_database(url)


@on_each_database
def database_url(request: pytest.FixtureRequest) -> str:
    """A fresh database with the newest schema, on each database in turn."""
    return fresh_database(request)


@on_each_database
def empty_database_url(request: pytest.FixtureRequest) -> str:
    """A fresh database without any schema, for the tests of the migrations."""
    url: str = request.getfixturevalue(f"empty_{request.param}_url")
    return url


@pytest.fixture
async def store(database_url: str) -> AsyncIterator[Any]:
    from holdfast.kernel import open_store

    store = await open_store(database_url)
    yield store
    await store.close()


@pytest.fixture
def fleet_settings(
    request: pytest.FixtureRequest, database_url: str, tmp_path: Path
) -> Iterator[dict[str, str]]:
    """What makes the processes of a test a fleet, while a relay runs; nothing in other modes."""
    if request.node.callspec.params.get("database_url") != FLEET:
        yield {}
        return
    settings = broker_settings(request.getfixturevalue("broker_url"))
    with running_relay(database_url, settings, tmp_path / "relay"):
        yield settings
    request.getfixturevalue("rabbit_server").start()
    forget_queues(settings)


@pytest.fixture
def children(tmp_path: Path) -> Iterator[Children]:
    """Real processes that start at once, being forked from one that has imported everything."""
    started = Children(tmp_path)
    yield started
    started.tell()
    started.close()


@pytest.fixture
def holdfast_command(
    database_url: str, fleet_settings: dict[str, str], tmp_path: Path
) -> Iterator[HoldfastCommand]:
    command = HoldfastCommand(database_url, tmp_path, fleet_settings)
    yield command
    command.close()


@pytest.fixture
def run_holdfast(
    holdfast_command: HoldfastCommand,
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """`run_holdfast("jobs", "--json")` runs the program to its end."""
    return holdfast_command.run


@pytest.fixture
def start_holdfast(holdfast_command: HoldfastCommand) -> Callable[..., subprocess.Popen[str]]:
    """`start_holdfast("work")` starts the program, for tests that signal or kill it."""
    return holdfast_command.start


def fresh_database(request: pytest.FixtureRequest) -> str:
    """The database of a mode: a fleet works on PostgreSQL."""
    kind = "postgres" if request.param == FLEET else request.param
    url: str = request.getfixturevalue(f"{kind}_url")
    return url


def sqlite_url_of(path: Path) -> str:
    return f"sqlite:///{path}"
