"""Rows that cannot be read. Each becomes an item that says where it is and why; too many of them
stop the file."""

from __future__ import annotations

import orjson

from holdfast.columns import BAD_ROW, EXCERPT, LINE
from holdfast.errors import InputError
from holdfast.tables.types import Progress, TableOptions

BAD_ROWS = "rows that cannot be read (each becomes an ERROR item)"
_EXCERPT_CHARACTERS = 200
#: Always allowed, whatever their share: the first rows of a file say little about the rest.
_FEW = 10


def bad_row(reason: str, line: int, text: str, progress: Progress, options: TableOptions) -> bytes:
    """Returns the record in place of a row; counts it, and refuses one too many."""
    progress.bad += 1
    _refuse_too_many(reason, line, progress, options)
    record = {BAD_ROW: reason, LINE: line, EXCERPT: excerpt(text)}
    return orjson.dumps(record)


def _refuse_too_many(reason: str, line: int, progress: Progress, options: TableOptions) -> None:
    bad, share = progress.bad, options.max_bad_rows_share
    if bad <= options.max_bad_rows and bad <= max(_FEW, share * progress.row):
        return
    raise InputError(
        f"{bad:,} of the first {progress.row:,} rows cannot be read; the last of them, in line"
        f" {line:,}, {reason}.",
        "Fix the file, or its encoding and delimiter, and start a new job. If such rows"
        " may be left out, raise HOLDFAST_MAX_BAD_ROWS and resume this one.",
    )


def excerpt(text: str) -> str:
    """Returns the beginning of a row, in characters that every database, terminal and page can
    show."""
    cut = text[:_EXCERPT_CHARACTERS]
    shown = "".join(map(_shown, cut))
    return shown if len(text) <= _EXCERPT_CHARACTERS else f"{shown} …"


def _shown(character: str) -> str:
    code = ord(character)
    if 0xDC00 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    if character == "\ufffd" or not character.isprintable():
        return "\\t" if character == "\t" else f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
    return character
