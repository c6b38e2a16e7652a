"""Guesses what a file's columns contain, and which of a pipeline's fields each one is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.columns import Inputs, column_mapping

_NUMBER = re.compile(r"[-+]?\d{1,3}([ ,.]?\d{3})*([.,]\d+)?\Z|[-+]?\d+([.,]\d+)?\Z")
_ZEROS = re.compile(r"0\d+\Z")
_DATE = re.compile(r"(\d{4}-\d{2}-\d{2}([T ].*)?|\d{1,2}[./]\d{1,2}[./]\d{2,4})\Z")
_ADDRESS = re.compile(r"https?://\S+\Z")


@dataclass(frozen=True, slots=True)
class Guess:
    column: str
    kind: str  # in plain words
    example: str
    field: str | None  # of the pipeline; None if the column keeps its name


def guesses(columns: Sequence[str], rows: Sequence[dict[str, Any]], inputs: Inputs) -> list[Guess]:
    """Assigns each field to one column at most: of its name, of an alias, or of the same
    letters."""
    fields = {name: name for name in columns if name in inputs} | column_mapping(columns, inputs)
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
