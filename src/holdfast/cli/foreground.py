"""Signals, worker processes and exit codes of the commands that work on jobs in the foreground."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from holdfast.cli.output import errors
from holdfast.cli.signals import STOP_SIGNALS
from holdfast.cli.supervisor import Supervisor, WorkerChild, WorkerSetup
from holdfast.clock import system_random
from holdfast.configuration import Settings
from holdfast.kernel import Store
from holdfast.kernel.worker.patience import patiently

T = TypeVar("T")
FAILED = 1
SOME_ITEMS_FAILED = 3


class Foreground:
    """Stops a command: the first Ctrl-C or SIGTERM asks for a clean stop, the second kills the
    workers."""

    def __init__(self, settings: Settings, log: Any) -> None:
        self._settings = settings
        self._log = log
        self._rng = system_random()
        self._supervisor: Supervisor | None = None
        self._workers: list[WorkerChild] = []
        self.stopped = asyncio.Event()
        self.signal: signal.Signals | None = None

    @property
    def worker_deaths(self) -> int:
        return sum(worker.deaths for worker in self._workers)

    def catch_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, self._stop, number)

    def _stop(self, number: signal.Signals) -> None:
        if self.stopped.is_set() and self._supervisor is not None:
            self._supervisor.kill()
        self.signal = number
        self.stopped.set()

    async def work(self, store: Store, arguments: Sequence[str], count: int) -> None:
        """Runs `holdfast work ARGUMENTS` in this many processes until there is nothing to do."""
        setup = WorkerSetup(arguments, until_idle=True, log_dir=self._settings.data_dir / "logs")
        self._workers = setup.children(store, count, self._log)
        self._supervisor = Supervisor(self._workers, self._settings.drain_seconds)
        if self.stopped.is_set():
            return
        await self._supervisor.run()

    async def show_while(
        self, showing: Coroutine[Any, Any, None], working: Coroutine[Any, Any, None]
    ) -> None:
        """Shows progress until the work has ended, by itself or because it was stopped."""
        show = asyncio.create_task(showing)
        stopped = asyncio.create_task(self.stopped.wait())
        work = asyncio.create_task(working)
        try:
            await asyncio.wait([stopped, work], return_when=asyncio.FIRST_COMPLETED)
            show.cancel()
            if self.stopped.is_set():
                await self.stop_workers()
            await work
        finally:
            for task in (show, stopped):
                task.cancel()
            await asyncio.gather(show, stopped, return_exceptions=True)

    async def stop_workers(self) -> None:
        self.stopped.set()
        if self._supervisor is not None:
            await self._supervisor.stop()

    async def patiently(self, action: Callable[[], Awaitable[T]]) -> T:
        """Waits for a database that is gone, until the user stops the command."""
        return await patiently(
            action, self._log, self._rng, give_up=self.stopped.is_set, pause=self._pause
        )

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self.stopped.wait(), seconds)

    def exit_code(self, failed: bool, some_items_failed: bool) -> int:
        if self.signal is not None:
            errors.print("Stopped. Run the same command to continue.")
            return 128 + self.signal
        if failed:
            return FAILED
        return SOME_ITEMS_FAILED if some_items_failed else 0
