"""Finds workers that died without notice, so that what they held is freed."""

from __future__ import annotations

import socket
from functools import cache
from pathlib import Path
from typing import Any

import psutil

from holdfast.kernel import Store


class LostWorkers:
    """Looks for lost workers; `observer` is the process that looks."""

    def __init__(self, store: Store, observer: str, log: Any) -> None:
        self._store = store
        self._observer = observer
        self._log = log
        self._suspects: set[str] = set()

    async def free(self) -> None:
        """Looks once and frees all that lost workers held."""
        silent = set(await self._store.workers.silent(self._observer))
        # Silent at two looks: after a whole machine has slept, every worker seems lost at the
        # first.
        certain, self._suspects = silent & self._suspects, silent
        for name in sorted(certain):
            await self._free(name)
        for name in await self._dead_here():
            await self._free(name, gone=True)

    async def _free(self, name: str, gone: bool = False) -> None:
        job_ids = await self._store.workers.lose(name, gone)
        if job_ids is None:
            return
        self._log.warning("worker.lost", worker=name, jobs=job_ids)
        for job_id in job_ids:  # its last item may have been set aside
            await self._store.outcomes.complete(job_id)

    async def _dead_here(self) -> list[str]:
        """Returns workers of this machine whose process is gone, before their heartbeat is
        missed."""
        here = this_machine()
        return [
            worker["name"]
            for worker in await self._store.workers.live()
            if worker["machine"] == here and not _is_running(worker["pid"])
        ]


@cache
def this_machine() -> str:
    """Returns a name for the place where a process id means the same process.

    Host names repeat in containers, whose processes do not see each other."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return socket.gethostname()


def _is_running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        return True
