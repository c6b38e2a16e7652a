"""Parts of a worker that are made from its options alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from holdfast.engine.control import Control
from holdfast.engine.deletion import Deleter
from holdfast.engine.flag_values import FlagValues
from holdfast.engine.gates import GateLimits, Gates
from holdfast.engine.retention import Retention
from holdfast.engine.shared_robots import SharedRobots
from holdfast.engine.upkeep.parts import UpkeepParts
from holdfast.engine.upkeep.tend import Tending
from holdfast.http import HttpClient
from holdfast.pipeline import Pipeline

if TYPE_CHECKING:
    from holdfast.engine.worker import WorkerOptions, WorkerParts


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
    files = options.files.store
    deleter = Deleter(parts.store, files.delete, parts.log, files.list)
    retention = Retention(parts.store, deleter, options.policies, parts.log)
    return UpkeepParts(
        parts.store,
        control,
        pipelines,
        options.upkeep,
        parts.name,
        parts.metrics,
        parts.log,
        deleter,
        retention,
        Tending(parts.store, pipelines),
    )
