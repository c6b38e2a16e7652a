"""How far back a claim of new ranges looks.

Each claim passes over the ranges that are claimed and not settled yet: at full load more than it
takes. So after a claim of many, the next ones look only at what has just come, for a moment. What
was committed later than that after it came waits until the moment is over.
"""

from __future__ import annotations

import math

from holdfast.clock import Clock

_ALL_SECONDS = 5.0
_NEWEST_SECONDS = 0.05
_MANY = 8


class ArrivalLooks:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._newest_until: dict[int, float] = {}  # by job

    def seconds_back(self, job_id: int) -> float:
        return _NEWEST_SECONDS if self._at_newest(job_id) else _ALL_SECONDS

    def note(self, job_id: int, ranges: int, limit: int) -> None:
        """A claim that is full may have left some: the next one looks at all."""
        if ranges >= limit:
            self._newest_until.pop(job_id, None)
        elif ranges >= _MANY and not self._at_newest(job_id):
            self._newest_until[job_id] = self._clock.monotonic() + _NEWEST_SECONDS

    def _at_newest(self, job_id: int) -> bool:
        return self._clock.monotonic() < self._newest_until.get(job_id, -math.inf)
