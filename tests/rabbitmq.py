"""A private RabbitMQ server: its own node, ports, epmd and folder, gone afterwards."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.folders import folder_of_a_server
from tests.ports import free_port
from tests.watchdog import Watchdog

SCRIPTS = Path("/usr/lib/rabbitmq/bin")
PROTOCOL_HEADER = b"AMQP\x00\x00\x09\x01"
PATIENCE_SECONDS = 120.0
#: On loopback only; a dead letter that found no queue is tried again soon, not after 3 minutes.
ERLANG_ARGUMENTS = (
    "-kernel inet_dist_use_interface {127,0,0,1}"
    " -rabbit dead_letter_worker_publisher_confirm_timeout 2000"
)
RABBITMQ_MISSING = (
    "RabbitMQ's server programs are not on this machine. "
    "Run `make test`, which installs them, or `apt-get install rabbitmq-server`."
)


class RabbitError(RuntimeError):
    """RabbitMQ is not installed, does not start or refuses a command."""


def rabbitmq_is_installed() -> bool:
    return (SCRIPTS / "rabbitmq-server").exists() and shutil.which("epmd") is not None


class RabbitServer:
    """A node on loopback with the user guest, in a temporary folder."""

    def __init__(self, addresses: Sequence[str] = ()) -> None:
        """`addresses`: where it listens beside loopback."""
        self._addresses = ["127.0.0.1", *addresses]
        if not rabbitmq_is_installed():
            raise RabbitError(RABBITMQ_MISSING)
        self.folder = folder_of_a_server("holdfast-rabbit-")
        self.port = free_port()
        self._distribution_port = free_port()
        self._epmd_port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._was_stopped = False
        self._watchdog: Watchdog | None = None

    def __enter__(self) -> Self:
        try:
            self._config.write_text(self._settings())
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}/"

    def start(self) -> None:
        """Starts the node and waits until it speaks AMQP."""
        if self.running:
            return
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [str(SCRIPTS / "rabbitmq-server")],
                cwd="/",
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Ctrl-C in the terminal is for the tests; they stop the server themselves.
                start_new_session=True,
            )
        end_epmd = f"epmd -port {self._epmd_port} -kill"
        self._watchdog = Watchdog(self._process.pid, self.folder, "TERM", end_epmd)
        self._wait_until_ready()

    def stop(self) -> None:
        """Stops the node in order, connections first."""
        process = self._let_go()
        if process is None:
            return
        process.terminate()
        try:
            process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            _kill_group(process)

    def stop_hard(self) -> None:
        """Kills the node at once, as a crash would."""
        process = self._let_go()
        if process is not None:
            _kill_group(process)

    def renew(self) -> None:
        """Starts an empty node if this one was ever stopped. One that was is now and then ill:
        consumers of a quorum queue get INTERNAL_ERROR (seen on 3.10)."""
        if self._was_stopped or not self.running:
            self.stop()
            shutil.rmtree(self.folder / "mnesia", ignore_errors=True)
            self.start()
            self._was_stopped = False

    def restart(self) -> None:
        self.stop()
        self.start()

    def close(self) -> None:
        """Stops the node and removes everything it had."""
        self.stop()
        subprocess.run(
            ["epmd", "-port", str(self._epmd_port), "-kill"], capture_output=True, check=False
        )
        shutil.rmtree(self.folder, ignore_errors=True)

    def control(self, *arguments: str) -> str:
        """Runs rabbitmqctl, which takes some seconds, and returns what it printed."""
        reply = subprocess.run(
            [str(SCRIPTS / "rabbitmqctl"), "-q", "-n", self._node, *arguments],
            cwd="/",
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )
        if reply.returncode:
            raise RabbitError(reply.stderr.strip() or reply.stdout.strip())
        return reply.stdout.strip()

    @property
    def _node(self) -> str:
        return f"holdfast{self.port}@localhost"

    @property
    def _config(self) -> Path:
        return self.folder / "rabbitmq.conf"

    @property
    def _log(self) -> Path:
        return self.folder / "server.log"

    def _settings(self) -> str:
        listeners = [
            f"listeners.tcp.{number} = {address}:{self.port}\n"
            for number, address in enumerate(self._addresses)
        ]
        return "".join(listeners) + "loopback_users.guest = false\n"

    def _environment(self) -> dict[str, str]:
        """Complete: nothing of the tester's RABBITMQ_ or ERL_ variables leads elsewhere."""
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "LC_ALL": "C.UTF-8",
            "HOME": str(self.folder),
            "ERL_EPMD_PORT": str(self._epmd_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": self._node,
            "RABBITMQ_DIST_PORT": str(self._distribution_port),
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_CONFIG_FILE": str(self._config),
            "RABBITMQ_MNESIA_BASE": str(self.folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(self.folder / "log"),
            "RABBITMQ_SCHEMA_DIR": str(self.folder / "schema"),
            "RABBITMQ_GENERATED_CONFIG_DIR": str(self.folder / "generated"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "plugins"),
            "RABBITMQ_PID_FILE": str(self.folder / "pid"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": ERLANG_ARGUMENTS,
        }

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self._answers():
            if not self.running or time.monotonic() > deadline:
                self.stop_hard()
                raise RabbitError(f"RabbitMQ did not start:\n{self._log_tail()}")
            time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(PROTOCOL_HEADER)
                return bool(connection.recv(1))
        except OSError:
            return False

    def _log_tail(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines() if self._log.exists() else []
        return "\n".join(lines[-20:])

    def _let_go(self) -> subprocess.Popen[bytes] | None:
        self._was_stopped = True
        process, self._process = self._process, None
        watchdog, self._watchdog = self._watchdog, None
        if watchdog is not None:
            watchdog.dismiss()
        return process


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """The script started the Erlang machine as its child, in the same session."""
    with suppress(ProcessLookupError):  # it has ended by itself
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
