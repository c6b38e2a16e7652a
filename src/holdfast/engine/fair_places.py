"""Places for long work, fair between owners; work that fails waits longer each time, then ends.

Pure: the caller says what waits and what time it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

#: Tries before work that fails unexpectedly is given up, and the first wait between them.
TRIES = 3
_FIRST_WAIT_SECONDS = 1.0
#: Waits double this often: while the database or the file store is gone, nothing is given up.
_DOUBLINGS = 5
#: For how long a place is kept when another owner waits for one.
_TURN_SECONDS = 10.0


@dataclass(slots=True)
class _Failures:
    count: int = 0
    not_before: float = 0.0


@dataclass(slots=True)
class FairPlaces:
    most: int
    _under_way: dict[int, tuple[str, float]] = field(default_factory=dict)  # work -> owner, since
    _failures: dict[int, _Failures] = field(default_factory=dict)
    _served: dict[str, float] = field(default_factory=dict)  # owner -> when last

    def choose(self, waiting: Sequence[tuple[int, str]], now: float) -> list[int]:
        """What to begin now. Owners with the least under way come first, then those who were
        served longest ago."""
        ready = [(work, owner) for work, owner in waiting if self._is_ready(work, now)]
        chosen: list[int] = []
        while ready and len(self._under_way) < self.most:
            held = Counter(owner for owner, _ in self._under_way.values())
            ready.sort(key=lambda each: (held[each[1]], self._served.get(each[1], -1.0), each[0]))
            work, owner = ready.pop(0)
            self._under_way[work] = (owner, now)
            self._served[owner] = now
            chosen.append(work)
        return chosen

    def to_yield(self, waiting: Sequence[tuple[int, str]], now: float) -> int | None:
        """What has to give its place up, to continue later: all places are taken, somebody with
        none waits, and another has several, or had one for long enough."""
        owners = {owner for owner, _ in self._under_way.values()}
        starved = any(self._is_ready(work, now) and owner not in owners for work, owner in waiting)
        if not starved or len(self._under_way) < self.most:
            return None
        held = Counter(owner for owner, _ in self._under_way.values())
        work, (owner, since) = max(
            self._under_way.items(), key=lambda each: (held[each[1][0]], -each[1][1])
        )
        return work if held[owner] > 1 or now - since >= _TURN_SECONDS else None

    def end(self, work: int, now: float, failed: bool = False) -> int:
        """Frees the place; how often it has failed by now."""
        self._under_way.pop(work, None)
        if not failed:
            self._failures.pop(work, None)
            return 0
        failures = self._failures.setdefault(work, _Failures())
        failures.count += 1
        doublings = min(failures.count - 1, _DOUBLINGS)
        failures.not_before = now + _FIRST_WAIT_SECONDS * 2.0**doublings
        return failures.count

    def failures(self, work: int) -> int:
        return self._failures[work].count if work in self._failures else 0

    def _is_ready(self, work: int, now: float) -> bool:
        failures = self._failures.get(work)
        return work not in self._under_way and (failures is None or now >= failures.not_before)
