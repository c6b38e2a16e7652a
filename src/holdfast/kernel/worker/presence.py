"""Shows other processes that this one exists, while it holds something in its name."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from holdfast.errors import DatabaseGone
from holdfast.kernel import Store
from holdfast.kernel.worker.lost_workers import this_machine
from holdfast.tasks import end_tasks

_SECONDS = 2.0


@asynccontextmanager
async def present(store: Store, name: str) -> AsyncIterator[str]:
    """Registers the name: what is in it is freed as soon as the process is seen to be gone, and at
    the end."""
    await _register(store, name)
    heartbeat = asyncio.create_task(_give_signs_of_life(store, name))
    try:
        yield name
    finally:
        await end_tasks([heartbeat])
        with suppress(DatabaseGone):
            await store.workers.stop_worker(name)


async def _register(store: Store, name: str) -> None:
    machine = this_machine()
    await store.workers.add_worker(name, socket.gethostname(), os.getpid(), [], machine=machine)


async def _give_signs_of_life(store: Store, name: str) -> None:
    while True:
        await asyncio.sleep(_SECONDS)
        with suppress(DatabaseGone):
            if not await store.workers.beat(name):
                await _register(store, name)  # the database was restored
