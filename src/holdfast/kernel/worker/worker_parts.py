"""The parts that a worker is built from: its options, and what is made from them alone."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.clock import Clock
from holdfast.files import FileAccess
from holdfast.flags import ServedFlag
from holdfast.http import HttpClient, HttpOptions
from holdfast.kernel import Store
from holdfast.kernel.gates.gates import GateLimits, Gates
from holdfast.kernel.gates.shared_robots import SharedRobots
from holdfast.kernel.jobs.admission import JobRules
from holdfast.kernel.jobs.control import Control
from holdfast.kernel.pace.concurrency import ConcurrencyBounds
from holdfast.kernel.pace.controllers import ClaimBounds
from holdfast.kernel.pace.retry import RetryPolicy
from holdfast.kernel.record.discover import DiscoverLimits
from holdfast.kernel.record.execute import ItemOptions
from holdfast.kernel.record.settle import FlushLimits
from holdfast.kernel.worker.chores import Chore
from holdfast.kernel.worker.flag_values import FlagValues
from holdfast.kernel.worker.upkeep.parts import UpkeepLimits, UpkeepParts
from holdfast.kernel.worker.upkeep.tend import Tending
from holdfast.model import Lane
from holdfast.observe.metrics import Metrics
from holdfast.pipeline import Pipeline


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    items: ItemOptions
    flush: FlushLimits
    files: FileAccess
    tables: Mapping[str, Any]  # limits of reading a file, by the names of TableOptions
    discover: DiscoverLimits
    claim: ClaimBounds
    concurrency: ConcurrencyBounds
    retry: RetryPolicy
    http: HttpOptions
    rules: JobRules
    upkeep: UpkeepLimits
    drain_seconds: float
    flags: Callable[[Iterable[str]], Mapping[str, ServedFlag]]  # the flags of these extensions
    only_job: int | None = None
    until_idle: bool = False
    stores_robots: bool = True  # whether to store them for the other workers
    gate_max_wait_seconds: float = 2.0  # an item that would wait longer is put back
    chores: Sequence[Callable[[UpkeepParts], list[Chore]]] = ()  # those of features

    def may_run(self, job_id: int, lane: str) -> bool:
        if self.only_job not in (None, job_id):
            return False
        return self.rules.backfill_enabled or lane != Lane.BACKFILL


@dataclass(frozen=True, slots=True)
class WorkerParts:
    """What a worker is built from.

    `name` is the worker's own; `owner` owns the jobs that its schedules start."""

    store: Store
    name: str
    owner: str
    clock: Clock
    rng: random.Random
    metrics: Metrics
    log: Any
    network: Any = None  # None: the system resolves hosts


def make_gates(parts: WorkerParts, options: WorkerOptions) -> Gates:
    return Gates(
        parts.store,
        parts.name,
        GateLimits(options.gate_max_wait_seconds, options.concurrency),
        parts.clock,
        parts.metrics,
        parts.log,
    )


def make_http(parts: WorkerParts, gates: Gates, options: WorkerOptions) -> HttpClient:
    return HttpClient(
        gates,
        options.http,
        parts.clock,
        parts.rng,
        network=parts.network,
        robots_files=SharedRobots(parts.store, stores=options.stores_robots),
    )


def make_flags(
    parts: WorkerParts, pipelines: Mapping[str, Pipeline], options: WorkerOptions
) -> FlagValues:
    extensions = [made.extension for made in pipelines.values() if made.extension is not None]
    return FlagValues(parts.store, options.flags(extensions), parts.clock)


def make_upkeep(
    parts: WorkerParts,
    control: Control,
    pipelines: Mapping[str, Pipeline],
    options: WorkerOptions,
) -> UpkeepParts:
    return UpkeepParts(
        parts.store,
        control,
        pipelines,
        options.upkeep,
        parts.name,
        parts.metrics,
        parts.log,
        Tending(parts.store, pipelines),
        options.chores,
    )
