"""Names of bodies and dates, as people write them."""

from __future__ import annotations

import re
from datetime import date

_WORD_STARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def body_words(meeting: str) -> str:
    """Writes `CityCouncil` as people write it."""
    return _WORD_STARTS.sub(" ", meeting).replace("_", " ").strip()


def day_words(day: date) -> str:
    return f"{day:%a} {day.day} {day:%b %Y}"


WORDS = {"body": body_words, "day": day_words}
