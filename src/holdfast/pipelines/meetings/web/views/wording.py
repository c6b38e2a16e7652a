"""How meetings are written for people: bodies, days, and what changed in a text."""

from __future__ import annotations

import re
from datetime import date
from difflib import SequenceMatcher

_WORD_STARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_TOKENS = re.compile(r"\s+|\S+")
_MOST_TOKENS = 20_000  # comparing takes time; a page that is read by people has fewer


def body_words(meeting: str) -> str:
    """`CityCouncil` as people write it."""
    return _WORD_STARTS.sub(" ", meeting).replace("_", " ").strip()


def day_words(day: date) -> str:
    return f"{day:%a} {day.day} {day:%b %Y}"


def differences(before: str, after: str) -> list[tuple[str, str]] | None:
    """The later text in stretches: `same`, `gone` (of the earlier) or `new`; None if too long."""
    old, new = _TOKENS.findall(before), _TOKENS.findall(after)
    if len(old) + len(new) > _MOST_TOKENS:
        return None
    found: list[tuple[str, str]] = []
    matcher = SequenceMatcher(None, old, new, autojunk=len(old) + len(new) > 4000)
    for kind, old_from, old_to, new_from, new_to in matcher.get_opcodes():
        if kind == "equal":
            found.append(("same", "".join(new[new_from:new_to])))
            continue
        if old_to > old_from:
            found.append(("gone", "".join(old[old_from:old_to])))
        if new_to > new_from:
            found.append(("new", "".join(new[new_from:new_to])))
    return found


WORDS = {"body": body_words, "day": day_words, "differences": differences}
