"""What a file's columns seem to hold, and which of a pipeline's fields each may be."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

_NUMBER = re.compile(r"[-+]?\d{1,3}([ ,.]?\d{3})*([.,]\d+)?\Z|[-+]?\d+([.,]\d+)?\Z")
_ZEROS = re.compile(r"0\d+\Z")
_DATE = re.compile(r"(\d{4}-\d{2}-\d{2}([T ].*)?|\d{1,2}[./]\d{1,2}[./]\d{2,4})\Z")
_ADDRESS = re.compile(r"https?://\S+\Z")
_ALIKE = 0.6
#: Each column is compared with each field while a page waits for it.
_COMPARED_COLUMNS = 500
_COMPARED_CHARACTERS = 100


@dataclass(frozen=True, slots=True)
class Guess:
    column: str
    kind: str  # in words
    example: str
    field: str | None  # of the pipeline; None: it keeps its own name


def guesses(
    columns: Sequence[str], rows: Sequence[dict[str, Any]], inputs: Sequence[str]
) -> list[Guess]:
    """Each field goes to the column that is most alike, and to one only."""
    fields = _assigned(columns, inputs)
    found = []
    for column in columns:
        values = [row[column] for row in rows if row.get(column) not in (None, "")]
        example = str(values[0]) if values else ""
        found.append(Guess(column, kind_of(values), example[:80], fields.get(column)))
    return found


def kind_of(values: Sequence[Any]) -> str:
    if not values:
        return "empty"
    texts = [str(value) for value in values]
    if all(isinstance(value, bool) for value in values):
        return "yes or no"
    if any(_ZEROS.match(text) for text in texts) and all(text.isdecimal() for text in texts):
        return "text (leading zeros)"
    for pattern, name in ((_NUMBER, "number"), (_DATE, "date"), (_ADDRESS, "web address")):
        if all(pattern.match(text) for text in texts):
            return name
    if all(isinstance(value, dict | list) for value in values):
        return "nested"
    return "text"


def _assigned(columns: Sequence[str], inputs: Sequence[str]) -> dict[str, str]:
    assigned = {column: column for column in columns if column in inputs}
    pairs = sorted(
        (
            (_likeness(column, field), column, field)
            for column in columns[:_COMPARED_COLUMNS]
            for field in inputs
            if column not in assigned and field not in assigned.values()
        ),
        reverse=True,
    )
    for likeness, column, field in pairs:
        if likeness >= _ALIKE and column not in assigned and field not in assigned.values():
            assigned[column] = field
    return assigned


def _likeness(column: str, field: str) -> float:
    one, other = (
        re.sub(r"[^a-z0-9]", "", text[:_COMPARED_CHARACTERS].lower()) for text in (column, field)
    )
    if one and other and (one in other or other in one):
        return 0.9
    return SequenceMatcher(None, one, other).ratio()
