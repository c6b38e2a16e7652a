"""The command line as real processes that start at once.

A process of ours spends most of a second on imports. These are forked from a server that has
imported everything and done nothing else; from there on they are processes like any other.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["holdfast.cli.main", "tests.store.all_scenarios"])


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
        return self.call(_holdfast, arguments, env=env)

    def call(
        self, function: Callable[..., None], *arguments: Any, env: Mapping[str, str] | None = None
    ) -> Child:
        self._started += 1
        output = self._folder / f"process-{self._started}.txt"
        output.touch()
        process = _CONTEXT.Process(
            target=_begin, args=(self._folder, output, env, function, arguments)
        )
        process.start()
        self._children.append(Child(process, output))
        return self._children[-1]

    def close(self) -> None:
        while self._children:
            self._children.pop().close()


def _begin(
    folder: Path,
    output: Path,
    env: Mapping[str, str] | None,
    function: Callable[..., None],
    arguments: tuple[Any, ...],
) -> None:
    target = os.open(output, os.O_WRONLY | os.O_APPEND)
    os.dup2(target, 1)
    os.dup2(target, 2)
    os.chdir(folder)
    if env is not None:
        os.environ.clear()
        os.environ.update(env)
    function(*arguments)


def _holdfast(arguments: list[str]) -> None:
    from holdfast.cli.main import main

    sys.argv = ["holdfast", *arguments]
    main()
