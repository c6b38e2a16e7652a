"""Lists what a crawler can report about an item that it could not fetch: 21 codes in 7
categories."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from holdfast.errors import ERROR_CODES, Category, ErrorCode, RetryClass

_NAMES = (
    "RATE_LIMITED", "AUTH_FAILED", "ACCESS_DENIED",
    "CONTENT_REMOVED", "CONTENT_NOT_FOUND", "CONTENT_UNAVAILABLE",
    "NETWORK_ERROR", "TIMEOUT", "CONNECTION_REFUSED", "DNS_ERROR",
    "PARSE_ERROR", "INVALID_URL", "INVALID_RESPONSE",
    "MEDIA_DOWNLOAD_FAILED", "MEDIA_TOO_LARGE", "MEDIA_FORMAT_ERROR",
    "STORAGE_ERROR", "UPLOAD_FAILED", "DATABASE_ERROR",
    "UNKNOWN_ERROR", "INTERNAL_ERROR",
)  # fmt: skip
LONGEST_CODE = 50
UNKNOWN = "UNKNOWN_ERROR"

CRAWL_CODES: Mapping[str, ErrorCode] = MappingProxyType(
    {name: ERROR_CODES[name] for name in _NAMES}
)


def crawl_code(reported: str | None) -> ErrorCode:
    """Returns the code.

    An unknown one keeps its name and is generic; a person decides whether to try again."""
    name = (reported or UNKNOWN).strip().upper()[:LONGEST_CODE] or UNKNOWN
    known = CRAWL_CODES.get(name)
    return known or ErrorCode(name, Category.GENERIC, RetryClass.LATER)


def label_of(code: str) -> str:
    """Returns the code for metrics, whose labels are bounded."""
    return code if code in CRAWL_CODES else "OTHER"
