"""Starts processes of Holdfast, starts them again when they die, and stops them."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import psutil

from holdfast.clock import Clock
from holdfast.errors import DatabaseGone, UserError
from holdfast.kernel import Store

_RESTART_SECONDS = (0.2, 5.0)
_YOUNG_SECONDS = 5.0
_ERRORS_IN_A_ROW = 3
_HARD_STOP_SECONDS = 1.5


def worker_name() -> str:
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"


class Child(Protocol):
    """One process that is kept running."""

    def arguments(self) -> list[str]:
        """Returns what follows `python -m`, for the next start."""
        ...

    def output(self) -> AbstractContextManager[BinaryIO | None]:
        """Returns where the process writes; None: where this process writes."""
        ...

    async def ended(self, exit_code: int, stopping: bool) -> float | None:
        """Returns the seconds to wait before the next start; None if it has finished its work.

        Raises UserError if a further start would fail too."""
        ...


class Supervisor:
    def __init__(self, children: Sequence[Child], drain_seconds: float) -> None:
        self._children = children
        self._stop_seconds = drain_seconds + _HARD_STOP_SECONDS
        self._processes: dict[int, asyncio.subprocess.Process] = {}
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        """Runs the children; returns when every one has finished or was stopped.

        If one cannot run, the others are stopped."""
        tasks = [asyncio.create_task(self._keep(child)) for child in self._children]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        if not all(task.done() for task in tasks):
            await self.stop()
        await asyncio.gather(*tasks, return_exceptions=True)
        for task in tasks:
            task.result()

    async def stop(self) -> None:
        """Asks the processes to stop, and kills those that do not in time."""
        self._stopping.set()
        for process in self._processes.values():
            _send(process, signal.SIGTERM)
        waiting = [asyncio.create_task(p.wait()) for p in self._processes.values()]
        if waiting:
            await asyncio.wait(waiting, timeout=self._stop_seconds)
        self.kill()

    def kill(self) -> None:
        self._stopping.set()
        for process in self._processes.values():
            _send(process, signal.SIGKILL)

    async def _keep(self, child: Child) -> None:
        while not self._stopping.is_set():
            exit_code = await self._run_once(child)
            wait = await child.ended(exit_code, self._stopping.is_set())
            if wait is None:
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), wait)

    async def _run_once(self, child: Child) -> int:
        with child.output() as output:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",  # a user's numbers.py in this folder must not replace Python's own
                "-m",
                *child.arguments(),
                stdin=asyncio.subprocess.PIPE,  # its end tells the process that we are gone
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self._processes[process.pid] = process
        if self._stopping.is_set():  # set while the process was being started
            _send(process, signal.SIGTERM)
        try:
            return await process.wait()
        finally:
            del self._processes[process.pid]


class Service:
    """A server or another single process that runs until it is stopped."""

    def __init__(self, name: str, arguments: list[str], clock: Clock, log: Any) -> None:
        self._name = name
        self._arguments = arguments
        self._clock = clock
        self._log = log
        self._started = 0.0
        self._wait = _RESTART_SECONDS[0]
        self._first = True

    def arguments(self) -> list[str]:
        self._started = self._clock.monotonic()
        return self._arguments

    def output(self) -> AbstractContextManager[BinaryIO | None]:
        return nullcontext()

    async def ended(self, exit_code: int, stopping: bool) -> float | None:
        if stopping:
            return None
        young = self._clock.monotonic() - self._started < _YOUNG_SECONDS
        if exit_code > 0 and young and self._first:
            raise UserError(f"{self._name} did not start", "See its output above.")
        self._first = False
        self._log.warning("process.died", process=self._name, exit_code=exit_code)
        self._wait = _longer(self._wait) if young else _RESTART_SECONDS[0]
        return self._wait


@dataclass(frozen=True, slots=True)
class WorkerSetup:
    """How worker processes are started.

    With a `log_dir` each writes to a file there, otherwise to the output of this process. They
    serve their health on the ports after `health_port`."""

    arguments: Sequence[str]
    until_idle: bool
    log_dir: Path | None = None
    health_port: int | None = None

    def children(self, store: Store, count: int, log: Any) -> list[WorkerChild]:
        if self.log_dir is not None:
            self.log_dir.mkdir(parents=True, exist_ok=True)
        return [WorkerChild(store, self, number + 1, log) for number in range(count)]


class WorkerChild:
    """A worker process. When it dies, what it held is freed at once."""

    def __init__(self, store: Store, setup: WorkerSetup, number: int, log: Any) -> None:
        self._store = store
        self._setup = setup
        self._number = number
        self._log = log
        self.name = ""
        self._wait = _RESTART_SECONDS[0]
        self._errors = 0
        self.deaths = 0

    def arguments(self) -> list[str]:
        self.name = worker_name()
        arguments = ["holdfast", "work", *self._setup.arguments, "--name", self.name]
        if self._setup.until_idle:
            arguments.append("--until-idle")
        if self._setup.health_port:
            arguments += ["--health-port", str(self._setup.health_port + self._number)]
        return [*arguments, "--supervised"]

    def output(self) -> AbstractContextManager[BinaryIO | None]:
        path = self._log_file()
        return nullcontext() if path is None else path.open("ab")

    async def ended(self, exit_code: int, stopping: bool) -> float | None:
        was_at_work = await self._return_leases()
        if stopping or (exit_code == 0 and not was_at_work and self._setup.until_idle):
            return None
        self.deaths += 1
        self._log.info("worker.died", worker=self.name, exit_code=exit_code)
        # A signal, or a death while processing, is caused by an item; anything else by the program.
        self._errors = self._errors + 1 if exit_code > 0 and not was_at_work else 0
        if self._errors == _ERRORS_IN_A_ROW and self._setup.until_idle:
            raise self._failure()
        if was_at_work:
            # The sooner the next one starts, the sooner the item that kills workers is found.
            self._wait = _RESTART_SECONDS[0]
        wait, self._wait = self._wait, _longer(self._wait)
        return wait

    def _failure(self) -> UserError:
        path = self._log_file()
        if path is None:
            return UserError("the workers keep failing", "See their output above.")
        lines = path.read_text(errors="replace").strip().splitlines()
        return UserError(
            f"the workers keep failing: {lines[-1] if lines else 'they print no message'}",
            f"Their output is in {path}. Nothing is lost; run the same command to continue.",
        )

    def _log_file(self) -> Path | None:
        folder = self._setup.log_dir
        return None if folder is None else folder / f"worker-{self._number}.log"

    async def _return_leases(self) -> bool:
        """Frees what the worker held; returns whether it held anything."""
        try:
            leases = await self._store.workers.stop_worker(self.name)
        except DatabaseGone as error:
            self._log.warning("database.gone", error=str(error))
            return False
        return bool(leases)


def _longer(wait: float) -> float:
    return min(_RESTART_SECONDS[1], wait * 2)


def _send(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    if process.returncode is None:
        process.send_signal(number)


async def reap_dead_workers(store: Store) -> None:
    """Frees what dead processes of this host held, so that after kill -9 or a power cut no one has
    to wait until they count as lost."""
    host = socket.gethostname()
    for worker in await store.workers.not_stopped():
        if worker["host"] == host and not _is_ours(worker["pid"]):
            await store.workers.stop_worker(worker["name"])


def _is_ours(pid: int) -> bool:
    try:
        return any("holdfast" in part for part in psutil.Process(pid).cmdline())
    except psutil.Error:
        return pid == os.getpid()
