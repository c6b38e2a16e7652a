"""What this process has just ingested, kept until it claims it: mostly it need not be read back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.clock import Clock
from holdfast.store.driver import Values

#: Beyond this, what comes is not kept, and a claim reads it.
_MOST_CHARACTERS = 16 * 1024 * 1024
#: What a row takes besides its text.
_ROW_CHARACTERS = 150
#: What is not claimed within this time was claimed by others, or its job is paused.
_KEPT_SECONDS = 10.0


@dataclass(slots=True)
class _Kept:
    job_id: int
    lo: int
    rows: Sequence[Values]
    characters: int
    until: float


class NewItemRows:
    """The items of ranges that were committed, by range."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: dict[int, _Kept] = {}
        self._characters = 0
        self._claims_until = -math.inf

    def expect_claims(self) -> None:
        """Called at each claim: a process without any keeps nothing."""
        now = self._clock.monotonic()
        self._claims_until = now + _KEPT_SECONDS
        self._drop_expired(now)

    def keep(self, range_id: int, job_id: int, rows: Sequence[Values]) -> None:
        """All items of a range, in order; after their commit."""
        now = self._clock.monotonic()
        self._drop_expired(now)
        characters = _size(rows)
        if now < self._claims_until and self._characters + characters <= _MOST_CHARACTERS:
            earlier = self._kept.pop(range_id, None)
            self._characters -= earlier.characters if earlier else 0
            until = now + _KEPT_SECONDS
            self._kept[range_id] = _Kept(job_id, rows[0][0], rows, characters, until)
            self._characters += characters

    def take(self, range_id: int, job_id: int, lo: int, hi: int) -> Sequence[Values] | None:
        """Those of the range, or of its head up to `hi`; None if they have to be read."""
        self._drop_expired(self._clock.monotonic())
        kept = self._kept.pop(range_id, None)
        if kept is None:
            return None
        self._characters -= kept.characters
        if (kept.job_id, kept.lo) != (job_id, lo):
            return None
        head = [row for row in kept.rows if row[0] <= hi]
        rest = kept.rows[len(head) :]
        if rest:
            self._keep_rest(range_id, kept, hi + 1, rest)
        return head

    def clear(self) -> None:
        """A database that was gone may come back as it was some time ago."""
        self._kept.clear()
        self._characters = 0

    def _keep_rest(self, range_id: int, kept: _Kept, lo: int, rest: Sequence[Values]) -> None:
        characters = _size(rest)
        self._kept[range_id] = _Kept(kept.job_id, lo, rest, characters, kept.until)
        self._characters += characters

    def _drop_expired(self, now: float) -> None:
        for range_id in [key for key, kept in self._kept.items() if kept.until <= now]:
            self._characters -= self._kept.pop(range_id).characters


def _size(rows: Sequence[Values]) -> int:
    return sum(len(row[1]) + _ROW_CHARACTERS for row in rows)
