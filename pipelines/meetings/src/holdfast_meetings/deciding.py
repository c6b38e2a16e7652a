"""Decides what a request leads to for one collection. Pure: from its streams to a decision.

| state of the collection                        | decision                                        |
|------------------------------------------------|-------------------------------------------------|
| a job is live, or crashed and can be resumed   | mark for a rerun; forced: mark for a new full   |
| forced                                         | a new full generation                           |
| never read                                     | full                                            |
| its full pass failed                           | resume it from its checkpoint                   |
| no full pass ever completed (cancelled, cut)   | full, from the beginning                        |
| its incremental pass failed                    | resume it, then an incremental pass             |
| otherwise                                      | incremental                                     |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from holdfast.model import JobState, StreamStatus
from holdfast_meetings.options import Mode


class Action(StrEnum):
    START_FULL = "start full"
    START_INCREMENTAL = "start incremental"
    RESUME = "resume"
    MARK_RERUN = "mark for a rerun"
    MARK_FULL = "mark for a new full"


@dataclass(frozen=True, slots=True)
class Decision:
    action: Action
    why: str
    stream: StreamStatus | None = None  # of the stream that is resumed or marked
    rerun: bool = False  # an incremental pass has to follow
    complete: bool = False  # a full pass was completed at some time
    proven_at: datetime | None = None  # the last time an inventory accounted for every row


def decide(streams: Sequence[StreamStatus], wanted: Mode | None, force: bool) -> Decision:
    """Decides for a collection with these streams; without `wanted`, the table decides the mode."""
    by_mode = {stream.mode: stream for stream in streams}
    full, incremental = by_mode.get(Mode.FULL), by_mode.get(Mode.INCREMENTAL)
    live = next(
        (stream for stream in (full, incremental) if stream is not None and stream.live), None
    )
    forced = force or (full is not None and full.force_full)
    if live is not None:
        return _mark(live, full, force)
    if forced:
        return Decision(Action.START_FULL, "forced")
    if wanted is Mode.INCREMENTAL:
        return _incremental(full, incremental, "requested")
    if full is None:
        return Decision(Action.START_FULL, "never read")
    if full.job_state is JobState.FAILED:
        return Decision(Action.RESUME, "its full pass failed", full)
    if full.full_completed_at is None:
        return Decision(Action.START_FULL, "no full pass was completed")
    if wanted is Mode.FULL:
        return Decision(Action.START_FULL, "requested")
    return _incremental(full, incremental, "its full pass is complete")


def _mark(live: StreamStatus, full: StreamStatus | None, force: bool) -> Decision:
    why = f"job {live.job_id} ({live.mode}) is {live.job_state}"
    if force and full is not None:
        return Decision(Action.MARK_FULL, why, full)
    return Decision(Action.MARK_RERUN, why, live)


def _incremental(full: StreamStatus | None, incremental: StreamStatus | None, why: str) -> Decision:
    if incremental is not None and incremental.job_state is JobState.FAILED:
        return Decision(Action.RESUME, "its incremental pass failed", incremental, rerun=True)
    complete = full is not None and full.full_completed_at is not None
    proofs = [stream.verified_at for stream in (full, incremental) if stream and stream.verified_at]
    proven_at = max(proofs, default=None)
    return Decision(Action.START_INCREMENTAL, why, complete=complete, proven_at=proven_at)
