"""Describes how a job will read its file: what is stored with the job, and shown before it starts
and when it ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from shlex import quote
from typing import Any

from holdfast.columns import (
    Inputs,
    column_mapping,
    fields_without_column,
    require_columns,
    require_fields,
)
from holdfast.tables.types import NO_HEADER, Detected, HeaderReason

_PACKINGS = {"gzip": "gzip", "zstd": "zstd", "zip": "zip"}
_MOST_MAPPED = 20


def reading_plan(
    detected: Detected, inputs: Inputs, given: Mapping[str, Any], chosen: Mapping[str, str]
) -> dict[str, Any]:
    """Returns what was given about the file, what was detected if that could change with the
    program, the columns' fields, and all of it in sentences."""
    if detected.format != "jsonl":  # in JSON Lines, later lines may have other fields
        require_columns(detected.columns, chosen)
    require_fields(inputs, chosen)
    plan = {name: value for name, value in given.items() if value is not None}
    if detected.header_row is not None:
        plan["header_row"] = detected.header_row
    names = column_mapping(detected.columns, inputs, chosen)
    if names:
        plan["names"] = names
    return {
        **plan,
        "read_as": [*read_as(detected, names), *_missing_words(detected, inputs, names)],
    }


def _missing_words(detected: Detected, inputs: Inputs, names: Mapping[str, str]) -> Sequence[str]:
    missing = fields_without_column(detected.columns, inputs, names)
    every = len(missing) == len(inputs)
    if not missing or (detected.format == "jsonl" and not every):
        return ()
    unread = (column for column in detected.columns if names.get(column, column) not in inputs)
    example = next(unread, "COLUMN")
    any_of = "any of the fields " if every else ""
    return [
        f"No column is read as {any_of}{', '.join(missing)}. To choose one: --column"
        f" {quote(f'{example}={missing[0]}')}, or `columns` in the API."
    ]


def read_as(detected: Detected, names: Mapping[str, str]) -> list[str]:
    """Describes what was detected and assumed, in sentences for people."""
    parts = [
        detected.format.upper(),
        detected.packing and f"packed with {_PACKINGS[detected.packing]}",
        detected.encoding,
        detected.sheet and f"sheet {detected.sheet!r}",
        detected.delimiter and f"delimiter {detected.delimiter!r}",
        header_words(detected),
        "1 column" if len(detected.columns) == 1 else f"{len(detected.columns)} columns",
    ]
    return [", ".join(filter(None, parts)), *detected.notes, *_mapping_words(names)]


def header_words(detected: Detected) -> str | None:
    if detected.header_row is None:
        return None
    given = " (as given)" if detected.header_reason == HeaderReason.GIVEN else ""
    if detected.header_row == NO_HEADER:
        return f"no header{given}"
    assumed = " (assumed)" if detected.header_reason == HeaderReason.ASSUMED else given
    return f"header in row {detected.header_row}{assumed}"


def _mapping_words(names: Mapping[str, str]) -> Sequence[str]:
    words = [
        f"The column {column!r} is read as {field!r}."
        for column, field in list(names.items())[:_MOST_MAPPED]
    ]
    more = len(names) - _MOST_MAPPED
    return [*words, f"{more:,} more columns are read under another name."] if more > 0 else words
