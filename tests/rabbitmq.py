"""A private RabbitMQ server: its own node, ports, epmd and folder, gone afterwards."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.ports import free_port
from tests.server import Server, ServerError

SCRIPTS = Path("/usr/lib/rabbitmq/bin")
PROTOCOL_HEADER = b"AMQP\x00\x00\x09\x01"
#: On loopback only; a dead letter that found no queue is tried again soon, not after 3 minutes.
ERLANG_ARGUMENTS = (
    "-kernel inet_dist_use_interface {127,0,0,1}"
    " -rabbit dead_letter_worker_publisher_confirm_timeout 2000"
)
RABBITMQ_MISSING = (
    "RabbitMQ's server programs are not on this machine. "
    "Run `make test`, which installs them, or `apt-get install rabbitmq-server`."
)


def rabbitmq_is_installed() -> bool:
    return (SCRIPTS / "rabbitmq-server").exists() and shutil.which("epmd") is not None


class RabbitServer(Server):
    """A node on loopback with the user guest, in a temporary folder."""

    name = "RabbitMQ"

    def __init__(self, addresses: Sequence[str] = ()) -> None:
        """`addresses`: where it listens beside loopback."""
        self._addresses = ["127.0.0.1", *addresses]
        if not rabbitmq_is_installed():
            raise ServerError(RABBITMQ_MISSING)
        super().__init__("holdfast-rabbit-")
        self.port = free_port()
        self._distribution_port = free_port()
        self._epmd_port = free_port()
        self._was_stopped = False

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}/"

    def start(self) -> None:
        """Starts the node and waits until it speaks AMQP."""
        if not self.running:
            end_epmd = f"epmd -port {self._epmd_port} -kill"
            command = [str(SCRIPTS / "rabbitmq-server")]
            self._launch(command, self._environment(), afterwards=end_epmd)
            self._wait_until(self._answers)

    def stop_hard(self) -> None:
        """Kills the node at once, as a crash would."""
        self._kill()

    def renew(self) -> None:
        """Starts an empty node if this one was ever stopped. One that was is now and then ill:
        consumers of a quorum queue get INTERNAL_ERROR (seen on 3.10)."""
        if self._was_stopped or not self.running:
            self.stop()
            shutil.rmtree(self.folder / "mnesia", ignore_errors=True)
            self.start()
            self._was_stopped = False

    def close(self) -> None:
        super().close()
        command = ["epmd", "-port", str(self._epmd_port), "-kill"]
        subprocess.run(command, capture_output=True, check=False)

    def control(self, *arguments: str) -> str:
        """Runs rabbitmqctl, which takes some seconds, and returns what it printed."""
        reply = subprocess.run(
            [str(SCRIPTS / "rabbitmqctl"), "-q", "-n", self._node, *arguments],
            cwd="/",
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=self.patience_seconds,
        )
        if reply.returncode:
            raise ServerError(reply.stderr.strip() or reply.stdout.strip())
        return reply.stdout.strip()

    @property
    def _node(self) -> str:
        return f"holdfast{self.port}@localhost"

    @property
    def _config(self) -> Path:
        return self.folder / "rabbitmq.conf"

    def _prepare(self) -> None:
        self._config.write_text(self._settings())

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

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(PROTOCOL_HEADER)
                return bool(connection.recv(1))
        except OSError:
            return False

    def _let_go(self) -> subprocess.Popen[bytes] | None:
        self._was_stopped = True
        return super()._let_go()
