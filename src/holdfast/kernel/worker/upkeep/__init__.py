"""Upkeep: the chores that workers and `holdfast timers` share. A new one of the kernel is a file
here and a line in the list of `chores`; a feature brings its own.

Everything is read from the database each time, so any number of processes may do them.
"""

from __future__ import annotations

from functools import partial

from holdfast.kernel.worker.chores import Chore
from holdfast.kernel.worker.lost_workers import LostWorkers
from holdfast.kernel.worker.upkeep.conclude import conclude
from holdfast.kernel.worker.upkeep.parts import UpkeepParts
from holdfast.kernel.worker.upkeep.queue import read_queue
from holdfast.kernel.worker.upkeep.sweep import sweep

_REST = 9.0


def chores(parts: UpkeepParts) -> list[Chore]:
    seconds = parts.limits.sweep_seconds
    lost = LostWorkers(parts.store, parts.holder, parts.log)
    return [
        Chore("sweep", seconds, partial(sweep, parts)),
        Chore("queue", seconds, partial(read_queue, parts), rest=_REST),
        Chore("conclude", seconds, partial(conclude, parts)),
        Chore("tend", seconds, parts.tending.tend, can_wait=True),
        Chore("lost workers", parts.limits.heartbeat_seconds, lost.free),
        *(chore for make in parts.more for chore in make(parts)),
    ]
