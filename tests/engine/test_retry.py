"""Whether and when a failed item is tried again."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import ERROR_CODES, Category, ErrorCode, PipelineError, RetryClass
from holdfast.kernel.pace.retry import (
    Verdict,
    decide,
    decide_not_found,
    policy_of,
    source_delay,
)
from holdfast.pipeline import Backoff, Pipeline, pipeline
from tests.engine.bounds import retry_policy

POLICY = retry_policy()
CODES = st.sampled_from(sorted(ERROR_CODES.values(), key=lambda code: code.code))
RETRY_AFTER = st.none() | st.floats(-10, 1e6)
LIMITS = {
    RetryClass.SOON: (POLICY.soon.base, POLICY.soon.cap),
    RetryClass.LATER: (POLICY.later.base, POLICY.later.cap),
    RetryClass.THROTTLE: (POLICY.throttle.base, POLICY.throttle.cap),
}


def failed(
    code: str, attempts: int = 1, retry_after: float | None = None, seed: int = 0
) -> Verdict:
    return decide(
        POLICY,
        ERROR_CODES[code],
        attempts=attempts,
        throttles=0,
        retry_after=retry_after,
        rng=Random(seed),
    )


@pytest.mark.parametrize(
    "code", [code for code in ERROR_CODES.values() if code.retry is RetryClass.NEVER]
)
def test_permanent_errors_are_never_retried(code: ErrorCode) -> None:
    verdict = failed(code.code, retry_after=1.0)
    assert not verdict.retry
    assert verdict.why == f"{code.code} is permanent"


def test_attempts_run_out() -> None:
    verdicts = [failed("TIMEOUT", attempts) for attempts in range(1, 6)]
    assert [verdict.retry for verdict in verdicts] == [True, True, True, True, False]
    assert verdicts[-1].why == "TIMEOUT at attempt 5 of 5"
    assert all(verdict.charged for verdict in verdicts)


def test_throttles_are_retried_forever_and_charge_nothing() -> None:
    verdict = decide(
        POLICY,
        ERROR_CODES["RATE_LIMITED"],
        attempts=1000,
        throttles=1000,
        retry_after=None,
        rng=Random(0),
    )
    assert verdict.retry and not verdict.charged
    assert 0 <= verdict.delay <= POLICY.throttle.cap


def test_items_with_the_same_retry_after_do_not_return_together() -> None:
    delays = {failed("RATE_LIMITED", retry_after=60.0, seed=seed).delay for seed in range(50)}
    assert len(delays) == 50
    assert min(delays) >= 60.0


def test_what_changes_slowly_waits_longer_than_a_hiccup() -> None:
    soon = [failed("NETWORK_ERROR", seed=seed).delay for seed in range(200)]
    later = [failed("CONTENT_UNAVAILABLE", seed=seed).delay for seed in range(200)]
    assert sum(later) > 20 * sum(soon)


def test_wait_that_a_provider_asked_for_does_not_grow_with_earlier_throttles() -> None:
    verdicts = [
        decide(
            POLICY,
            ERROR_CODES["RATE_LIMITED"],
            attempts=1,
            throttles=20,
            retry_after=2.0,
            rng=Random(seed),
        )
        for seed in range(50)
    ]
    assert all(2.0 <= verdict.delay <= 4.0 for verdict in verdicts)


@given(
    CODES,
    st.integers(1, 100_000),
    st.integers(0, 100_000),
    RETRY_AFTER,
    st.integers(),
    st.floats(1, 8),
)
def test_full_jitter_stays_within_its_limits_and_never_below_retry_after(
    code: ErrorCode,
    attempts: int,
    throttles: int,
    retry_after: float | None,
    seed: int,
    spacing: float,
) -> None:
    verdict = decide(
        POLICY,
        code,
        attempts=attempts,
        throttles=throttles,
        retry_after=retry_after,
        rng=Random(seed),
        spacing=spacing,
    )
    if not verdict.retry:
        assert verdict.delay == 0.0
        return
    base, cap = LIMITS[code.retry]
    doublings = throttles if code.retry is RetryClass.THROTTLE else attempts - 1
    ceiling = min(cap, base * 2 ** min(doublings, 50) * spacing)
    told = max(0.0, retry_after or 0.0)
    if told and code.retry is RetryClass.THROTTLE:
        ceiling = min(base, told)
    assert told <= verdict.delay <= told + ceiling


@given(CODES, st.integers(1, 6), RETRY_AFTER, st.integers())
def test_the_same_seed_gives_the_same_verdict(
    code: ErrorCode, attempts: int, retry_after: float | None, seed: int
) -> None:
    first, second = (failed(code.code, attempts, retry_after, seed) for _ in range(2))
    assert first == second


def test_spacing_stretches_delays_up_to_the_cap() -> None:
    plain, stretched, capped = (
        decide(
            POLICY,
            ERROR_CODES["TIMEOUT"],
            attempts=attempts,
            throttles=0,
            retry_after=None,
            rng=Random(7),
            spacing=spacing,
        ).delay
        for attempts, spacing in ((2, 1.0), (2, 4.0), (4, 1000.0))
    )
    assert stretched == pytest.approx(4 * plain)
    assert capped <= POLICY.soon.cap


def test_a_pipelines_own_code_follows_its_own_class() -> None:
    own = ErrorCode("SHOP_CLOSED", Category.CONTENT, RetryClass.LATER)
    verdict = decide(POLICY, own, attempts=1, throttles=0, retry_after=None, rng=Random(1))
    assert verdict.retry and verdict.why == "SHOP_CLOSED at attempt 1 of 5"


def test_not_found_is_looked_for_once_more_by_default() -> None:
    first = decide_not_found(POLICY, misses=1, rng=Random(1))
    second = decide_not_found(POLICY, misses=2, rng=Random(1))
    assert (first.retry, first.why) == (True, "not found on attempt 1 of 2")
    assert (second.retry, second.delay) == (False, 0.0)


@given(st.integers(1, 5000), st.integers(), st.floats(1, 8))
def test_not_found_never_looks_again_at_once(misses: int, seed: int, spacing: float) -> None:
    policy = retry_policy(max_attempts_not_found=10_000, not_found=Backoff(10.0, 500.0, jitter=0.5))
    verdict = decide_not_found(policy, misses=misses, rng=Random(seed), spacing=spacing)
    assert 5.0 <= verdict.delay <= 500.0


def test_streams_that_failed_together_do_not_return_together() -> None:
    for failures, ceiling in ((0, 1.0), (3, 8.0), (20, 60.0)):
        delays = [source_delay(failures, 1.0, None, Random(seed)) for seed in range(50)]
        assert len(set(delays)) == 50
        assert all(ceiling / 2 <= seconds <= ceiling for seconds in delays)


def test_source_is_never_asked_before_its_retry_after() -> None:
    delays = [source_delay(0, 1.0, 30.0, Random(seed)) for seed in range(50)]
    assert min(delays) >= 30.0 and len(set(delays)) == 50


def _made(**attributes: object) -> Pipeline:
    async def process(row: object, ctx: object) -> None:
        return None

    made: Pipeline = pipeline(**attributes)(process)
    return made


def test_pipeline_with_a_backoff_waits_by_it_and_gives_up_at_its_own_limit() -> None:
    made = _made(max_attempts=3, backoff=Backoff(30, 3600, jitter=0.2))
    policy = policy_of(made, POLICY)
    verdicts = [
        decide(policy, ERROR_CODES[code], attempts=n, throttles=0, retry_after=None, rng=Random(n))
        for code in ("NETWORK_ERROR", "CONTENT_UNAVAILABLE")
        for n in (1, 2, 3)
    ]
    delays = [verdict.delay for verdict in verdicts]
    assert 24 <= delays[0] <= 30 and 48 <= delays[1] <= 60 and delays[2] == 0
    assert 24 <= delays[3] <= 30 and 48 <= delays[4] <= 60 and delays[5] == 0
    assert [verdict.retry for verdict in verdicts] == [True, True, False] * 2


def test_backoff_by_kind_leaves_the_other_kinds_as_the_settings_have_them() -> None:
    own = Backoff(3600, 7200, jitter=0)
    policy = policy_of(_made(backoff={"not_found": own}), POLICY)
    assert (policy.not_found, policy.soon, policy.later) == (own, POLICY.soon, POLICY.later)
    assert decide_not_found(policy, misses=1, rng=Random(1)).delay == 3600


def test_backoff_of_a_kind_that_does_not_exist_is_refused() -> None:
    with pytest.raises(PipelineError, match="no backoff 'sooner'"):
        _made(backoff={"sooner": Backoff(1, 2)})


@pytest.mark.parametrize("values", [(-1, 5), (10, 5), (1, 5, 1.5)])
def test_backoff_that_makes_no_sense_is_refused(values: tuple[float, ...]) -> None:
    with pytest.raises(PipelineError, match="is not a backoff"):
        Backoff(*values)
