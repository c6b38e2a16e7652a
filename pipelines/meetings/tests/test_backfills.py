"""The state of a municipality as a whole: never better than that of all its documents."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast_meetings.backfills import BackfillState, ExpectedBy, OtherRows, backfill_of

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


@pytest.mark.parametrize(
    ("counted", "reported", "expected"),
    [
        (9, None, (9 + 5, ExpectedBy.SITE)),
        (9, 100, (9 + 5, ExpectedBy.SITE)),
        (None, 20_000, (20_000, ExpectedBy.WEBHOOK)),
        (None, None, (12_000 + 5, ExpectedBy.ESTIMATE)),
        (None, 11_000, (12_000 + 5, ExpectedBy.ESTIMATE)),  # the report is out of date
    ],
)
def test_site_that_does_not_count_is_expected_to_have_what_it_reported_or_more_than_was_read(
    counted: int | None, reported: int | None, expected: tuple[int, ExpectedBy]
) -> None:
    walked = stream("minutes", "full", completed=False)
    walked |= {"rows": 12_000, "expected": counted, "actual": None, "job_state": "RUNNING"}
    backfill = backfill_of([walked, stream("agenda", "full")], OtherRows(0, 0), reported)
    assert (backfill.expected, backfill.expected_by) == expected
