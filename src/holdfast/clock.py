"""Time and randomness, passed to whatever needs them: the only module that reads either."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime
from typing import Protocol

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


class Clock(Protocol):
    """Measures durations (`monotonic`) and reads the wall time (`now`).

    Leases, gates and schedules never compare this wall time with the database's:
    they use the database's own. A process's clock may be wrong by minutes.
    """

    def monotonic(self) -> float: ...

    def now(self) -> datetime: ...


def duration_text(seconds: float) -> str:
    """Formats a duration: `480 ms`, `33 s`, `3 min 20 s`, `1 h 30 min`, `3 days 2 h`."""
    if seconds < 1:
        return f"{max(0, round(seconds * 1000))} ms"
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return _in_units(whole // _MINUTE, "min", whole % _MINUTE if whole < 600 else 0, "s")
    if whole < 2 * _DAY:
        return _in_units(whole // _HOUR, "h", whole % _HOUR // _MINUTE, "min")
    return _in_units(whole // _DAY, "days", whole % _DAY // _HOUR if whole < 10 * _DAY else 0, "h")


def _in_units(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large} {large_unit} {small} {small_unit}" if small else f"{large} {large_unit}"


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
