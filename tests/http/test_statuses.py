"""Retry-After in all its spellings."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from holdfast.errors import ERROR_CODES
from holdfast.http.statuses import code_of_status, retry_after_seconds

SENT_AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120.0),
        (" 5 ", 5.0),
        ("0", 0.0),
        ("1.5", 1.5),
        ("Sun, 01 Mar 2026 12:01:00 GMT", 60.0),
        ("Sun, 01 Mar 2026 13:01:00 +0100", 60.0),
        ("Sun, 01 Mar 2026 12:00:30 -0000", 30.0),
        ("Sunday, 01-Mar-26 12:00:10 GMT", 10.0),
        ("Sun Mar  1 12:00:10 2026", 10.0),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0.0),
        (None, None),
        ("", None),
        ("-5", None),
        ("soon", None),
        ("1e9", None),
        ("inf", None),
        ("Sun, 99 Mar 2026 12:00:00 GMT", None),
        ("9" * 400, None),
    ],
)
def test_retry_after_is_read_as_seconds_or_date(value: str | None, seconds: float | None) -> None:
    assert retry_after_seconds(value, SENT_AT) == seconds


def test_every_status_is_a_success_or_has_a_known_code() -> None:
    for status in range(200, 600):
        code = code_of_status(status)
        assert (code is None) == (200 <= status < 300 or status == 304)
        assert code is None or code in ERROR_CODES
