"""The command line as real processes that start at once.

A process of ours spends most of a second on imports. These are forked from a server that has
imported everything and done nothing else; from there on they are processes like any other.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from holdfast.cli.command_list import COMMANDS

_CONTEXT = multiprocessing.get_context("forkserver")
_COMMANDS = sorted({command.module for command in COMMANDS.values()})
_CONTEXT.set_forkserver_preload(
    ["holdfast.cli.main", *_COMMANDS, "tests.chaos.children", "tests.chaos.doomed"]
)


def can_stop_in_order(pid: int) -> bool:
    """Whether a process handles SIGTERM already. It ends one that is still starting at once."""
    status = Path(f"/proc/{pid}/status").read_text()
    [caught] = [line.split()[1] for line in status.splitlines() if line.startswith("SigCgt")]
    return bool(int(caught, 16) & 1 << signal.SIGTERM - 1)


class Child:
    """A started process, with what subprocess.Popen has and the tests need."""

    def __init__(self, process: ForkServerProcess, output: Path) -> None:
        self._process = process
        self._output = output

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """As subprocess has it: a process that a signal ended has its number, negative."""
        return self._process.exitcode

    def send_signal(self, number: signal.Signals) -> None:
        if self._process.is_alive():
            os.kill(self.pid, number)

    def can_stop_in_order(self) -> bool:
        """Whether SIGTERM would be handled; one that has ended has nothing left to handle."""
        return not self._process.is_alive() or can_stop_in_order(self.pid)

    def wait(self, timeout: float) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(self._process.name, timeout, self.said())
        return self._process.exitcode

    def said(self) -> str:
        return self._output.read_text(errors="replace")

    def close(self) -> None:
        self.send_signal(signal.SIGKILL)
        self._process.join()
        self._process.close()


class Children:
    """Starts processes and ends those that a test left behind."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started = 0
        self._children: list[Child] = []

    def holdfast(self, arguments: list[str], env: Mapping[str, str]) -> Child:
        """`holdfast` with these arguments, in exactly this environment."""
        return self.call(holdfast, arguments, env=env)

    def call(
        self, function: Callable[..., None], *arguments: Any, env: Mapping[str, str] | None = None
    ) -> Child:
        self._started += 1
        said = self._folder / f"process-{self._started}.txt"
        child = forked(self._folder, Path(os.devnull), said, said, env, function, arguments)
        self._children.append(child)
        return child

    def tell(self) -> None:
        """Prints what the latest said at last, for pytest to show where a test failed."""
        for child in self._children[-6:]:
            print(f"--- process {child.pid}, exit code {child.returncode}", child.said()[-4000:])

    def close(self) -> None:
        while self._children:
            self._children.pop().close()


def forked(
    folder: Path,
    reads: Path,
    out: Path,
    err: Path,
    env: Mapping[str, str] | None,
    function: Callable[..., None],
    arguments: tuple[Any, ...],
) -> Child:
    """A process that calls the function there, in exactly this environment."""
    out.touch()
    err.touch()
    process = _CONTEXT.Process(
        target=_begin, args=(folder, (reads, out, err), env, function, arguments)
    )
    process.start()
    return Child(process, err)


def holdfast(arguments: list[str]) -> None:
    from holdfast.cli.main import main

    sys.argv = ["holdfast", *arguments]
    try:
        main()
    finally:
        # As at the end of a process that was not forked, where spans are sent.
        atexit._run_exitfuncs()


def _begin(
    folder: Path,
    ends: tuple[Path, Path, Path],
    env: Mapping[str, str] | None,
    function: Callable[..., None],
    arguments: tuple[Any, ...],
) -> None:
    # Tests in the background of a shell are started with Ctrl-C ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    reads, *writes = ends
    os.dup2(os.open(reads, os.O_RDONLY), 0)
    sys.stdin = os.fdopen(0, closefd=False)  # multiprocessing has put another in its place
    for number, path in enumerate(writes, 1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_APPEND), number)
    os.chdir(folder)
    if env is not None:
        os.environ.clear()
        os.environ.update(env)
    function(*arguments)
