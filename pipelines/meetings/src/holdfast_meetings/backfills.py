"""The state of a municipality's backfill, derived from its streams. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from holdfast.model import JobState, Json
from holdfast_meetings.options import DocumentType, Mode


class BackfillState(StrEnum):
    NOT_STARTED = "NOT_STARTED"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    FAILED = "FAILED"
    INCOMPLETE = "INCOMPLETE"  # no full pass was completed for agendas or minutes
    COMPLETE = "COMPLETE"
    VERIFIED = "VERIFIED"


class ExpectedBy(StrEnum):
    """Where the expected number of rows comes from."""

    SITE = "SITE"  # the site counted them
    WEBHOOK = "WEBHOOK"  # what the site last reported
    ESTIMATE = "ESTIMATE"  # at least as many: the rows so far; grows with them


@dataclass(frozen=True, slots=True)
class OtherRows:
    """Rows of a site that are accounted for, but are not pages."""

    rejected: int = 0
    duplicates: int = 0


@dataclass(frozen=True, slots=True)
class Backfill:
    """Pages `stored` and rows `expected`, of all types; `verified_at` is the oldest proof."""

    state: BackfillState
    stored: int | None
    expected: int | None
    expected_by: ExpectedBy | None
    rejected: int
    duplicates: int
    verified_at: datetime | None


def backfill_of(streams: Sequence[Json], other: OtherRows, reported: int | None = None) -> Backfill:
    """Returns the state; `reported`: the pages of all types, as the webhook of the site last
    said."""
    by_type = [
        [stream for stream in streams if stream["document_type"] == kind]
        for kind in DocumentType
        if any(stream["document_type"] == kind for stream in streams)
    ]
    counts = [_counts(group) for group in by_type]
    proofs = [
        max((stream["verified_at"] for stream in group if stream["verified_at"]), default=None)
        for group in by_type
    ]
    rows = _sum([rows for rows, _ in counts])
    expected, expected_by = _expected(counts, reported)
    return Backfill(
        _state(streams, bool(proofs) and all(proofs)),
        None if rows is None else max(0, rows - other.rejected - other.duplicates),
        expected,
        expected_by,
        other.rejected,
        other.duplicates,
        min((proof for proof in proofs if proof), default=None),
    )


def _state(streams: Sequence[Json], proven: bool) -> BackfillState:
    """Returns the worst state of any of them."""
    if not streams:
        return BackfillState.NOT_STARTED
    states = {stream["job_state"] for stream in streams}
    if JobState.FAILED in states:
        return BackfillState.FAILED
    if states & {JobState.RUNNING, JobState.QUEUED}:
        return BackfillState.RUNNING
    if JobState.PAUSED in states:
        return BackfillState.PAUSED
    complete = {
        stream["document_type"]
        for stream in streams
        if stream["mode"] == Mode.FULL and stream["full_completed_at"]
    }
    if complete != set(DocumentType):
        return BackfillState.INCOMPLETE
    return BackfillState.VERIFIED if proven else BackfillState.COMPLETE


def _counts(streams: Sequence[Json]) -> tuple[int | None, int | None]:
    """Returns rows here and expected, of one type: as last counted, or as far as the first pass
    is."""
    counted = [stream for stream in streams if stream["actual"] is not None]
    if counted:
        latest = max(counted, key=lambda stream: str(stream["updated_at"]))
        return latest["actual"], latest["expected"]
    full = next((stream for stream in streams if stream["mode"] == Mode.FULL), None)
    if full is None:
        return None, None
    return full["rows"], full["expected"]


def _expected(
    counts: Sequence[tuple[int | None, int | None]], reported: int | None
) -> tuple[int | None, ExpectedBy | None]:
    """Returns the expected rows.

    Datasette 1.0 stops counting at 10,001 rows. Then what the webhook said counts, unless more were
    read since; otherwise as many as were read so far, which is too few until the end."""
    if not any(rows is not None for rows, _ in counts):
        return None, None
    if all(expected is not None for _, expected in counts):
        return _sum([expected for _, expected in counts]), ExpectedBy.SITE
    least = sum(max(rows or 0, expected or 0) for rows, expected in counts)
    if reported is not None and reported >= least:
        return reported, ExpectedBy.WEBHOOK
    return least, ExpectedBy.ESTIMATE


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
