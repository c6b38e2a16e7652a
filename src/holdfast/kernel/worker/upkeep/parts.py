"""What the chores of upkeep share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.kernel import Store
from holdfast.kernel.jobs.control import Control
from holdfast.kernel.worker.chores import Chore
from holdfast.kernel.worker.upkeep.tend import Tending
from holdfast.observe.metrics import Metrics
from holdfast.pipeline import Pipeline

#: Workers give a sign of life, and look for those that do not, this many times within the time
#: after which one counts as lost, and at least this often.
_HEARTBEATS = 5
_HEARTBEAT_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class UpkeepLimits:
    sweep_seconds: float
    lost_after_seconds: float  # the shortest time after which a silent worker counts as lost

    @property
    def heartbeat_seconds(self) -> float:
        return min(_HEARTBEAT_SECONDS, self.lost_after_seconds / _HEARTBEATS)


@dataclass(frozen=True, slots=True)
class UpkeepParts:
    """`holder` names the process: only one at a time has the duty to sweep."""

    store: Store
    control: Control
    pipelines: Mapping[str, Pipeline]
    limits: UpkeepLimits
    holder: str
    metrics: Metrics
    log: Any
    tending: Tending
    more: Sequence[Callable[[UpkeepParts], list[Chore]]] = ()  # the chores of features
