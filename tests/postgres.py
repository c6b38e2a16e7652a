"""A private PostgreSQL server for the tests: its own folder, its own port, gone afterwards."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.ports import free_port
from tests.server import Server, ServerError

#: Not `holdfast`: PostgreSQL looks for names in a schema of the role's name first.
SUPERUSER = "tester"
POSTGRES_MISSING = (
    "PostgreSQL's server programs are not on this machine. "
    "Run `make test`, which installs them, or `apt-get install postgresql`."
)


def find_binaries() -> Path | None:
    """The folder of the newest PostgreSQL server on this machine."""
    packaged = [
        path.parent
        for path in Path("/usr/lib/postgresql").glob("*/bin/postgres")
        if path.parents[1].name.isdigit()
    ]
    if packaged:
        return max(packaged, key=lambda folder: int(folder.parent.name))
    on_path = shutil.which("postgres")
    return Path(on_path).resolve().parent if on_path else None


class PostgresServer(Server):
    """A server on loopback that trusts every client, in a temporary folder.

    `durable=False` switches fsync off: commits still outlive a killed server, though not a power
    cut. Crash tests and benchmarks pass `durable=True` for the defaults of a real installation.
    """

    name = "PostgreSQL"

    def __init__(self, *, durable: bool = False, addresses: Sequence[str] = ()) -> None:
        """`addresses`: where it listens beside loopback."""
        self._addresses = ["127.0.0.1", *addresses]
        self._binaries = _require_binaries()
        super().__init__("holdfast-pg-")
        self._settings = [] if durable else ["fsync=off", "full_page_writes=off"]
        self.port = free_port()
        self._databases = 0

    def url(self, database: str) -> str:
        return f"postgresql://{SUPERUSER}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        if not self.running:
            command = self._unprivileged(self._server_command())
            self._launch(command, _environment(), if_tests_die=signal.SIGINT)
            self._wait_until(self._is_ready)

    def stop(self) -> None:
        """Stops the server in order: open transactions are rolled back."""
        self._end(signal.SIGINT)

    def stop_hard(self) -> None:
        """Stops the server at once, as a crash would; the next start recovers from the log."""
        self._end(signal.SIGQUIT)

    def create_database(self, template: str | None = None, name: str | None = None) -> str:
        """Makes a database, empty or as a copy of `template`, and returns its URL."""
        self._databases += 1
        name = name or f"test_{self._databases}"
        copied = f' TEMPLATE "{template}"' if template else ""
        self.execute(f'CREATE DATABASE "{name}"{copied}')
        return self.url(name)

    def drop_database(self, url: str) -> None:
        """Removes a database, even while a client is connected to it."""
        self.execute(f'DROP DATABASE IF EXISTS "{database_name(url)}" WITH (FORCE)')

    def execute(self, sql: str, database: str = "postgres") -> str:
        """Runs SQL outside of any event loop and returns the bare rows, one a line."""
        command = [str(self._binaries / "psql"), "-XAtq", "-v", "ON_ERROR_STOP=1"]
        reply = subprocess.run(
            [*command, "-d", self.url(database), "-c", sql],
            env=_environment(),
            capture_output=True,
            text=True,
            timeout=self.patience_seconds,
        )
        if reply.returncode:
            raise ServerError(reply.stderr.strip())
        return reply.stdout.strip()

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def _prepare(self) -> None:
        if os.getuid() == 0:
            shutil.chown(self.folder, "nobody", "nogroup")
        command = [str(self._binaries / "initdb"), "-D", str(self._data), "-U", SUPERUSER]
        command += ["-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"]
        reply = subprocess.run(
            self._unprivileged(command),
            cwd=self.folder,
            env=_environment(),
            capture_output=True,
            text=True,
            timeout=self.patience_seconds,
        )
        if reply.returncode:
            raise ServerError(f"initdb failed:\n{reply.stderr.strip()}")
        with (self._data / "pg_hba.conf").open("a") as rules:
            rules.write("host all all samenet trust\n")

    def _server_command(self) -> list[str]:
        command = [str(self._binaries / "postgres"), "-D", str(self._data)]
        command += ["-h", ",".join(self._addresses), "-p", str(self.port), "-k", str(self.folder)]
        return command + [part for setting in self._settings for part in ("-c", setting)]

    def _unprivileged(self, command: list[str]) -> list[str]:
        if os.getuid() != 0:
            return command
        return ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--", *command]

    def _is_ready(self) -> bool:
        command = [str(self._binaries / "pg_isready"), "-q", "-d", self.url("postgres")]
        return subprocess.run(command, env=_environment()).returncode == 0


def database_name(url: str) -> str:
    return re.sub(r"[?#].*", "", url).rsplit("/", 1)[1]


def _require_binaries() -> Path:
    found = find_binaries()
    if found is None:
        raise ServerError(POSTGRES_MISSING)
    return found


def _environment() -> dict[str, str]:
    """Without PGHOST, PGOPTIONS and the like, which would lead elsewhere."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8", "TZ": "UTC"}
