"""Looks at a job's counters all the time: how long does nothing move, and when is all done?"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

from holdfast.errors import DatabaseGone, UserError
from holdfast.kernel import Store, open_store

_LOOK_SECONDS = 0.1


class Watch(threading.Thread):
    def __init__(self, url: str, job_id: int, all_is_up: Callable[[], bool] = lambda: True) -> None:
        """`all_is_up` says whether the servers are there: without, nothing can move."""
        super().__init__(daemon=True)
        self._url = url
        self._job_id = job_id
        self._all_is_up = all_is_up
        self.settled = -1
        self.longest_stall = 0.0
        self.longest_stall_with_all_up = 0.0
        self.finished = threading.Event()

    def run(self) -> None:
        asyncio.run(self._watch())

    async def _watch(self) -> None:
        store: Store | None = None
        since = up_since = time.monotonic()
        while not self.finished.is_set():
            try:
                store = store or await open_store(self._url, pool_size=1)
                moved = await self._look(store)
            except (DatabaseGone, UserError):  # it starts, and does not yet know its databases
                moved = False
            moment = time.monotonic()
            since = moment if moved else since
            up_since = moment if moved or not self._all_is_up() else up_since
            self.longest_stall = max(self.longest_stall, moment - since)
            self.longest_stall_with_all_up = max(self.longest_stall_with_all_up, moment - up_since)
            await asyncio.sleep(_LOOK_SECONDS)
        if store is not None:
            await store.close()

    async def _look(self, store: Store) -> bool:
        """Whether something was settled since the last look."""
        counters = await store.reads.counters(self._job_id)
        moved = counters.finished != self.settled
        self.settled = counters.finished
        if counters.accepted == counters.finished:
            self.finished.set()
        return moved
