"""What a worker measures about a pipeline."""

from __future__ import annotations

from typing import Any

from prometheus_client import generate_latest

from holdfast.kernel.pace.pipeline_pace import PipelinePace
from holdfast.model import ItemStatus, Outcome
from holdfast.observe.metrics import Metrics
from holdfast.pipeline import pipeline
from tests.engine.bounds import claim_bounds, concurrency_bounds, spacing_bounds


@pipeline(name="demo")
async def demo(row: Any, ctx: Any) -> dict[str, Any]:
    return {}


def again(seq: int, code: str, **fields: Any) -> Outcome:
    return Outcome(seq, ItemStatus.PENDING, 1, 1, 0, error_code=code, **fields)


def test_throttled_try_is_not_counted_as_a_retry() -> None:
    metrics = Metrics()
    pace = PipelinePace(demo, claim_bounds(), concurrency_bounds(), spacing_bounds(), metrics)
    throttled = [again(seq, "RATE_LIMITED", charged=False) for seq in (1, 2)]
    waits = again(3, "GATE", charged=False, logged=False)
    pace.settled([*throttled, waits, again(4, "TIMEOUT")])
    text = generate_latest(metrics.registry).decode()
    assert 'holdfast_throttles_total{pipeline="demo"} 2.0' in text
    retries = [line for line in text.splitlines() if line.startswith("holdfast_retries_total{")]
    assert [line.rsplit(" ", 1)[1] for line in retries] == ["1.0"]


def test_errors_that_need_a_person_are_counted_by_code() -> None:
    metrics = Metrics()
    pace = PipelinePace(demo, claim_bounds(), concurrency_bounds(), spacing_bounds(), metrics)
    failed = [
        Outcome(seq, ItemStatus.ERROR, 1, 1, 0, error_code=code)
        for seq, code in enumerate(["AUTH_FAILED", "AUTH_FAILED", "CONTENT_REMOVED"])
    ]
    pace.settled([*failed, again(9, "AUTH_FAILED")])
    text = generate_latest(metrics.registry).decode()
    counted = [line for line in text.splitlines() if line.startswith("holdfast_alerting_errors_t")]
    assert counted == ['holdfast_alerting_errors_total{code="AUTH_FAILED",pipeline="demo"} 2.0']


def test_records_that_are_not_there_slow_nothing_down() -> None:
    pace = PipelinePace(demo, claim_bounds(), concurrency_bounds(), spacing_bounds(), Metrics())
    fine = PipelinePace(demo, claim_bounds(), concurrency_bounds(), spacing_bounds(), Metrics())
    for _ in range(50):
        pace.settled([again(seq, "NOT_FOUND", charged=True, seconds=0.1) for seq in range(20)])
        fine.settled([Outcome(seq, ItemStatus.DONE, 1, 1, 0, seconds=0.1) for seq in range(20)])
    assert pace.spacing() == fine.spacing() == 1.0
    assert pace.concurrency == fine.concurrency
