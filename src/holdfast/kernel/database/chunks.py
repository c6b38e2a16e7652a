"""The items that one step of a reprocess or a skip changes, however they were chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from holdfast.kernel.database.instants import parse_instant
from holdfast.model import ItemStatus

EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = datetime(9999, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class NamedItems:
    """These items; a reprocess leaves those that finished after `until` unchanged."""

    seqs: Sequence[int]
    until: datetime = LATEST


@dataclass(frozen=True, slots=True)
class FinishedItems:
    """Items with one status, in the order they finished; those up to (`since`, `seq`) were seen
    before."""

    status: ItemStatus
    code: str | None = None
    since: datetime = EARLIEST
    until: datetime = LATEST
    seq: int = 0

    @property
    def position(self) -> dict[str, Any]:
        return {"at": self.since.isoformat(), "seq": self.seq}

    def after(self, position: Mapping[str, Any]) -> FinishedItems:
        if "at" not in position:
            return self
        return replace(self, since=_instant(position["at"]), seq=position["seq"])


@dataclass(frozen=True, slots=True)
class FreeRanges:
    """Open items in ranges without a lease, the longest waiting first; ranges up to (`since`,
    `range_id`) were seen before."""

    code: str | None = None
    since: datetime = EARLIEST
    until: datetime = LATEST
    range_id: int = 0

    @property
    def position(self) -> dict[str, Any]:
        return {"at": self.since.isoformat(), "range": self.range_id}

    def after(self, position: Mapping[str, Any]) -> FreeRanges:
        if "at" not in position:
            return self
        return replace(self, since=_instant(position["at"]), range_id=position["range"])


class Reprocessed(NamedTuple):
    opened: int
    left: int  # looked at but not changed
    next: FinishedItems | None  # the next step; None at the end


class Skipped(NamedTuple):
    skipped: int
    left: int  # finished or being processed
    next: FreeRanges | None


def _instant(value: Any) -> datetime:
    return parse_instant(value) or EARLIEST
