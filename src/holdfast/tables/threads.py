"""Threads in which tables are read. They are separate from the process's other threads, so that
slow files do not delay logins. Previews and intakes have separate threads too: a preview waits only
for other previews, an intake only for other intakes.

Their number also limits how many files a worker reads at once, as each may be a workbook that needs
much memory.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

LOOKS_AT_ONCE = 2
INTAKES_AT_ONCE = 2

_LOOKS = ThreadPoolExecutor(LOOKS_AT_ONCE, "look")
_INTAKES = ThreadPoolExecutor(INTAKES_AT_ONCE, "intake")

P = ParamSpec("P")
T = TypeVar("T")


async def look(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Opens a file for a person who is waiting for its contents."""
    return await _run(_LOOKS, function, *args, **kwargs)


async def take_in(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Runs one step of reading in a file's rows."""
    return await _run(_INTAKES, function, *args, **kwargs)


async def _run(threads: Executor, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    context = contextvars.copy_context()
    return await asyncio.get_running_loop().run_in_executor(
        threads, lambda: context.run(function, *args, **kwargs)
    )
