"""A private server of the tests: one process with its own folder, ended even if the tests die."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from tests.folders import folder_of_a_server
from tests.watchdog import Watchdog


class ServerError(RuntimeError):
    """A server is not installed, does not start or refuses a command."""


class Server:
    """`with Server() as server`: runs from here on, and is gone afterwards with its folder.

    Each kind says how it is started and how it is stopped in order.
    """

    name = ""
    patience_seconds = 180.0

    def __init__(self, folder_prefix: str) -> None:
        self.folder = folder_of_a_server(folder_prefix)
        self._process: subprocess.Popen[bytes] | None = None
        self._watchdog: Watchdog | None = None

    def __enter__(self) -> Self:
        try:
            self._prepare()
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Starts the server and waits until it answers; nothing happens if it runs."""
        raise NotImplementedError

    def stop(self) -> None:
        """Stops the server in order; `start` finds what it had."""
        self._end(signal.SIGTERM)

    def restart(self) -> None:
        self.stop()
        self.start()

    def close(self) -> None:
        """Stops the server and removes everything it had."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _prepare(self) -> None:
        """Writes what the server needs before its first start."""

    def _launch(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        if_tests_die: signal.Signals = signal.SIGTERM,
        afterwards: str = ":",
    ) -> None:
        """Starts the process. If the tests die, it gets a signal, and `afterwards` is run."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                cwd=self.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Ctrl-C in the terminal is for the tests; they stop the server themselves.
                start_new_session=True,
            )
        word = if_tests_die.name.removeprefix("SIG")
        self._watchdog = Watchdog(self._process.pid, self.folder, word, afterwards)

    def _wait_until(self, answers: Callable[[], bool]) -> None:
        deadline = time.monotonic() + self.patience_seconds
        while not answers():
            if not self.running or time.monotonic() > deadline:
                log = self._log.read_text(errors="replace").splitlines()[-20:]
                self._kill()
                raise ServerError("\n".join([f"{self.name} did not start:", *log]))
            time.sleep(0.02)

    def _end(self, number: signal.Signals) -> None:
        """Signals the process and waits for its end; kills it if it does not listen."""
        process = self._let_go()
        if process is None:
            return
        process.send_signal(number)
        try:
            process.wait(self.patience_seconds)
        except subprocess.TimeoutExpired:
            _kill_group(process)

    def _kill(self) -> None:
        process = self._let_go()
        if process is not None:
            _kill_group(process)

    def _let_go(self) -> subprocess.Popen[bytes] | None:
        """The watchdog is dismissed first, or it would signal the next process with that id."""
        process, self._process = self._process, None
        watchdog, self._watchdog = self._watchdog, None
        if watchdog is not None:
            watchdog.dismiss()
        return process

    @property
    def _log(self) -> Path:
        return self.folder / "server.log"


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """With its children, which are in its session."""
    with suppress(ProcessLookupError):  # it has ended by itself
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
