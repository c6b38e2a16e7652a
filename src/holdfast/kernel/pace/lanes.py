"""Pure: decides whose turn it is among lanes.

Urgent work goes first, and no lane waits for ever."""

from __future__ import annotations

from collections.abc import Collection

from holdfast.model import Lane

#: What share of the turns each lane gets while all of them wait. Lanes of equal weight share.
WEIGHTS = {Lane.SENTINEL: 8, Lane.UPLOAD: 4, Lane.EVENT: 4, Lane.BACKFILL: 1}
#: The lanes by weight, the most urgent first.
CLASSES = tuple(
    frozenset(lane for lane in Lane if WEIGHTS[lane] == weight)
    for weight in sorted(set(WEIGHTS.values()), reverse=True)
)


def class_of(lane: Lane) -> frozenset[Lane]:
    """Returns the lanes that share their turns with this one."""
    return next(lanes for lanes in CLASSES if lane in lanes)


class LaneTurns:
    """Weighted turns: each turn costs a class 1 ÷ weight, and the class that has spent least is
    next, or of equal ones the more urgent. A class that had nothing to do saves nothing up, and
    pays nothing for turns that no other class wanted: after a pause it starts with the others."""

    def __init__(self) -> None:
        self._spent = [0.0] * len(CLASSES)
        self._last = (0, 0.0)  # whose turn it was, and what it cost
        self._waiting: set[int] = set()

    def choose(self, waiting: Collection[Lane]) -> frozenset[Lane]:
        """Returns the lanes that the next turn is for, of those that wait (at least one)."""
        present = {rank for rank, lanes in enumerate(CLASSES) if lanes & set(waiting)}
        stayed = present & self._waiting
        level = min((self._spent[rank] for rank in stayed), default=0.0)
        for rank in present - stayed:
            self._spent[rank] = level
        self._waiting = present
        chosen = min(present, key=lambda rank: (self._spent[rank], rank))
        cost = 1 / WEIGHTS[next(iter(CLASSES[chosen]))] if len(present) > 1 else 0.0
        self._spent[chosen] += cost
        self._last = chosen, cost
        return CLASSES[chosen]

    def give_back(self) -> None:
        """Takes the last turn back: nothing came of it."""
        chosen, cost = self._last
        self._spent[chosen] -= cost
        self._last = chosen, 0.0
