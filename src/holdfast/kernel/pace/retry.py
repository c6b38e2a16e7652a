"""Pure: decides from error class and attempts whether to try again after a delay, or give up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random

from holdfast.errors import ErrorCode, RetryClass
from holdfast.pipeline import Backoff, Pipeline
from holdfast.settings import setting

_SOON = Backoff(1.0, 60.0)
_LATER = Backoff(60.0, 3600.0)
_THROTTLE = Backoff(5.0, 600.0)
_NOT_FOUND = Backoff(5.0, 60.0, 0.5)  # another look at once would find the same
_MOST_DOUBLINGS = 30  # every cap is reached long before; keeps 2**n small


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how far apart each retry class is tried; the delays are multiples of
    `base_seconds`. Attempts include the first."""

    max_attempts_error: int = setting(
        5, "Attempts at an item whose errors can be retried.", 1, 1000, aliased=True
    )
    max_attempts_not_found: int = setting(
        2, "Attempts at an item that is not found.", 1, 1000, aliased=True
    )
    base_seconds: float = setting(
        1.0,
        "First delay before retrying a temporary error; the other delays are multiples of it.",
        0,
        86_400,
        name="RETRY_BASE_SECONDS",
    )
    soon: Backoff = _SOON
    later: Backoff = _LATER
    throttle: Backoff = _THROTTLE
    not_found: Backoff = _NOT_FOUND


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to do after a try.

    `charged`: the try counts against the item's limit. `delay` is 0 if it is not retried."""

    retry: bool
    delay: float
    charged: bool
    why: str


def policy_of(pipeline: Pipeline, policy: RetryPolicy) -> RetryPolicy:
    """Returns the settings' policy with what the pipeline sets itself."""
    base, own = policy.base_seconds, pipeline.backoff
    delays = {
        kind: replace(backoff, base=backoff.base * base, cap=backoff.cap * base)
        for kind, backoff in (
            ("soon", policy.soon),
            ("later", policy.later),
            ("throttle", policy.throttle),
            ("not_found", policy.not_found),
        )
    }
    if isinstance(own, Mapping):
        delays.update(own)
    elif own is not None:
        delays.update(soon=own, later=own)
    return replace(
        policy,
        base_seconds=1.0,
        max_attempts_error=pipeline.max_attempts or policy.max_attempts_error,
        max_attempts_not_found=pipeline.max_attempts_not_found or policy.max_attempts_not_found,
        **delays,
    )


def decide(
    policy: RetryPolicy,
    code: ErrorCode,
    *,
    attempts: int,
    throttles: int,
    retry_after: float | None,
    rng: Random,
    spacing: float = 1.0,
) -> Verdict:
    """Whether a try that failed with `code` is retried.

    `attempts` counts the charged tries, including this one; `throttles` counts the throttled
    tries before this one. `spacing` comes from `RetrySpacing.multiplier`.
    """
    match code.retry:
        case RetryClass.NEVER:
            return Verdict(False, 0.0, True, f"{code.code} is permanent")
        case RetryClass.THROTTLE:
            if retry_after is not None and retry_after > 0:
                # The provider has said how long: earlier throttles do not make it longer.
                spread = min(policy.throttle.base, retry_after)
                delay = retry_after + spread * rng.uniform(1.0 - policy.throttle.jitter, 1.0)
            else:
                delay = _delay(policy.throttle, throttles, spacing, None, rng)
            return Verdict(True, delay, False, f"{code.code} uses up no attempt")
        case RetryClass.SOON:
            backoff = policy.soon
        case RetryClass.LATER:
            backoff = policy.later
    why = f"{code.code} at attempt {attempts} of {policy.max_attempts_error}"
    if attempts >= policy.max_attempts_error:
        return Verdict(False, 0.0, True, why)
    return Verdict(True, _delay(backoff, attempts - 1, spacing, retry_after, rng), True, why)


def decide_not_found(
    policy: RetryPolicy, *, misses: int, rng: Random, spacing: float = 1.0
) -> Verdict:
    """Whether a record that was not found is looked up again; `misses` counts this time."""
    why = f"not found on attempt {misses} of {policy.max_attempts_not_found}"
    if misses >= policy.max_attempts_not_found:
        return Verdict(False, 0.0, True, why)
    delay = _delay(policy.not_found, misses - 1, spacing, None, rng)
    return Verdict(True, delay, True, why)


def source_delay(failures: int, base: float, retry_after: float | None, rng: Random) -> float:
    """Returns how long discovery waits after the source failed `failures` times before.

    Half of the backoff is random, so that streams which failed together do not return together."""
    ceiling = _ceiling(base, 60.0 * base, failures, 1.0)
    return max(0.0, retry_after or 0.0) + ceiling * rng.uniform(0.5, 1.0)


def _ceiling(base: float, cap: float, doublings: int, spacing: float) -> float:
    growth = 2.0 ** min(max(0, doublings), _MOST_DOUBLINGS)
    return min(cap, base * growth * max(1.0, spacing))


def _delay(
    backoff: Backoff, doublings: int, spacing: float, retry_after: float | None, rng: Random
) -> float:
    """Returns the delay.

    The random part is added to Retry-After, because items that were all given the same second would
    otherwise return in exactly that second."""
    ceiling = _ceiling(backoff.base, backoff.cap, doublings, spacing)
    random_share = rng.uniform(1.0 - backoff.jitter, 1.0)
    return max(0.0, retry_after or 0.0) + ceiling * random_share
