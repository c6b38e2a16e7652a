"""How a process is stopped: by a signal, or by the end of its supervisor."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine
from typing import Any

from holdfast.cli.output import errors

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def stop_with_supervisor(loop: asyncio.AbstractEventLoop, stop: Callable[[], None]) -> None:
    """Calls `stop` when the supervisor, which holds the other end of standard input, is gone."""

    def ended() -> None:
        if not os.read(0, 1024):
            loop.remove_reader(0)
            stop()

    loop.add_reader(0, ended)


async def run_until_signalled(
    running: Coroutine[Any, Any, None],
    drain: Callable[[], None],
    stop: Callable[[], Coroutine[Any, Any, None]],
    message: str | None,
) -> None:
    """Runs until SIGTERM or Ctrl-C, then waits until `stop` has ended it. The message is printed
    only when a signal would be handled."""
    stops: set[asyncio.Task[None]] = set()

    def signalled() -> None:
        drain()
        stops.add(asyncio.ensure_future(stop()))

    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, signalled)
    if message:
        errors.print(f"{message} Press Ctrl-C to stop.", markup=False)
    await running
    await asyncio.gather(*stops)
    if message:
        errors.print("Stopped.")
