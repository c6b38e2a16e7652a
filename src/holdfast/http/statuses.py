"""Decides what a reply's status means for its item, and how long a server asks to be left alone."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus

_CODES = {
    401: "AUTH_FAILED",
    403: "ACCESS_DENIED",
    404: "CONTENT_NOT_FOUND",
    408: "TIMEOUT",
    410: "CONTENT_REMOVED",
    425: "NETWORK_ERROR",
    429: "RATE_LIMITED",
    451: "ACCESS_DENIED",
    501: "INVALID_RESPONSE",
    505: "INVALID_RESPONSE",
}

_SECONDS = re.compile(r"\d{1,12}(\.\d+)?")


def code_of_status(status: int, *, throttled: bool = False) -> str | None:
    """Returns the error code of a status; None if it is not an error."""
    if throttled:
        return "RATE_LIMITED"
    if 200 <= status < 300 or status == 304:
        return None
    return _CODES.get(status) or ("NETWORK_ERROR" if status >= 500 else "INVALID_RESPONSE")


def is_throttle(status: int, retry_after: str | None) -> bool:
    """Whether the server asks all clients to wait, not only this request."""
    return status == 429 or (status == 503 and retry_after is not None)


def phrase_of_status(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def retry_after_seconds(value: str | None, sent_at: datetime) -> float | None:
    """Returns the seconds of a Retry-After header, which has a number or an HTTP date.

    A date is compared with `sent_at`, the reply's own Date if it has one, so that neither side's
    wrong clock matters. None: there is no such header, or it says nothing sensible."""
    text = (value or "").strip()
    if _SECONDS.fullmatch(text):
        return float(text)
    until = http_date(text)
    if until is None:
        return None
    return max(0.0, (until - sent_at) / timedelta(seconds=1))


def http_date(value: str | None) -> datetime | None:
    try:
        parsed = parsedate_to_datetime(value or "")
    except (ValueError, OverflowError):
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
