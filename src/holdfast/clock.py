"""Time and randomness, passed to whatever needs them: the only module that reads either."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Measures durations (`monotonic`) and reads the wall time (`now`).

    Leases, gates and schedules never compare this wall time with the database's:
    they use the database's own. A process's clock may be wrong by minutes.
    """

    def monotonic(self) -> float: ...

    def now(self) -> datetime: ...


class SystemClock:
    monotonic = staticmethod(time.monotonic)

    def now(self) -> datetime:
        return datetime.now(UTC)


class FixedClock:
    """A clock that tests advance by hand."""

    def __init__(self, at: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._start = at.timestamp()
        self.elapsed = 0.0

    def advance(self, seconds: float) -> None:
        self.elapsed += seconds

    def monotonic(self) -> float:
        return self.elapsed

    def now(self) -> datetime:
        return datetime.fromtimestamp(self._start + self.elapsed, UTC)


def system_random() -> random.Random:
    return random.Random(random.SystemRandom().getrandbits(64))
