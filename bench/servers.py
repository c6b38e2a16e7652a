"""Private PostgreSQL, Redis and RabbitMQ on loopback, in a scratch folder, stopped by name.

PostgreSQL keeps its durable defaults (fsync and synchronous_commit on) and its stock sizing.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path

import psycopg

from tests.rabbitmq import RabbitServer

POSTGRES_HOMES = Path("/usr/lib/postgresql")
UNPRIVILEGED = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups")


class ServerFailed(Exception):
    """A server did not start; the message says where its log is."""


class Servers:
    """Servers, each running from the moment at which it is first needed until `stack` is closed."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack

    @cached_property
    def redis_url(self) -> str:
        port = self._stack.enter_context(_redis(self._folder / "redis"))
        return f"redis://127.0.0.1:{port}"

    @cached_property
    def amqp_url(self) -> str:
        port = self._stack.enter_context(RabbitServer()).port
        return f"amqp://guest:guest@127.0.0.1:{port}/"

    @cached_property
    def _postgres_port(self) -> int:
        return self._stack.enter_context(_postgres(self._folder / "pg"))

    def dsn(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@127.0.0.1:{self._postgres_port}/{database}"

    def fresh_database(self, name: str) -> str:
        """Creates an empty database of this name, in place of an earlier one; returns its DSN."""
        self.drop_database(name)
        with psycopg.connect(self.dsn(), autocommit=True) as connection:
            connection.execute(f'create database "{name}"')
        return self.dsn(name)

    def drop_database(self, name: str) -> None:
        """Drops a database with the work that the server still had to do for it: vacuum, pages to
        write."""
        with psycopg.connect(self.dsn(), autocommit=True) as connection:
            connection.execute(f'drop database if exists "{name}" with (force)')
            connection.execute("checkpoint")


@contextmanager
def running(folder: Path) -> Iterator[Servers]:
    """Provides servers that stop at the end of the block."""
    folder.chmod(0o755)
    with ExitStack() as stack:
        yield Servers(folder, stack)


@contextmanager
def _postgres(folder: Path) -> Iterator[int]:
    homes = sorted(POSTGRES_HOMES.glob("*/bin"), key=lambda home: int(home.parent.name))
    if not homes:
        raise ServerFailed("PostgreSQL is not installed; bench/servers installs it.")
    programs, port, data = homes[-1], free_port(), folder / "data"
    folder.mkdir()
    prefix: tuple[str, ...] = ()
    if os.geteuid() == 0:
        prefix = UNPRIVILEGED
        shutil.chown(folder, "nobody", "nogroup")
    initialise = [programs / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8"]
    _run([*prefix, *initialise, "--locale=C.UTF-8", "--no-sync"], folder)
    serve = [programs / "postgres", "-D", data, "-p", port, "-k", folder, "-h", "127.0.0.1"]
    ready = [programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", port]
    with _process([*prefix, *serve], folder, stop=signal.SIGINT) as process:
        _wait(process, folder, lambda: _succeeds(ready))
        yield port


@contextmanager
def _redis(folder: Path) -> Iterator[int]:
    folder.mkdir()
    port = free_port()
    append_only = ["--appendonly", "yes", "--appendfsync", "everysec", "--save", ""]
    serve = ["redis-server", "--bind", "127.0.0.1", "--port", port, "--dir", folder, *append_only]
    with _process(serve, folder, stop=signal.SIGTERM) as process:
        _wait(process, folder, lambda: _answers(port, b"PING\r\n"))
        yield port


@contextmanager
def _process(
    command: Sequence[object],
    folder: Path,
    stop: signal.Signals,
) -> Iterator[subprocess.Popen[bytes]]:
    with (folder / "server.log").open("ab") as log:
        process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            start_new_session=True,
        )
    try:
        yield process
    finally:
        process.send_signal(stop)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(process: subprocess.Popen[bytes], folder: Path, ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 90
    while not ready():
        if process.poll() is not None or time.monotonic() > deadline:
            raise ServerFailed(f"A server did not start; see {folder / 'server.log'}")
        time.sleep(0.1)


def _run(command: Sequence[object], folder: Path, check: bool = True) -> None:
    with (folder.parent / f"{folder.name}.setup.log").open("ab") as log:
        subprocess.run(
            [str(word) for word in command], check=check, stdout=log, stderr=log, cwd="/"
        )


def _succeeds(command: Sequence[object]) -> bool:
    return subprocess.run([str(word) for word in command], check=False).returncode == 0


def _answers(port: int, greeting: bytes) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(greeting)
            return bool(connection.recv(1))
    except OSError:
        return False


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
