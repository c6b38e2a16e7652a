"""Signed webhooks: nothing forged, nothing changed, nothing old."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.api.signatures import TOLERANCE_SECONDS, check_signature, sign
from holdfast.errors import NotAllowed

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
SECRET = b"between us"


@given(st.binary())
def test_signed_body_is_let_in_within_the_time(body: bytes) -> None:
    header = sign(SECRET, body, NOW)
    check_signature(SECRET, body, header, NOW)
    check_signature(SECRET, body, header, NOW + timedelta(seconds=TOLERANCE_SECONDS - 1))


def test_old_signature_is_refused() -> None:
    header = sign(SECRET, b"{}", NOW)
    late = NOW + timedelta(seconds=TOLERANCE_SECONDS + 2)
    with pytest.raises(NotAllowed, match="older"):
        check_signature(SECRET, b"{}", header, late)


@given(st.text())
def test_made_up_header_is_refused(header: str) -> None:
    with pytest.raises(NotAllowed):
        check_signature(SECRET, b"{}", header, NOW)


def test_changed_body_time_or_secret_is_refused() -> None:
    header = sign(SECRET, b"{}", NOW)
    later = sign(SECRET, b"{}", NOW + timedelta(seconds=9)).partition(",")[0]
    forged = f"{later},{header.partition(',')[2]}"
    for secret, body, given_header in (
        (b"another", b"{}", header),
        (SECRET, b"[]", header),
        (SECRET, b"{}", forged),
    ):
        with pytest.raises(NotAllowed):
            check_signature(secret, body, given_header, NOW)
