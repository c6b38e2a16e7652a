"""Connections that keep a real server waiting: half-sent heads and bodies, unread replies."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

import httpx2
import pytest

from holdfast.server.connections import ConnectionLimits
from tests.api.server import ApiServer
from tests.cli.desk import wait_until
from tests.command import HoldfastCommand
from tests.listening import listening

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)

HALF_A_HEAD = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow"
HALF_A_BODY = (
    b"POST /api/session HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b'Content-Length: 100\r\n\r\n{"name": "ada"'
)

EXPECTING = HALF_A_BODY.replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n")


@dataclass
class Api:
    port: int
    stack: ExitStack
    pid: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def connect(self, sent: bytes = b"", receive_bytes: int | None = None) -> socket.socket:
        """Closed at the test's end."""
        client = self.stack.enter_context(socket.socket())
        if receive_bytes is not None:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        client.settimeout(60)
        client.connect(("127.0.0.1", self.port))
        client.sendall(sent)
        return client

    def socket_count(self) -> int:
        """How many sockets the server's process has open."""
        found = 0
        for link in Path(f"/proc/{self.pid}/fd").iterdir():
            try:
                found += str(link.readlink()).startswith("socket:")
            except FileNotFoundError:
                continue
        return found


class Running:
    """The API with these limits, in a loop of its own on a thread of this process."""

    def __init__(self, database_url: str, folder: Path, limits: ConnectionLimits) -> None:
        self._server = ApiServer(database_url, folder, connections=limits)
        self._thread = Thread(target=lambda: asyncio.run(self._serve()))
        self._ready = Event()

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with self._server as server:
            self.port = int(server.url.rpartition(":")[2])
            self._ready.set()
            await self._stop.wait()

    def __enter__(self) -> Running:
        self._thread.start()
        assert self._ready.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(60)


Start = Callable[..., Api]


@pytest.fixture
def start(database_url: str, tmp_path: Path) -> Iterator[Start]:
    """Starts the API with other limits than the usual ones."""
    with ExitStack() as stack:

        def start(**limits: float) -> Api:
            running = Running(database_url, tmp_path, ConnectionLimits(**limits))
            return Api(stack.enter_context(running).port, stack, os.getpid())

        yield start


@pytest.fixture
def many_files() -> Iterator[None]:
    """The test itself holds more sockets open than are usually allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def everything(client: socket.socket) -> bytes:
    """What the server says until it ends the connection."""
    said = b""
    try:
        while data := client.recv(65536):
            said += data
    except ConnectionResetError:
        pass
    return said


@pytest.mark.usefixtures("many_files")
def test_half_sent_heads_block_no_one_and_are_closed(holdfast_command: HoldfastCommand) -> None:
    process = holdfast_command.start("api", "--port", "0", open_files=1024)
    with ExitStack() as stack:
        _crowd(Api(int(listening(process).rpartition(":")[2]), stack, process.pid))


def _crowd(api: Api) -> None:
    crowd = [api.connect(HALF_A_HEAD) for _ in range(1100)]
    for _ in range(20):
        assert httpx2.get(f"{api.url}/healthz", timeout=30).text == "ok\n"
    assert {everything(client) for client in crowd} == {b""}
    assert httpx2.get(f"{api.url}/healthz").status_code == 200


@pytest.mark.parametrize("sent", [b"", HALF_A_HEAD], ids=["nothing", "half a head"])
def test_a_head_has_a_time_limit(start: Start, sent: bytes) -> None:
    api = start(head_seconds=1)
    assert everything(api.connect(sent)) == b""


def test_the_second_head_of_a_connection_has_one_too(start: Start) -> None:
    api = start(head_seconds=1)
    client = api.connect(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    answer = b""
    while not answer.endswith(b"\r\n\r\nok\n"):
        answer += client.recv(65536)
    client.sendall(HALF_A_HEAD)
    assert everything(client) == b""


def test_a_half_sent_body_is_refused(start: Start) -> None:
    api = start(progress_seconds=1)
    assert everything(api.connect(HALF_A_BODY)).startswith(b"HTTP/1.1 408 ")


def test_a_body_may_be_slow_while_it_keeps_coming(start: Start) -> None:
    api = start(progress_seconds=1, bytes_per_second=20, head_seconds=1)
    body = b'{"name": "ada", "password": "%s"}' % (b"x" * 300)
    client = api.connect(
        b"POST /api/session HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
    )
    for byte in range(0, len(body), 10):
        client.sendall(body[byte : byte + 10])
        time.sleep(0.15)  # the pace of the line, which is what is tried here
    assert everything(client).startswith(b"HTTP/1.1 401 ")


def test_the_rest_of_a_body_that_was_refused_is_not_awaited(start: Start) -> None:
    api = start(head_seconds=1)
    client = api.connect(
        b"POST /api/session HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000000000\r\n\r\n"
    )
    assert client.recv(65536).startswith(b"HTTP/1.1 413 ")

    def is_closed() -> bool:
        try:
            client.sendall(b"x" * 1000)
            return client.recv(65536, socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return False
        except (ConnectionResetError, BrokenPipeError):
            return True

    wait_until(is_closed)


def test_an_unread_reply_is_abandoned(start: Start) -> None:
    api = start(progress_seconds=1)
    before = wait_until(api.socket_count)
    asking = b"GET /static/vendor/uplot.min.js HTTP/1.1\r\nHost: localhost\r\n\r\n"
    client = api.connect(asking * 500, receive_bytes=4096)
    wait_until(lambda: client.recv(1, socket.MSG_PEEK))
    wait_until(lambda: api.socket_count() <= before + 1)  # the client's own


def test_when_all_connections_are_busy_another_is_refused(start: Start) -> None:
    api = start(connections=2)
    busy = [api.connect(EXPECTING) for _ in range(2)]
    for client in busy:
        assert client.recv(100).startswith(b"HTTP/1.1 100 "), "its body is being read"
    refused = wait_until(lambda: _refused(api))
    assert b"Retry-After: 5" in refused
    busy[0].close()
    wait_until(lambda: not _refused(api))


def _refused(api: Api) -> bytes | None:
    """The refusal, or nothing where it is answered."""
    with socket.create_connection(("127.0.0.1", api.port), 30) as client:
        with suppress(ConnectionResetError, BrokenPipeError):
            client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        said = everything(client)
    return said if said.startswith(b"HTTP/1.1 503 ") else None
