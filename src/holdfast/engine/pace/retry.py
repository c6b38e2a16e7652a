"""Pure: error class and attempts → try again after a delay, or give up."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from holdfast.errors import ErrorCode, RetryClass

_MOST_DOUBLINGS = 30  # every cap is reached long before; keeps 2**n small


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how far apart each retry class is tried. Seconds.

    `max_attempts_error` and `max_attempts_not_found` count all tries, including the first.
    """

    max_attempts_error: int
    max_attempts_not_found: int
    soon_base: float
    soon_cap: float
    later_base: float
    later_cap: float
    throttle_base: float
    throttle_cap: float
    not_found_base: float
    not_found_cap: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """`charged`: the try counts against the item's limit. `delay` is 0 if it is not retried."""

    retry: bool
    delay: float
    charged: bool
    why: str


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
            ceiling = _ceiling(policy.throttle_base, policy.throttle_cap, throttles, spacing)
            delay = _full_jitter(ceiling, retry_after, rng)
            return Verdict(True, delay, False, f"{code.code} uses up no attempt")
        case RetryClass.SOON:
            ceiling = _ceiling(policy.soon_base, policy.soon_cap, attempts - 1, spacing)
        case RetryClass.LATER:
            ceiling = _ceiling(policy.later_base, policy.later_cap, attempts - 1, spacing)
    why = f"{code.code} at attempt {attempts} of {policy.max_attempts_error}"
    if attempts >= policy.max_attempts_error:
        return Verdict(False, 0.0, True, why)
    return Verdict(True, _full_jitter(ceiling, retry_after, rng), True, why)


def decide_not_found(
    policy: RetryPolicy, *, misses: int, rng: Random, spacing: float = 1.0
) -> Verdict:
    """Whether a record that was not found is looked up again; `misses` counts this time.

    Only half of the delay is random: looking again at once would find the same.
    """
    why = f"not found at look {misses} of {policy.max_attempts_not_found}"
    if misses >= policy.max_attempts_not_found:
        return Verdict(False, 0.0, True, why)
    ceiling = _ceiling(policy.not_found_base, policy.not_found_cap, misses - 1, spacing)
    return Verdict(True, ceiling * rng.uniform(0.5, 1.0), True, why)


def source_delay(failures: int, cap: float, retry_after: float | None, rng: Random) -> float:
    """How long discovery waits after the source failed `failures` times before. Half of the
    backoff is random, so that streams which failed together do not return together."""
    ceiling = _ceiling(1.0, cap, failures, 1.0)
    return max(0.0, retry_after or 0.0) + ceiling * rng.uniform(0.5, 1.0)


def _ceiling(base: float, cap: float, doublings: int, spacing: float) -> float:
    growth = 2.0 ** min(max(0, doublings), _MOST_DOUBLINGS)
    return min(cap, base * growth * max(1.0, spacing))


def _full_jitter(ceiling: float, retry_after: float | None, rng: Random) -> float:
    """Anywhere up to the ceiling, after Retry-After: added to it, because items that were all
    given the same second would otherwise come back in exactly that second."""
    return max(0.0, retry_after or 0.0) + rng.uniform(0.0, ceiling)
