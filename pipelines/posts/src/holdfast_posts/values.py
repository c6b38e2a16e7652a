"""Converts foreign values: text, counts, ids and times, or None if one does not make sense.

Crawlers have sent "NULL" and "True" as text, numbers as text, and ids that a float cannot
represent.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

#: The largest number that a 64-bit column can store.
LARGEST = 2**63 - 1
_EXACT_FLOAT = 2**53
_NO_VALUE = frozenset({"", "null", "none", "nan", "undefined"})
_FUTURE = timedelta(days=1)


def text_of(value: Any, longest: int) -> str | None:
    """Returns the text without what databases do not store, cut to a length."""
    if not isinstance(value, str):
        return None
    text = value[:longest].replace("\x00", "")
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode("utf-8")
    return text or None


def word_of(value: Any, longest: int) -> str | None:
    """Returns a short text; None for the word NULL, too."""
    text = text_of(value, longest)
    if text is None:
        return None
    text = text.strip()
    return None if text.lower() in _NO_VALUE else text


def id_of(value: Any, longest: int = 100) -> str | None:
    """Returns an id as text.

    A float cannot be distinguished from another id, unless it is a small integer."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        value = str(value)
    elif isinstance(value, float):
        if not value.is_integer() or abs(value) > _EXACT_FLOAT:
            return None
        value = str(int(value))
    if not isinstance(value, str) or len(value) > longest:
        return None
    return word_of(value, longest)


def count_of(value: Any) -> int | None:
    """Returns a number of at least 0, also from text."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        digits = value.strip()
        if not (digits.isascii() and digits.isdigit()) or len(digits) > 19:
            return None
        value = int(digits)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and 0 <= value <= LARGEST else None


def flag_of(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and value in (0, 1):
        return bool(value)
    if isinstance(value, str):
        return {"true": True, "1": True, "false": False, "0": False}.get(value.strip().lower())
    return None


def instant_of(value: Any, now: datetime) -> tuple[datetime | None, str | None]:
    """Returns a time in UTC, and what is odd about it.

    One in the future is not believed: it would take precedence over every later crawl."""
    if value is None:
        return None, None
    instant = _parsed(value)
    if instant is None:
        return None, "is not a time"
    note = None
    if instant.tzinfo is None:
        instant, note = instant.replace(tzinfo=UTC), "has no zone, taken as UTC"
    try:
        instant = instant.astimezone(UTC)
    except OverflowError:
        return None, "is not a time"
    if instant > now + _FUTURE:
        return None, "is in the future"
    return instant, note


def _parsed(value: Any) -> datetime | None:
    try:
        if isinstance(value, str) and len(value) <= 40:
            return datetime.fromisoformat(value.strip())
        if isinstance(value, int | float) and not isinstance(value, bool):
            seconds = value / 1000 if abs(value) > 10**11 else value
            return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return None


def stored(instant: datetime | None) -> str | None:
    """Formats an instant as the database writes it, so that texts compare like times."""
    if instant is None:
        return None
    return f"{instant.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


def mapping_of(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


_KINDS = {type(None): "null", bool: "a boolean", int: "a number", float: "a number",
          str: "a text", list: "a list"}  # fmt: skip


def kind_of(value: Any) -> str:
    """Returns the kind of a value in the words of JSON."""
    return _KINDS.get(type(value), "an object")
