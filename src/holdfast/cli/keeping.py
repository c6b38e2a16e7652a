"""Keeps a process alive: starts it again when it dies, stops it when it is told to."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Sequence
from typing import Any

from holdfast.clock import Clock
from holdfast.errors import UserError

_RESTART_SECONDS = (0.3, 5.0)
_YOUNG_SECONDS = 5.0
_STOP_SECONDS = 8.0


class Kept:
    """One process of the program. It is told to end with us: its standard input ends then."""

    def __init__(self, name: str, arguments: Sequence[str], clock: Clock, log: Any) -> None:
        self._name = name
        self._arguments = arguments
        self._clock = clock
        self._log = log
        self._process: asyncio.subprocess.Process | None = None
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        """Until it is stopped. One that fails at once, the first time, would always fail."""
        wait, first = _RESTART_SECONDS[0], True
        while not self._stopping.is_set():
            started = self._clock.monotonic()
            code = await self._run_once()
            if self._stopping.is_set():
                return
            young = self._clock.monotonic() - started < _YOUNG_SECONDS
            if code > 0 and young and first:
                raise UserError(f"{self._name} did not start", "What it said stands above.")
            self._log.warning("process.died", process=self._name, exit_code=code)
            wait = min(_RESTART_SECONDS[1], wait * 2) if young else _RESTART_SECONDS[0]
            first = False
            await asyncio.sleep(wait)

    async def stop(self) -> None:
        self._stopping.set()
        process = self._process
        if process is None or process.returncode is not None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(process.wait(), _STOP_SECONDS)
        except TimeoutError:
            process.kill()
            await process.wait()

    async def _run_once(self) -> int:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",  # a user's numbers.py in this folder must not become Python's own
            "-m",
            *self._arguments,
            stdin=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        return await self._process.wait()
