"""Pure: computes how many items to run at once from latency, throttles and failures of one
provider."""

from __future__ import annotations

import math
from dataclasses import dataclass

from holdfast.kernel.pace.controllers import Decision, Decisions, duration
from holdfast.settings import setting


@dataclass(frozen=True, slots=True)
class ConcurrencyBounds:
    """How many items run at once; a pipeline may narrow the first two.

    `tolerance`: how many times the uncontended latency is accepted before the limit is reduced.
    `error_tolerance`: the share of 5xx and timeouts that is treated as background noise."""

    minimum: int = 1
    maximum: int = setting(
        64,
        "Maximum number of items that a worker processes at once.",
        1,
        10_000,
        name="CONCURRENCY_MAX",
    )
    start: int = 8
    tolerance: float = 1.5
    smoothing: float = 0.2
    error_tolerance: float = 0.02


@dataclass(slots=True)
class _Round:
    """What ended since the limit was last judged, all of it started under the current limit."""

    successes: int = 0
    seconds: float = 0.0
    throttles: int = 0
    failures: int = 0
    peak_in_flight: int = 0

    @property
    def ended(self) -> int:
        return self.successes + self.throttles + self.failures


_LEAST_ROUND = 8
_NOISE_SECONDS = 1e-3  # below it we would measure the event loop's jitter, not a provider
_LEAST_ITEM_SECONDS = 1e-5  # the engine's own minimum cost of an item
_PROBE_ROUND = 64  # the reference has to be more exact than one round's latency
_PROBE = 0.4
_PATIENCE = 50  # how many congested rounds before the uncontended latency is measured again


class ConcurrencyPace:
    """The limit of items in flight, by the gradient of latency.

    It is judged once a round: after as many successes as the limit allows at once. The limit
    doubles until latency first exceeds the tolerance, then moves in steps. Reaching twice the limit
    that tripped shows that the trip was temporary, and doubling is allowed again.

    Only successes are timed, so items that fail fast never look like a fast provider. Throttles,
    5xx and timeouts cut the limit at once, but only once for everything that was in flight under
    the old one.

    The reference is the uncontended latency. It may fall, but it never follows a rise: a limit that
    grows slowly would drag it along forever. Instead, after enough congested rounds, the limit is
    lowered to 0.4 for one round and the reference is measured again. Latency holds the limit below
    twice the provider's capacity, so 0.4 of it is not contended, and this does not drift either; a
    provider that became slower for all clients gets its limit back."""

    def __init__(self, bounds: ConcurrencyBounds) -> None:
        self._bounds = bounds
        self._limit = float(max(bounds.minimum, min(bounds.maximum, bounds.start)))
        self._tripped_at: float | None = None
        self._uncontended = math.inf
        self._congested_rounds = 0
        self._limit_before_probe: float | None = None
        # The first to end are the fastest of the first batch, over cold connections: they are not
        # counted.
        self._unjudged = self.limit
        self._lowered = False
        self._round = _Round()
        self._decisions = Decisions("concurrency", self.limit)

    @property
    def limit(self) -> int:
        return int(self._limit)

    def observe(
        self,
        successes: int,
        mean_seconds: float,
        throttles: int,
        failures: int,
        timeouts: int,
        in_flight: int,
    ) -> None:
        """Takes what ended since the last call: the successes and their mean time, 429s, 5xx
        with network errors, timeouts; and the maximum that was in flight at once.

        An item's own permanent errors (a bad record) say nothing about load: leave them out.
        Call it several times a second during work; the controller waits for full rounds.
        """
        errors = throttles + failures + timeouts
        if self._started_under_another_limit(successes, errors):
            return
        current = self._round
        current.successes += successes
        current.seconds += successes * mean_seconds
        current.throttles += throttles
        current.failures += failures + timeouts
        current.peak_in_flight = max(current.peak_in_flight, in_flight)
        after_errors, error_reason = self._after_errors(throttles, failures + timeouts)
        after_round, round_reason = self._after_round()
        if after_errors < self._limit:
            self._tripped_at = self._limit
            self._limit_before_probe = None
            self._round = _Round()
            self._set(min(after_errors, after_round), error_reason)
        else:
            self._set(after_round, round_reason)

    def decisions(self) -> list[Decision]:
        return self._decisions.drain()

    def _started_under_another_limit(self, successes: int, errors: int) -> bool:
        """Whether to leave these out because they were in flight when the limit changed.

        If a flush is so large that most of it is newer, its latency counts after a rise, but never
        after a cut or a probe."""
        unjudged = self._unjudged
        self._unjudged = max(0, unjudged - successes - errors)
        return unjudged > 0 and (self._lowered or successes < 2 * unjudged)

    def _after_errors(self, throttles: int, failures: int) -> tuple[float, str]:
        """Returns the limit after errors and why.

        Every throttle counts; failures count only above the noise, and never a single one."""
        current = self._round
        if throttles:
            count, reason = current.throttles, "were throttled"
        elif failures and not self._only_noise():
            count, reason = current.failures, "failed or timed out"
        else:
            return self._limit, ""
        share = count / max(current.ended, self._limit, _LEAST_ROUND)
        factor = min(0.9, max(0.5, 1.0 - 2.0 * share))
        used = min(self._limit, max(1, current.peak_in_flight))
        return used * factor, f"{count} of {current.ended} {reason}"

    def _only_noise(self) -> bool:
        tolerated = self._bounds.error_tolerance * self._round.ended
        return self._round.failures <= max(1.0, tolerated)

    def _after_round(self) -> tuple[float, str]:
        """Returns the limit that latency suggests, once the round is full."""
        current = self._round
        least = _LEAST_ROUND if self._limit_before_probe is None else _PROBE_ROUND
        if current.successes < max(self.limit, least):
            return self._limit, ""
        busy = current.peak_in_flight * 2 >= self.limit
        may_grow = busy and current.throttles == 0 and self._only_noise()
        self._round = _Round()
        after, reason = self._by_latency(current.seconds / current.successes)
        return after if may_grow else min(after, self._limit), reason

    def _by_latency(self, mean_seconds: float) -> tuple[float, str]:
        latency = max(mean_seconds, _NOISE_SECONDS)
        if self._limit_before_probe is not None:
            return self._end_probe(self._limit_before_probe, latency)
        if latency < self._uncontended:
            steady = self._tripped_at is not None and self._uncontended < math.inf
            self._uncontended = 0.8 * self._uncontended + 0.2 * latency if steady else latency
        gradient = self._bounds.tolerance * self._uncontended / latency
        if gradient >= 1.0:
            return self._grown(mean_seconds), f"latency is steady at {duration(latency)}"
        return self._congested(max(0.5, gradient)), (
            f"latency of {duration(latency)} is over {self._bounds.tolerance:g} times "
            f"the uncontended {duration(self._uncontended)}"
        )

    def _grown(self, mean_seconds: float) -> float:
        """Returns a higher limit, up to where the engine itself could not start items fast enough:
        a no-op item stays at the start, whatever its microseconds suggest."""
        useful = max(self._limit, math.ceil(mean_seconds / _LEAST_ITEM_SECONDS))
        if self._tripped_at is None:
            return min(useful, self._limit * 2)
        if self._limit >= 2 * self._tripped_at:
            self._tripped_at = None
        return min(useful, self._limit + self._bounds.smoothing * self._queue())

    def _queue(self) -> float:
        """Returns how many items may queue at the provider without counting as congestion.

        It is small enough that the limit settles below twice the capacity, which the probe relies
        on."""
        return math.sqrt(self._limit) / 2

    def _congested(self, gradient: float) -> float:
        if self._tripped_at is None:
            self._tripped_at = self._limit
            return self._limit * gradient
        self._congested_rounds += 1
        latency_did_not_follow = self._limit <= self._tripped_at / 2
        if latency_did_not_follow or self._congested_rounds >= _PATIENCE:
            self._limit_before_probe = self._limit
            return self._limit * _PROBE
        smoothing = self._bounds.smoothing
        target = self._limit * gradient + self._queue()
        return (1.0 - smoothing) * self._limit + smoothing * target

    def _end_probe(self, restored: float, latency: float) -> tuple[float, str]:
        self._limit_before_probe = None
        self._tripped_at = restored
        self._congested_rounds = 0
        self._uncontended = latency
        return restored, f"the uncontended latency is {duration(latency)}"

    def _set(self, limit: float, why: str) -> None:
        before = self._limit
        self._limit = max(float(self._bounds.minimum), min(float(self._bounds.maximum), limit))
        smaller, larger = sorted((before, self._limit))
        if larger > 1.1 * smaller:
            # A probe also waits for the long tail of items that started under contention.
            self._unjudged = int(larger) * (1 if self._limit_before_probe is None else 2)
            self._lowered = limit < before
        if self._limit_before_probe is None:
            self._decisions.note(self.limit, why)
