"""The servers that the other tests rely on."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncpg
import pytest

from tests.command import HoldfastCommand
from tests.postgres import PostgresServer
from tests.proxy import Proxy
from tests.server import ServerError

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def own_server(postgres_server: PostgresServer) -> Iterator[PostgresServer]:
    """A second server, which tests may stop; the session's is shared by all tests."""
    with PostgresServer() as server:
        yield server


class TestPostgresServer:
    async def test_database_is_utf8_and_takes_writes(self, own_server: PostgresServer) -> None:
        connection = await asyncpg.connect(own_server.create_database())
        try:
            await connection.execute("CREATE TABLE words (word text)")
            await connection.execute("INSERT INTO words VALUES ('điện thoại')")
            assert await connection.fetchval("SELECT word FROM words") == "điện thoại"
            assert await connection.fetchval("SHOW server_encoding") == "UTF8"
        finally:
            await connection.close()

    def test_clone_has_the_rows_of_its_template_and_is_apart_from_it(
        self, own_server: PostgresServer
    ) -> None:
        own_server.create_database(name="pattern")
        own_server.execute("CREATE TABLE t AS SELECT 1 AS n", database="pattern")
        own_server.create_database(template="pattern", name="copy")
        own_server.execute("INSERT INTO t VALUES (2)", database="copy")
        assert own_server.execute("SELECT count(*) FROM t", database="copy") == "2"
        assert own_server.execute("SELECT count(*) FROM t", database="pattern") == "1"

    def test_restart_keeps_port_and_data(self, own_server: PostgresServer) -> None:
        own_server.create_database(name="kept")
        own_server.execute("CREATE TABLE t AS SELECT 1 AS n", database="kept")
        port = own_server.port
        own_server.restart()
        assert own_server.port == port
        assert own_server.execute("SELECT n FROM t", database="kept") == "1"

    def test_committed_rows_outlive_a_hard_stop(self, own_server: PostgresServer) -> None:
        own_server.create_database(name="crashed")
        own_server.execute("CREATE TABLE t AS SELECT 1 AS n", database="crashed")
        own_server.stop_hard()
        assert not own_server.running
        own_server.start()
        assert own_server.execute("SELECT n FROM t", database="crashed") == "1"

    async def test_database_is_dropped_while_a_client_is_connected(
        self, own_server: PostgresServer
    ) -> None:
        url = own_server.create_database(name="busy")
        connection = await asyncpg.connect(url)
        await asyncio.to_thread(own_server.drop_database, url)
        connection.terminate()
        names = own_server.execute("SELECT datname FROM pg_database").split()
        assert "busy" not in names

    def test_refused_statement_says_why(self, own_server: PostgresServer) -> None:
        with pytest.raises(ServerError, match="does not exist"):
            own_server.execute("SELECT * FROM nothing")

    def test_durable_server_keeps_the_defaults_of_an_installation(
        self, postgres_server: PostgresServer
    ) -> None:
        with PostgresServer(durable=True) as server:
            assert server.execute("SHOW fsync") == "on"
            assert server.execute("SHOW full_page_writes") == "on"
            assert server.execute("SHOW synchronous_commit") == "on"
        assert postgres_server.execute("SHOW fsync") == "off"
        assert postgres_server.execute("SHOW synchronous_commit") == "on"

    def test_close_removes_process_and_folder(self, postgres_server: PostgresServer) -> None:
        with PostgresServer() as server:
            folder, process_id = server.folder, _postmaster_id(server.folder)
        assert not folder.exists()
        assert not _is_alive(process_id)

    def test_server_goes_away_when_the_tests_are_killed(
        self, postgres_server: PostgresServer
    ) -> None:
        script = (
            "import time\n"
            "from tests.postgres import PostgresServer\n"
            "with PostgresServer() as server:\n"
            "    print(server.folder, flush=True)\n"
            "    time.sleep(600)\n"
        )
        with subprocess.Popen(
            [sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, text=True
        ) as tests:
            assert tests.stdout is not None
            folder = Path(tests.stdout.readline().strip())
            process_id = _postmaster_id(folder)
            tests.send_signal(signal.SIGKILL)
        _wait_for(lambda: not folder.exists())
        assert not _is_alive(process_id)


@pytest.fixture
async def echo_url() -> AsyncIterator[str]:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1024):
            writer.write(data)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    yield f"tcp://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    server.close()
    await server.wait_closed()


class TestProxy:
    async def test_bytes_pass_both_ways(self, echo_url: str) -> None:
        async with Proxy(echo_url) as proxy:
            reader, writer = await _connect(proxy)
            assert await _echo(reader, writer, b"hello") == b"hello"
            writer.close()
            assert proxy.accepted_count == 1

    async def test_cut_ends_open_connections_and_takes_new_ones(self, echo_url: str) -> None:
        async with Proxy(echo_url) as proxy:
            reader, writer = await _connect(proxy)
            await _echo(reader, writer, b"hello")
            await proxy.cut()
            with pytest.raises(ConnectionResetError):
                await reader.read(1)
            writer.close()
            reader, writer = await _connect(proxy)
            assert await _echo(reader, writer, b"again") == b"again"
            writer.close()

    async def test_stall_holds_bytes_back_until_they_may_flow(self, echo_url: str) -> None:
        async with Proxy(echo_url) as proxy:
            reader, writer = await _connect(proxy)
            await _echo(reader, writer, b"hello")
            proxy.stall()
            answer = asyncio.create_task(_echo(reader, writer, b"later"))
            done, _ = await asyncio.wait([answer], timeout=0.2)
            assert not done
            proxy.flow()
            assert await answer == b"later"
            writer.close()

    async def test_stalled_connection_can_be_cut(self, echo_url: str) -> None:
        async with Proxy(echo_url) as proxy:
            reader, writer = await _connect(proxy)
            await _echo(reader, writer, b"hello")
            proxy.stall()
            writer.write(b"never arrives")
            await writer.drain()
            await proxy.cut()
            with pytest.raises(ConnectionResetError):
                await reader.read(1)
            writer.close()

    async def test_refused_port_accepts_again_on_demand(self, echo_url: str) -> None:
        async with Proxy(echo_url) as proxy:
            await proxy.refuse()
            with pytest.raises(ConnectionRefusedError):
                await _connect(proxy)
            await proxy.accept()
            reader, writer = await _connect(proxy)
            assert await _echo(reader, writer, b"back") == b"back"
            writer.close()

    async def test_postgres_client_notices_that_the_database_is_gone(
        self, postgres_server: PostgresServer
    ) -> None:
        url = postgres_server.create_database()
        async with Proxy(url) as proxy:
            connection = await asyncpg.connect(proxy.url)
            assert await connection.fetchval("SELECT 1") == 1
            await proxy.refuse()
            with pytest.raises((asyncpg.PostgresConnectionError, OSError, asyncpg.InterfaceError)):
                await connection.fetchval("SELECT 1")
            with pytest.raises(OSError):
                await asyncpg.connect(proxy.url)
        postgres_server.drop_database(url)


class TestHoldfastCommand:
    def test_settings_of_the_tester_do_not_reach_the_program(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HOLDFAST_CLAIM_MAX", "7")
        monkeypatch.setenv("CLAIM_MAX", "7")
        environment = HoldfastCommand("sqlite:///x.db", tmp_path).environment({"EXTRA": "yes"})
        assert environment["HOLDFAST_DATABASE_URL"] == "sqlite:///x.db"
        assert environment["EXTRA"] == "yes"
        assert not {"HOLDFAST_CLAIM_MAX", "CLAIM_MAX"} & set(environment)


async def _connect(proxy: Proxy) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", proxy.port)


async def _echo(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, message: bytes
) -> bytes:
    writer.write(message)
    await writer.drain()
    return await reader.readexactly(len(message))


def _postmaster_id(folder: Path) -> int:
    return int((folder / "data" / "postmaster.pid").read_text().splitlines()[0])


def _is_alive(process_id: int) -> bool:
    """A process that ended but was not yet collected by its new parent counts as gone."""
    try:
        os.kill(process_id, 0)
        return "State:\tZ" not in Path(f"/proc/{process_id}/status").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False


def _wait_for(condition: object) -> None:
    assert callable(condition)
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.05)
