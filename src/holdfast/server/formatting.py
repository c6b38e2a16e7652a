"""Formats figures, times and values for pages."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import orjson
from markupsafe import Markup, escape

from holdfast.clock import duration_text

_SIZES = ("bytes", "kB", "MB", "GB", "TB")


def number(value: float | int | None) -> str:
    """Formats a number as 1,234; a fraction below ten keeps one decimal."""
    if value is None:
        return "–"
    if isinstance(value, float) and not value.is_integer() and abs(value) < 10:
        return f"{value:,.1f}"
    return f"{value:,.0f}"


def duration(seconds: float | None) -> str:
    """Formats a duration as `3 min 20 s`."""
    return "–" if seconds is None or not math.isfinite(seconds) else duration_text(seconds)


def instant(value: datetime | None) -> Markup | str:
    """Formats an instant; a script shows it in the reader's time zone, and UTC remains in the
    tooltip."""
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
    """Writes a state or status for use in a sentence: NOT_FOUND becomes `not found`."""
    return str(value).lower().replace("_", " ")


def sentence(text: str) -> str:
    """Writes an error in its own words, as a sentence."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def share(part: float, whole: float) -> str:
    """Returns the width of a part of a bar, in percent."""
    return f"{100 * part / whole:.3f}" if whole else "0"


def cell(value: Any) -> str:
    """Returns a result's value in one line, as in an export."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return orjson.dumps(value).decode()
    return str(value)


def brief(text: str, most: int = 60) -> str:
    """Cuts a text for a table; the tooltip shows all of it."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def parsed(text: str | None) -> Any:
    return None if text is None else orjson.loads(text)


def is_figure(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def pretty(value: Any) -> Markup:
    """Formats a value as indented JSON."""
    return escape(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())


FILTERS = {
    "number": number,
    "duration": duration,
    "instant": instant,
    "size": size,
    "word": word,
    "sentence": sentence,
    "brief": brief,
    "cell": cell,
    "pretty": pretty,
}
TESTS = {"figure": is_figure}
GLOBALS = {"share": share}


def item_count(count: int) -> str:
    return "1 item" if count == 1 else f"{count:,} items"
