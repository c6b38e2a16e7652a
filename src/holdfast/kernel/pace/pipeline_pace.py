"""A worker's measurements of one pipeline, and its controllers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from holdfast.errors import Category, ErrorCode, error_code
from holdfast.kernel import DecisionRow
from holdfast.kernel.pace.concurrency import ConcurrencyBounds, ConcurrencyPace
from holdfast.kernel.pace.controllers import (
    ClaimBounds,
    ClaimPace,
    Decision,
    RetrySpacing,
    SpacingBounds,
)
from holdfast.model import ItemStatus, Outcome
from holdfast.observe.metrics import ITEM_SECONDS_BOUNDS, Metrics, item_bucket
from holdfast.pipeline import Pipeline

#: A record that the source does not have is an answer like any other, and slows nothing down.
_MISSED = "NOT_FOUND"


def decision_rows(decisions: Iterable[Decision]) -> list[DecisionRow]:
    """Converts decisions to the rows that are recorded with a job."""
    return [
        DecisionRow(decision.what, decision.was, decision.now, decision.why)
        for decision in decisions
    ]


def log_decisions(log: Any, decisions: Iterable[DecisionRow]) -> None:
    for row in decisions:
        log.info("pace.decided", controller=row.what, was=row.was, became=row.became, why=row.why)


def concurrency_of(
    pipeline: Pipeline, bounds: ConcurrencyBounds, threads: int
) -> ConcurrencyBounds:
    """Returns the pipeline's bounds; no more plain `def` items than threads: an item must not time
    out in a queue."""
    maximum = pipeline.max_concurrency or bounds.maximum
    if pipeline.threaded:
        maximum = min(maximum, threads)
    minimum = min(maximum, max(bounds.minimum, pipeline.min_concurrency))
    return replace(bounds, minimum=minimum, maximum=maximum)


class PipelinePace:
    """What one worker measures of one pipeline, and its controllers."""

    def __init__(
        self,
        pipeline: Pipeline,
        claim: ClaimBounds,
        concurrency: ConcurrencyBounds,
        spacing: SpacingBounds,
        metrics: Metrics,
    ) -> None:
        self._pipeline = pipeline
        self._claim = ClaimPace(claim)
        self._concurrency = ConcurrencyPace(concurrency)
        self._spacing = RetrySpacing(spacing)
        self._metrics = metrics
        self._codes: dict[str, ErrorCode] = dict(pipeline.error_codes)
        self.running = 0  # items running now, over all jobs
        self.claim_size = claim.warmup_items

    @property
    def concurrency(self) -> int:
        return self._concurrency.limit

    def spacing(self) -> float:
        return self._spacing.multiplier

    def next_claim(self, pressure: float) -> int:
        self.claim_size = self._claim.size(self.concurrency, pressure, self.spacing())
        return self.claim_size

    def lost_after_seconds(self) -> float:
        return self._claim.lost_after_seconds()

    def claimed(self, items: int) -> None:
        self._metrics.claim_items.labels(self._pipeline.name).observe(items)

    def settled(self, outcomes: Sequence[Outcome]) -> None:
        """Takes the outcomes of one flush."""
        plain = not any(outcome.error_code for outcome in outcomes)
        tried = outcomes if plain else [o for o in outcomes if o.error_code != "GATE"]
        seconds = [outcome.seconds for outcome in tried]
        self._claim.observe(seconds)
        if plain:
            mean = sum(seconds) / len(seconds) if seconds else 0.0
            self._spacing.observe(len(seconds), 0)
            self._concurrency.observe(len(seconds), mean, 0, 0, 0, self.running)
        else:
            retried = [o for o in tried if o.status is ItemStatus.PENDING and o.charged]
            failed = [outcome for outcome in retried if outcome.error_code != _MISSED]
            self._spacing.observe(len(tried), len(failed))
            self._observe_concurrency(outcomes, tried)
            self._count_retries(tried)
            self._count_alerts(tried)
        self._count(tried, seconds)

    def decisions(self) -> list[DecisionRow]:
        controllers = (self._claim, self._concurrency, self._spacing)
        return [row for controller in controllers for row in decision_rows(controller.decisions())]

    def _observe_concurrency(self, outcomes: Sequence[Outcome], tried: Sequence[Outcome]) -> None:
        """Passes a flush to the controller.

        A closed or full gate counts as a throttle: more items at once would only wait more."""
        good = [o.seconds for o in tried if o.error_code in (None, _MISSED)]
        throttles = len(outcomes) - len(tried)
        timeouts = failures = 0
        for outcome in tried:
            if outcome.error_code in (None, _MISSED):
                continue
            if outcome.error_code == "RATE_LIMITED":
                throttles += 1
            elif outcome.error_code == "TIMEOUT":
                timeouts += 1
            elif error_code(outcome.error_code, self._codes).category is Category.NETWORK:
                failures += 1
        mean = sum(good) / len(good) if good else 0.0
        self._concurrency.observe(len(good), mean, throttles, failures, timeouts, self.running)

    def _count(self, tried: Sequence[Outcome], seconds: Sequence[float]) -> None:
        name = self._pipeline.name
        for status, count in Counter(outcome.status for outcome in tried).items():
            if status is not ItemStatus.PENDING:
                self._metrics.items.labels(name, status).inc(count)
        buckets = Counter(map(item_bucket, seconds))
        counts = [buckets[place] for place in range(len(ITEM_SECONDS_BOUNDS) + 1)]
        self._metrics.observe_items(name, counts, sum(seconds), len(seconds))

    def _count_alerts(self, tried: Sequence[Outcome]) -> None:
        for outcome in tried:
            code = outcome.error_code or ""
            if outcome.status is ItemStatus.ERROR and error_code(code, self._codes).alert:
                self._metrics.alerting_errors.labels(self._pipeline.name, code).inc()

    def _count_retries(self, tried: Sequence[Outcome]) -> None:
        name = self._pipeline.name
        for outcome in tried:
            if outcome.status is not ItemStatus.PENDING:
                continue
            if outcome.charged:
                category = error_code(outcome.error_code or "", self._codes).category
                self._metrics.retries.labels(name, category).inc()
            else:
                self._metrics.throttles.labels(name).inc()
