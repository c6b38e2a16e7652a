"""Pure: error class and attempts → try again after a delay, or give up."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from holdfast.errors import ErrorCode, RetryClass

_MOST_DOUBLINGS = 30  # every cap is reached long before; keeps 2**n small


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how far apart each retry class is tried. Seconds.

    MAX_ATTEMPTS_ERROR and MAX_ATTEMPTS_NOT_FOUND count tries in all, the first included.

    A record that was not found is looked for once more. Where shops restock and sites publish,
    hours between the two looks find more; but a person at a laptop who runs a file of a few
    hundred rows sits through that wait, and rotating the query, not waiting, is what finds most.
    So the default is half a minute, and a fleet sets NOT_FOUND_BASE_SECONDS to hours.
    """

    max_attempts_error: int = 5
    max_attempts_not_found: int = 2
    soon_base: float = 1.0
    soon_cap: float = 60.0
    later_base: float = 60.0
    later_cap: float = 3600.0
    throttle_base: float = 5.0
    throttle_cap: float = 300.0
    not_found_base: float = 30.0
    not_found_cap: float = 86400.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """`charged`: the try counts against the item's limit. `delay` is 0 when it is given up."""

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
    """What becomes of a try that failed with `code`.

    `attempts` counts the charged tries with this one as if it were charged, `throttles` the
    throttled tries before this one. `spacing` comes from `RetrySpacing.multiplier`.
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
    """What becomes of a try that found nothing; `misses` counts this one.

    Only half of the delay is random: looking again at once would see the same.
    """
    why = f"not found at look {misses} of {policy.max_attempts_not_found}"
    if misses >= policy.max_attempts_not_found:
        return Verdict(False, 0.0, True, why)
    ceiling = _ceiling(policy.not_found_base, policy.not_found_cap, misses - 1, spacing)
    return Verdict(True, ceiling * rng.uniform(0.5, 1.0), True, why)


def _ceiling(base: float, cap: float, doublings: int, spacing: float) -> float:
    growth = 2.0 ** min(max(0, doublings), _MOST_DOUBLINGS)
    return min(cap, base * growth * max(1.0, spacing))


def _full_jitter(ceiling: float, retry_after: float | None, rng: Random) -> float:
    """Anywhere up to the ceiling, after Retry-After: added to it, because items that were all
    told the same second would otherwise come back in that very second."""
    return max(0.0, retry_after or 0.0) + rng.uniform(0.0, ceiling)
