"""Runs worker processes: starts them, starts them again when they die, stops them."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO

import psutil

from holdfast.cli.working import worker_name
from holdfast.errors import DatabaseGone, UserError
from holdfast.store import Store

_RESTART_SECONDS = (0.2, 5.0)
_ERRORS_IN_A_ROW = 3
_HARD_STOP_SECONDS = 1.5


class Supervisor:
    def __init__(
        self,
        store: Store,
        arguments: list[str],
        count: int,
        drain_seconds: float,
        log_dir: Path | None,
        log: Any,
        health_port: int | None = None,
    ) -> None:
        """Without a `log_dir` the workers write where this process writes, and are started
        again whatever they end with. They answer on the ports after `health_port`."""
        self._stop_seconds = drain_seconds + _HARD_STOP_SECONDS
        self._health_port = health_port
        self._store = store
        self._arguments = arguments
        self._count = count
        self._log_dir = log_dir
        self._log = log
        self._processes: dict[str, asyncio.subprocess.Process] = {}
        self._stopping = asyncio.Event()
        self.deaths = 0

    async def run(self) -> None:
        """Returns when every worker ended by itself or was stopped."""
        if self._log_dir is not None:
            self._log_dir.mkdir(parents=True, exist_ok=True)
        await asyncio.gather(*(self._keep_one(number) for number in range(self._count)))

    async def stop(self) -> None:
        """Asks the workers to hand over; those that do not are killed, and what they held is
        free at once."""
        self._stopping.set()
        for process in self._processes.values():
            _signal(process, signal.SIGTERM)
        waiting = [asyncio.create_task(p.wait()) for p in self._processes.values()]
        if waiting:
            await asyncio.wait(waiting, timeout=self._stop_seconds)
        self.kill()

    def kill(self) -> None:
        self._stopping.set()
        for process in self._processes.values():
            _signal(process, signal.SIGKILL)

    async def _keep_one(self, number: int) -> None:
        wait, errors = _RESTART_SECONDS[0], 0
        while not self._stopping.is_set():
            name = worker_name()
            code = await self._run_one(name, number)
            was_at_work = await self._return_leases(name)
            if self._stopping.is_set():
                return
            if code == 0 and not was_at_work and self._log_dir is not None:
                return
            self.deaths += 1
            self._log.info("worker.died", worker=name, exit_code=code)
            if was_at_work:
                # The sooner the next starts, the sooner the item that kills is found.
                wait = _RESTART_SECONDS[0]
            # A signal, or a death at work, is an item's doing; else the error is the program's.
            errors = errors + 1 if code > 0 and not was_at_work else 0
            if errors == _ERRORS_IN_A_ROW and self._log_dir is not None:
                raise self._gave_up(self._log_file(self._log_dir, number))
            await asyncio.sleep(wait)
            wait = min(_RESTART_SECONDS[1], wait * 2)

    def _gave_up(self, path: Path) -> UserError:
        self.kill()
        lines = path.read_text(errors="replace").strip().splitlines()
        return UserError(
            f"the workers end with an error: {lines[-1] if lines else 'without a message'}",
            f"Their output is in {path}. Nothing is lost; the same command continues.",
        )

    async def _run_one(self, name: str, number: int) -> int:
        with self._output(number) as output:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",  # a user's numbers.py in this folder must not become Python's own
                "-m",
                "holdfast",
                "work",
                *self._arguments,
                "--name",
                name,
                "--supervised",
                *self._health_arguments(number),
                stdin=asyncio.subprocess.PIPE,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self._processes[name] = process
        if self._stopping.is_set():  # said while the process was being started
            _signal(process, signal.SIGTERM)
        try:
            return await process.wait()
        finally:
            del self._processes[name]

    def _output(self, number: int) -> AbstractContextManager[BinaryIO | None]:
        if self._log_dir is None:
            return nullcontext()
        return self._log_file(self._log_dir, number).open("ab")

    def _log_file(self, log_dir: Path, number: int) -> Path:
        return log_dir / f"worker-{number + 1}.log"

    def _health_arguments(self, number: int) -> list[str]:
        if not self._health_port:
            return []
        return ["--health-port", str(self._health_port + number + 1)]

    async def _return_leases(self, name: str) -> bool:
        """Whether the worker held any."""
        try:
            held = await self._store.leases.return_leases(name)
            await self._store.workers.stop_worker(name)
        except DatabaseGone as error:
            self._log.warning("database.gone", error=str(error))
            return False
        return bool(held)


def _signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    if process.returncode is None:
        process.send_signal(number)


async def reap_dead_workers(store: Store, lost_seconds: float) -> None:
    """Frees what processes of this host held that are no more: after kill -9 or a power cut,
    nobody has to wait for their leases to run out."""
    host = socket.gethostname()
    for worker in await store.workers.live(lost_seconds):
        if worker["host"] == host and not _is_ours(worker["pid"]):
            await store.leases.return_leases(worker["name"])
            await store.workers.stop_worker(worker["name"])


def _is_ours(pid: int) -> bool:
    try:
        return any("holdfast" in part for part in psutil.Process(pid).cmdline())
    except psutil.Error:
        return pid == os.getpid()
