"""A private PostgreSQL server for the tests: its own folder, its own port, gone afterwards."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.folders import folder_of_a_server
from tests.ports import free_port
from tests.watchdog import Watchdog

#: Not `holdfast`: PostgreSQL looks for names in a schema of the role's name first.
SUPERUSER = "tester"
PATIENCE_SECONDS = 180.0
POSTGRES_MISSING = (
    "PostgreSQL's server programs are not on this machine. "
    "Run `make test`, which installs them, or `apt-get install postgresql`."
)


class PostgresError(RuntimeError):
    """PostgreSQL is not installed, does not start or refuses a statement."""


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


class PostgresServer:
    """A server on loopback that trusts every client, in a temporary folder.

    `durable=False` switches fsync off: commits still outlive a killed server, though not a power
    cut. Crash tests and benchmarks pass `durable=True` for the defaults of a real installation.
    """

    def __init__(self, *, durable: bool = False, addresses: Sequence[str] = ()) -> None:
        """`addresses`: where it listens beside loopback."""
        self._addresses = ["127.0.0.1", *addresses]
        self._binaries = _require_binaries()
        self._settings = [] if durable else ["fsync=off", "full_page_writes=off"]
        self.folder = folder_of_a_server("holdfast-pg-")
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._watchdog: Watchdog | None = None
        self._databases = 0

    def __enter__(self) -> Self:
        try:
            self._initialise()
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

    def url(self, database: str) -> str:
        return f"postgresql://{SUPERUSER}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Starts the server and waits until it takes connections."""
        if self.running:
            return
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._unprivileged(self._server_command()),
                cwd=self.folder,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Ctrl-C in the terminal is for the tests; they stop the server themselves.
                start_new_session=True,
            )
        self._watchdog = Watchdog(self._process.pid, self.folder, "INT")
        self._wait_until_ready()

    def stop(self) -> None:
        """Stops the server in order: open transactions are rolled back."""
        self._signal(signal.SIGINT)

    def stop_hard(self) -> None:
        """Stops the server at once, as a crash would; the next start recovers from the log."""
        self._signal(signal.SIGQUIT)

    def restart(self) -> None:
        self.stop()
        self.start()

    def close(self) -> None:
        """Stops the server and removes everything it had."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

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
            timeout=PATIENCE_SECONDS,
        )
        if reply.returncode:
            raise PostgresError(reply.stderr.strip())
        return reply.stdout.strip()

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    @property
    def _log(self) -> Path:
        return self.folder / "server.log"

    def _initialise(self) -> None:
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
            timeout=PATIENCE_SECONDS,
        )
        if reply.returncode:
            raise PostgresError(f"initdb failed:\n{reply.stderr.strip()}")
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

    def _wait_until_ready(self) -> None:
        command = [str(self._binaries / "pg_isready"), "-q", "-d", self.url("postgres")]
        deadline = time.monotonic() + PATIENCE_SECONDS
        while subprocess.run(command, env=_environment()).returncode:
            if not self.running or time.monotonic() > deadline:
                self.stop_hard()
                raise PostgresError(f"PostgreSQL did not start:\n{self._log_tail()}")
            time.sleep(0.02)

    def _log_tail(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines() if self._log.exists() else []
        return "\n".join(lines[-20:])

    def _signal(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        # First, or it would signal the next process with that id.
        self._dismiss_watchdog()
        process.send_signal(number)
        try:
            process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _dismiss_watchdog(self) -> None:
        watchdog, self._watchdog = self._watchdog, None
        if watchdog is not None:
            watchdog.dismiss()


def database_name(url: str) -> str:
    return re.sub(r"[?#].*", "", url).rsplit("/", 1)[1]


def _require_binaries() -> Path:
    found = find_binaries()
    if found is None:
        raise PostgresError(POSTGRES_MISSING)
    return found


def _environment() -> dict[str, str]:
    """Without PGHOST, PGOPTIONS and the like, which would lead elsewhere."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8", "TZ": "UTC"}
