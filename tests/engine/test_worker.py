"""A worker that is asked to stop, at moments that a signal rarely hits."""

from __future__ import annotations

import asyncio
from typing import Any

import structlog

from holdfast.cli.composition import worker_options
from holdfast.clock import SystemClock, system_random
from holdfast.configuration import load_settings
from holdfast.engine.turns import Places, PollingTurns, Turn
from holdfast.engine.worker import Worker, WorkerParts
from holdfast.observe.metrics import Metrics
from holdfast.pipeline import Pipeline, pipeline
from holdfast.store import Store
from tests.store.checks import filled_job

PATIENCE_SECONDS = 180.0


class StopAtTurn(PollingTurns):
    """The order to stop comes when a turn was taken and its slice has not begun."""

    worker: Worker

    async def next(self, seconds: float, places: Places) -> Turn | None:
        turn = await super().next(seconds, places)
        if turn is not None:
            asyncio.get_running_loop().call_soon(self.worker.stop)
        return turn


def _worker(store: Store, pipelines: dict[str, Pipeline], turns: StopAtTurn) -> Worker:
    log: Any = structlog.get_logger()
    options = worker_options(load_settings({}), None, False)
    parts = WorkerParts(store, "w1", "tester", SystemClock(), system_random(), Metrics(), log)
    worker = Worker(parts, pipelines, options, turns)
    turns.worker = worker
    return worker


async def test_worker_stopped_between_turn_and_slice_begins_nothing(store: Store) -> None:
    begun = []

    @pipeline(name="demo")
    async def demo(row: Any, ctx: Any) -> dict[str, Any]:
        begun.append(row)
        await asyncio.sleep(0.5)
        return {}

    await filled_job(store, 2000)
    pipelines: dict[str, Pipeline] = {"demo": demo}
    turns = StopAtTurn(store, pipelines, lambda job_id, lane: True, SystemClock())
    async with asyncio.timeout(PATIENCE_SECONDS):
        await _worker(store, pipelines, turns).run()
    assert begun == []
