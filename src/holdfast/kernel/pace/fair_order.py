"""Pure: decides whose turn it is among jobs. Used by claims, by places and by walks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from holdfast.kernel.pace.lanes import LaneTurns
from holdfast.model import Lane

#: How many jobs and owners are remembered; those that were served longest ago are forgotten.
_REMEMBERED = 100_000


class Waiting(Protocol):
    """A job that wants a turn."""

    @property
    def job_id(self) -> int: ...

    @property
    def lane(self) -> Lane: ...

    @property
    def owner_id(self) -> str: ...


W = TypeVar("W", bound=Waiting)


class FairOrder:
    """Chooses lanes by weight; within a lane the owner, and of one owner the job, that was served
    least recently."""

    def __init__(self) -> None:
        self._lanes = LaneTurns()
        self._turns = 0
        self._served: dict[int | str, int] = {}  # job or owner -> the number of its last turn

    def choose(self, waiting: Sequence[W]) -> W:
        """Returns the next of at least one, and counts the turn as its own."""
        chosen = waiting[0]
        lanes = self._lanes.choose({one.lane for one in waiting})
        if len(waiting) > 1:
            eligible = [one for one in waiting if one.lane in lanes]
            chosen = min(eligible, key=self._last_turns)
        self._note(chosen)
        return chosen

    def _last_turns(self, one: Waiting) -> tuple[int, int, int]:
        served = self._served
        return served.get(one.owner_id, 0), served.get(one.job_id, 0), one.job_id

    def _note(self, chosen: Waiting) -> None:
        self._turns += 1
        for name in (chosen.owner_id, chosen.job_id):
            self._served.pop(name, None)  # the latest is last
            self._served[name] = self._turns
        while len(self._served) > _REMEMBERED:
            del self._served[next(iter(self._served))]
