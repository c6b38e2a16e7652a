"""The 21 codes of crawlers and an unknown one, from category to retry class."""

from __future__ import annotations

import pytest

from holdfast_posts.crawl_codes import CRAWL_CODES, crawl_code, label_of

TABLE = """
RATE_LIMITED rate_limiting throttle
AUTH_FAILED rate_limiting never alert
ACCESS_DENIED rate_limiting never alert
CONTENT_REMOVED content never
CONTENT_NOT_FOUND content never
CONTENT_UNAVAILABLE content later
NETWORK_ERROR network soon
TIMEOUT network soon
CONNECTION_REFUSED network soon
DNS_ERROR network soon
PARSE_ERROR parsing never alert
INVALID_URL parsing never
INVALID_RESPONSE parsing never alert
MEDIA_DOWNLOAD_FAILED media never
MEDIA_TOO_LARGE media never
MEDIA_FORMAT_ERROR media never
STORAGE_ERROR storage soon alert
UPLOAD_FAILED storage soon alert
DATABASE_ERROR storage soon alert
UNKNOWN_ERROR generic soon
INTERNAL_ERROR generic soon alert
"""
ROWS = [line.split() for line in TABLE.strip().splitlines()]


def test_there_are_21() -> None:
    assert len(CRAWL_CODES) == len(ROWS) == 21


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row[0]))
def test_code(row: list[str]) -> None:
    code = crawl_code(row[0].lower())
    assert [code.code, code.category, code.retry, *(["alert"] if code.alert else [])] == row
    assert label_of(code.code) == row[0]


@pytest.mark.parametrize(
    ("reported", "code"),
    [("SOMETHING_NEW", "SOMETHING_NEW"), ("CRASHED", "CRASHED"), (None, "UNKNOWN_ERROR"),
     ("  ", "UNKNOWN_ERROR"), ("x" * 200, "X" * 50)],
)  # fmt: skip
def test_unknown_code_keeps_its_name_and_is_generic(reported: str | None, code: str) -> None:
    found = crawl_code(reported)
    assert (found.code, found.category) == (code, "generic")
    if code != "UNKNOWN_ERROR":
        assert (label_of(code), found.retry) == ("OTHER", "later")
