"""Checks a row of a site and brings it into canonical form."""

from __future__ import annotations

import hashlib
import re
from datetime import date
from typing import Any, NamedTuple

import orjson

from holdfast.errors import Category, ErrorCode, Failed, RetryClass
from holdfast.model import Json

_NAME_CHARACTERS = 255
_LARGEST_PAGE = 2**31 - 1
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_DIGITS = re.compile(r"\d{1,20}")  # Python refuses to convert thousands of them
_EXTRAS = ("entities_json", "votes_json")

#: The size of a row that was too large, in place of the values that made it so.
ROW_BYTES = "_row_bytes"

#: A row with one of these is rejected and stored as it was received; others are not affected.
REJECTS = {
    code: ErrorCode(code, Category.PARSING, RetryClass.NEVER)
    for code in ("INVALID_MEETING", "INVALID_DATE", "INVALID_PAGE", "INVALID_TEXT")
}


class PagePosition(NamedTuple):
    """The position of a page in its collection. This is its identity, whatever its upstream id."""

    meeting: str
    date: str
    number: int


class Content(NamedTuple):
    text: str
    page_image: str | None
    extra: str | None

    @property
    def hash(self) -> str:
        rest = f"{self.page_image}\0{self.extra}\0"  # no text contains a NUL
        return hashlib.blake2b((rest + self.text).encode(), digest_size=12).hexdigest()


class Draft(NamedTuple):
    """A page as it will be stored, made before the transaction that stores it."""

    upstream_id: str
    position: PagePosition
    content: Content
    hash: str


def draft_of(row: Json) -> Draft:
    """Converts a row to a draft; raises Failed with the reason if it cannot be a page."""
    check_text(row)
    position, content = position_of(row), content_of(row)
    return Draft(row["id"], position, content, content.hash)


def position_of(row: Json) -> PagePosition:
    """Returns the row's position; raises Failed with the reason if it has no valid one."""
    return PagePosition(
        _meeting(row.get("meeting")), _day(row.get("date")), _number(row.get("page"))
    )


def content_of(row: Json) -> Content:
    image = row.get("page_image")
    if image is not None:
        image = "/" + str(image).replace("\0", "").lstrip("/")
    extras = {name: row[name] for name in _EXTRAS if row.get(name) is not None}
    extra = orjson.dumps(extras).decode() if extras else None
    return Content((row.get("text") or "").replace("\0", ""), image, extra)


def check_text(row: Json) -> None:
    if ROW_BYTES in row:
        raise Failed(
            "TOO_LARGE", f"the row has {row[ROW_BYTES]} bytes; its long values were left out"
        )
    if "text" not in row:
        raise Failed("TOO_LARGE", "the site's response with the text of this row is too large")
    text = row["text"]
    if text is not None and not isinstance(text, str):
        raise Failed("INVALID_TEXT", f"the text is {type(text).__name__}")


def _meeting(value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise Failed("INVALID_MEETING", f"the meeting's name is {_shown(value)}")
    if len(value) > _NAME_CHARACTERS:
        raise Failed("INVALID_MEETING", f"the meeting's name has {len(value)} characters")
    return value


def _day(value: Any) -> str:
    if isinstance(value, str) and _DAY.fullmatch(value) and value.isascii():
        try:
            date.fromisoformat(value)
            return value
        except ValueError:
            pass
    raise Failed("INVALID_DATE", f"the date is {_shown(value)}, not a day as in 2026-01-31")


def _number(value: Any) -> int:
    """Parses a number; accepts digits as text, and 3.0 for 3, and does not guess at anything
    else."""
    if isinstance(value, str) and value.isascii() and _DIGITS.fullmatch(value.strip()):
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST_PAGE:
        return value
    raise Failed("INVALID_PAGE", f"the page number is {_shown(value)}")


def _shown(value: Any) -> str:
    return "missing" if value is None else repr(value)[:80]
