"""How figures, times and words are written for people."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import orjson
from markupsafe import Markup, escape

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_SIZES = ("bytes", "kB", "MB", "GB", "TB")


def number(value: float | int | None) -> str:
    """1,234; a rate below ten keeps a digit after the point."""
    if value is None:
        return "–"
    if isinstance(value, float) and not value.is_integer() and abs(value) < 10:
        return f"{value:,.1f}"
    return f"{value:,.0f}"


def duration(seconds: float | None) -> str:
    """As people say it: `3 min 20 s`."""
    if seconds is None or not math.isfinite(seconds):
        return "–"
    if seconds < 1:
        return f"{max(0, round(seconds * 1000))} ms"
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return _two(whole // _MINUTE, "min", whole % _MINUTE, "s", whole < 10 * _MINUTE)
    if whole < 2 * _DAY:
        return _two(whole // _HOUR, "h", whole % _HOUR // _MINUTE, "min", True)
    return _two(whole // _DAY, "days", whole % _DAY // _HOUR, "h", whole < 10 * _DAY)


def _two(large: int, large_unit: str, small: int, small_unit: str, both: bool) -> str:
    said = f"{large} {large_unit}"
    return f"{said} {small} {small_unit}" if both and small else said


def instant(value: datetime | None) -> Markup | str:
    """The page's script shows it in the reader's own zone; UTC stays where the pointer rests."""
    if value is None:
        return "–"
    utc = value.astimezone(UTC)
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        utc.isoformat(timespec="milliseconds"),
        f"{utc:%Y-%m-%d %H:%M:%S} UTC",
        f"{utc:%Y-%m-%d %H:%M}",
    )


def size(count: int | None) -> str:
    if count is None:
        return "–"
    amount = float(count)
    for unit in _SIZES[:-1]:
        if amount < 1000:
            return f"{amount:,.0f} {unit}" if unit == "bytes" else f"{amount:,.1f} {unit}"
        amount /= 1000
    return f"{amount:,.1f} {_SIZES[-1]}"


def word(value: Any) -> str:
    """A state or status as a word in a sentence: NOT_FOUND becomes `not found`."""
    return str(value).lower().replace("_", " ")


def share(part: float, whole: float) -> str:
    """For the width of a bar's part, in hundredths."""
    return f"{100 * part / whole:.3f}" if whole else "0"


def cell(value: Any) -> str:
    """A value of a result in one line of text, the same as an export writes it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return orjson.dumps(value).decode()
    return str(value)


def brief(text: str, most: int = 60) -> str:
    """One line of a table; the whole stands where the pointer rests."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def is_figure(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def pretty(value: Any) -> Markup:
    """JSON for reading."""
    return escape(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())


FILTERS = {
    "number": number,
    "duration": duration,
    "instant": instant,
    "size": size,
    "word": word,
    "brief": brief,
    "cell": cell,
    "pretty": pretty,
}
TESTS = {"figure": is_figure}
GLOBALS = {"share": share}
