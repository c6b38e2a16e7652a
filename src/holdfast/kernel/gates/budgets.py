"""Computes the budget of a gate: requests and units for a period, as buckets that refill.

It is pure. A bucket holds a tenth of the budget at most and refills with the rest over the period,
so that no period has more than the budget, wherever it begins. A throttle lowers the budget; it
grows back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

_BURST_SHARE = 0.1
_LEAST_WAIT = 1e-6  # seconds; anything less is a rounding error
_CUT = 0.8
_LEAST_SHARE = 0.1
#: Share of its full size that a lowered budget regains in a period without a throttle.
_REGAINED = 0.05
#: Throttles within this many seconds count as one, whatever the period.
_SAME_THROTTLE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Budget:
    """`requests` and `units` per `period` seconds (0: no limit), of which `share` is used now, and
    what the two buckets have left. Units can be below zero: one request may need more than a bucket
    holds, and the next wait for it."""

    requests: int
    units: float
    period: float
    share: float
    requests_left: float
    units_left: float

    @property
    def limited(self) -> bool:
        return self.requests > 0 or self.units > 0

    @property
    def requests_now(self) -> float:
        return max(1.0, self.requests * self.share)

    @property
    def units_now(self) -> float:
        return self.units * self.share

    @property
    def _request_burst(self) -> float:
        return max(1.0, float(int(self.requests_now * _BURST_SHARE)))

    @property
    def _unit_burst(self) -> float:
        return self.units_now * _BURST_SHARE

    @property
    def _requests_per_second(self) -> float:
        # Allows whole requests only: one more than the bucket holds fits into a period.
        return (self.requests_now - self._request_burst + 1.0) / self.period

    @property
    def _units_per_second(self) -> float:
        return (self.units_now - self._unit_burst) / self.period

    def later(self, seconds: float) -> Budget:
        """Returns the budget after that time: refilled, and grown back."""
        grown = replace(self, share=min(1.0, self.share + _REGAINED * seconds / self.period))
        return replace(
            grown,
            requests_left=min(
                grown._request_burst, self.requests_left + seconds * grown._requests_per_second
            ),
            units_left=min(grown._unit_burst, self.units_left + seconds * grown._units_per_second),
        )

    def full(self) -> Budget:
        return replace(self, requests_left=self._request_burst, units_left=self._unit_burst)

    def take(self, costs: Sequence[float]) -> tuple[Budget, int]:
        """Takes as many of the requests as fit now, in order; returns what is left and how many
        fit. A request that costs more than the whole budget uses all of it: a wrong cost must not
        keep the others waiting for years."""
        budget, count = self, 0
        for cost in costs:
            if budget.wait_seconds(cost) > _LEAST_WAIT:
                break
            budget = replace(
                budget,
                requests_left=budget.requests_left - (1.0 if self.requests else 0.0),
                units_left=budget.units_left - min(cost, self.units),
            )
            count += 1
        return budget, count

    def wait_seconds(self, cost: float) -> float:
        """Returns how long it takes until a request of that cost fits."""
        waits = [0.0]
        if self.requests:
            waits.append((1.0 - self.requests_left) / self._requests_per_second)
        if self.units:
            needed = min(cost, self._unit_burst)
            waits.append((needed - self.units_left) / self._units_per_second)
        return max(waits)

    def throttled(self, seconds_since_last: float | None) -> Budget:
        """Returns a lower budget that is used up for now; throttles that come together lower it
        once."""
        same = min(_SAME_THROTTLE_SECONDS, self.period)
        cut = seconds_since_last is None or seconds_since_last >= same
        share = max(_LEAST_SHARE, self.share * _CUT) if cut else self.share
        return replace(self, share=share, requests_left=0.0, units_left=min(0.0, self.units_left))
