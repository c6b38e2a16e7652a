"""The state of a municipality as a whole: never better than that of all its documents."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.pipelines.meetings.backfills import BackfillState, OtherRows, backfill_of

AT = "2026-11-01T00:00:00.000Z"


def stream(document_type: str, mode: str, *, completed: bool = True) -> dict[str, Any]:
    at = AT if completed else None
    return {"document_type": document_type, "mode": mode, "job_state": "DONE", "rows": 5,
            "expected": 5, "actual": 5, "full_completed_at": at, "verified_at": at,
            "updated_at": AT}  # fmt: skip


@pytest.mark.parametrize(
    ("streams", "state"),
    [
        ([], BackfillState.NOT_STARTED),
        ([stream("agenda", "full"), stream("minutes", "full")], BackfillState.VERIFIED),
        ([stream("agenda", "full")], BackfillState.INCOMPLETE),
        ([stream("agenda", "full"), stream("minutes", "incremental")], BackfillState.INCOMPLETE),
        (
            [stream("agenda", "full"), stream("minutes", "full", completed=False)],
            BackfillState.INCOMPLETE,
        ),
    ],
)
def test_municipality_is_verified_when_both_its_types_were_read_and_verified(
    streams: list[dict[str, Any]], state: BackfillState
) -> None:
    assert backfill_of(streams, OtherRows(0, 0)).state is state
