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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

POSTGRES_HOMES = Path("/usr/lib/postgresql")
RABBIT_SCRIPTS = Path("/usr/lib/rabbitmq/bin")
UNPRIVILEGED = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups")


class ServerFailed(Exception):
    """A server did not come up; the message says where its log stands."""


@dataclass(frozen=True, slots=True)
class Servers:
    postgres_port: int
    redis_port: int
    rabbit_port: int

    @property
    def redis_url(self) -> str:
        return f"redis://127.0.0.1:{self.redis_port}"

    @property
    def amqp_url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.rabbit_port}/"

    def dsn(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@127.0.0.1:{self.postgres_port}/{database}"

    def fresh_database(self, name: str) -> str:
        """Makes an empty database of this name, in place of an earlier one; gives its DSN."""
        with psycopg.connect(self.dsn(), autocommit=True) as connection:
            connection.execute(f'drop database if exists "{name}" with (force)')
            connection.execute(f'create database "{name}"')
        return self.dsn(name)


@contextmanager
def running(folder: Path) -> Iterator[Servers]:
    """All three servers, from here to the end of the block."""
    folder.chmod(0o755)
    with (
        _postgres(folder / "pg") as postgres_port,
        _redis(folder / "redis") as redis_port,
        _rabbit(folder / "rabbit") as rabbit_port,
    ):
        yield Servers(postgres_port, redis_port, rabbit_port)


@contextmanager
def _postgres(folder: Path) -> Iterator[int]:
    homes = sorted(POSTGRES_HOMES.glob("*/bin"), key=lambda home: int(home.parent.name))
    if not homes:
        raise ServerFailed("PostgreSQL is not installed; bench/servers installs it.")
    programs, port, data = homes[-1], _free_port(), folder / "data"
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
    port = _free_port()
    append_only = ["--appendonly", "yes", "--appendfsync", "everysec", "--save", ""]
    serve = ["redis-server", "--bind", "127.0.0.1", "--port", port, "--dir", folder, *append_only]
    with _process(serve, folder, stop=signal.SIGTERM) as process:
        _wait(process, folder, lambda: _answers(port, b"PING\r\n"))
        yield port


@contextmanager
def _rabbit(folder: Path) -> Iterator[int]:
    folder.mkdir()
    port, distribution_port, epmd_port = _free_port(), _free_port(), _free_port()
    config = folder / "rabbitmq.conf"
    config.write_text(f"listeners.tcp.default = 127.0.0.1:{port}\n")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "RABBITMQ_NODENAME": f"bench{port}@localhost",
        "RABBITMQ_DIST_PORT": str(distribution_port),
        "ERL_EPMD_PORT": str(epmd_port),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "RABBITMQ_CONF_ENV_FILE": "/dev/null",
        "RABBITMQ_CONFIG_FILE": str(config),
        "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_SCHEMA_DIR": str(folder / "schema"),
        "RABBITMQ_GENERATED_CONFIG_DIR": str(folder / "generated"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
        "RABBITMQ_PID_FILE": str(folder / "pid"),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": ("-kernel inet_dist_use_interface {127,0,0,1}"),
    }
    serve = [RABBIT_SCRIPTS / "rabbitmq-server"]
    try:
        with _process(serve, folder, stop=signal.SIGTERM, environment=environment) as process:
            _wait(process, folder, lambda: _answers(port, b"AMQP\x00\x00\x09\x01"))
            yield port
    finally:
        _run(["epmd", "-port", epmd_port, "-kill"], folder, check=False)


@contextmanager
def _process(
    command: Sequence[object],
    folder: Path,
    stop: signal.Signals,
    environment: Mapping[str, str] | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    with (folder / "server.log").open("ab") as log:
        process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env=environment,
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


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
