"""Guesses what a file's columns hold, and which of a pipeline's fields each one is."""

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
_SIMILAR = 0.6
#: Limits the comparisons, since a page waits for them.
_COMPARED_COLUMNS = 500
_COMPARED_CHARACTERS = 100


@dataclass(frozen=True, slots=True)
class Guess:
    column: str
    kind: str  # in plain words
    example: str
    field: str | None  # of the pipeline; None if the column keeps its name


def guesses(
    columns: Sequence[str], rows: Sequence[dict[str, Any]], inputs: Sequence[str]
) -> list[Guess]:
    """Each field is assigned to the one column that is most similar."""
    fields = _assigned(columns, inputs)
    columns_guessed = []
    for column in columns:
        values = [row[column] for row in rows if row.get(column) not in (None, "")]
        example = str(values[0]) if values else ""
        columns_guessed.append(Guess(column, kind_of(values), example[:80], fields.get(column)))
    return columns_guessed


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
            (_similarity(column, field), column, field)
            for column in columns[:_COMPARED_COLUMNS]
            for field in inputs
            if column not in assigned and field not in assigned.values()
        ),
        reverse=True,
    )
    for similarity, column, field in pairs:
        if similarity >= _SIMILAR and column not in assigned and field not in assigned.values():
            assigned[column] = field
    return assigned


def _similarity(column: str, field: str) -> float:
    left, right = (
        re.sub(r"[^a-z0-9]", "", text[:_COMPARED_CHARACTERS].lower()) for text in (column, field)
    )
    if left and right and (left in right or right in left):
        return 0.9
    return SequenceMatcher(None, left, right).ratio()
