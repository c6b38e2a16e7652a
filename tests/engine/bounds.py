"""Bounds for tests of the controllers. The settings have the real defaults."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from holdfast.kernel.pace.concurrency import ConcurrencyBounds
from holdfast.kernel.pace.controllers import ClaimBounds, IngestBounds, SpacingBounds
from holdfast.kernel.pace.retry import RetryPolicy
from holdfast.pipeline import Backoff

_INGEST = IngestBounds(
    min_rows=64,
    max_rows=10_000,
    max_bytes=8_000_000,
    p50_seconds=0.1,
    p95_seconds=0.25,
)
_CLAIM = ClaimBounds(
    min_items=1,
    max_items=5_000,
    warmup_items=64,
    target_slice_seconds=5.0,
    safety=0.7,
    pressure_threshold=0.8,
    lock_floor_seconds=30.0,
    lock_cap_seconds=900.0,
)
_CONCURRENCY = ConcurrencyBounds(minimum=1, maximum=256, start=16)
_SPACING = SpacingBounds(spike_share=0.2, max_multiplier=8.0)
_RETRY = RetryPolicy(
    max_attempts_error=5,
    max_attempts_not_found=2,
    soon=Backoff(1.0, 60.0),
    later=Backoff(60.0, 3600.0),
    throttle=Backoff(5.0, 300.0),
    not_found=Backoff(30.0, 86400.0, jitter=0.5),
)


def ingest_bounds(**changes: Any) -> IngestBounds:
    return replace(_INGEST, **changes)


def claim_bounds(**changes: Any) -> ClaimBounds:
    return replace(_CLAIM, **changes)


def concurrency_bounds(**changes: Any) -> ConcurrencyBounds:
    return replace(_CONCURRENCY, **changes)


def spacing_bounds(**changes: Any) -> SpacingBounds:
    return replace(_SPACING, **changes)


def retry_policy(**changes: Any) -> RetryPolicy:
    return replace(_RETRY, **changes)
