"""Reads JSON lines: one object per line. The line itself is the record, unchanged."""

from __future__ import annotations

import io
import itertools
from collections import Counter
from collections.abc import Generator
from contextlib import closing
from typing import Any

import orjson

from holdfast.columns import BAD_ROW, LINE
from holdfast.errors import InputError
from holdfast.tables.bad_rows import BAD_ROWS, bad_row
from holdfast.tables.content import Content
from holdfast.tables.delimited import open_guarded
from holdfast.tables.detect import Text
from holdfast.tables.records import BLANK_ROWS, NO_ROWS
from holdfast.tables.types import Detected, Progress, TableOptions
from holdfast_client.json_depth import DEEPEST, is_too_deep

_ROWS_FOR_COLUMNS = 100
_ONE_PER_LINE = "Write one object per line, for example with: jq -c . FILE."


class JsonLinesReader:
    def __init__(self, content: Content, text: Text, options: TableOptions) -> None:
        self._content = content
        self._text = text
        self._options = options
        self.problems: Counter[str] = Counter()
        self.progress = Progress()
        self._refuse_array()
        columns = self._first_columns()
        self.detected = Detected(
            format="jsonl",
            encoding=text.encoding,
            delimiter=None,
            sheet=None,
            columns=columns,
            notes=(*text.notes, *(() if self.progress.row else (NO_ROWS,))),
            packing=content.packing,
        )

    def records(self, skip: int, bad: int = 0) -> Generator[bytes, None, None]:
        self.problems.clear()
        self.progress.restart(bad)
        with closing(self._open()) as file:
            for number, line in enumerate(file, start=1):
                record = line.strip(" \t\r\n\ufeff")
                if not record:
                    self.progress.blank += 1
                    self.problems[BLANK_ROWS] += 1
                    continue
                self.progress.row += 1
                if self.progress.row > skip:
                    yield self._checked(record, number)

    def close(self) -> None:
        """Does nothing: nothing is held open between reads."""

    def _open(self) -> io.TextIOWrapper:
        return open_guarded(
            self._content, self._text.codec, "\n", self.progress, self._options.max_row_bytes
        )

    def _checked(self, record: str, number: int) -> bytes:
        """Returns the line, or its replacement if it cannot be read."""
        reason = reason_against(record, self._options)
        if reason is None:
            return record.encode()
        self.problems[BAD_ROWS] += 1
        return bad_row(reason, number, record, self.progress, self._options)

    def _refuse_array(self) -> None:
        if self._text.sample.lstrip("\ufeff \t\r\n").startswith("["):
            raise InputError(
                f"{self._content.path.name} is a JSON array, not JSON Lines.",
                "Write one object per line, for example with: jq -c '.[]' FILE > FILE.jsonl.",
            )

    def _first_columns(self) -> tuple[str, ...]:
        """Returns the fields of the first lines.

        If none of them can be read, the file is refused."""
        columns: dict[str, None] = {}
        bad: dict[str, object] = {}
        good = 0
        with closing(self.records(skip=0)) as records:
            for record in itertools.islice(records, _ROWS_FOR_COLUMNS):
                fields = orjson.loads(record)
                if BAD_ROW in fields:
                    bad = bad or fields
                else:
                    good += 1
                    columns.update(dict.fromkeys(fields))
        if bad and not good and not self._options.marks_bad_rows:
            where = f"{self._content.path.name}: line {bad[LINE]:,}"
            raise InputError(f"{where} {bad[BAD_ROW]}.", _ONE_PER_LINE)
        return tuple(columns)


def reason_against(record: str, options: TableOptions) -> str | None:
    """Returns why a line is not a record; None if it is one."""
    limit = options.max_row_bytes
    if len(record) > limit or (4 * len(record) > limit and (_size(record) or 0) > limit):
        return f"is larger than {limit:,} bytes"
    try:
        value = orjson.loads(record)
    except orjson.JSONDecodeError as error:
        if _size(record) is None:
            return "has bytes that are not text in the file's encoding"
        return f"is not valid JSON: {error.msg}"
    if not isinstance(value, dict):
        return "is not a JSON object"
    if is_too_deep(record):
        return f"nests deeper than {DEEPEST} levels"
    if "\\u0000" in record and _holds_nul(value):
        return "holds a NUL character (\\u0000)"
    if BAD_ROW in value and not options.marks_bad_rows:
        return f"has a field {BAD_ROW}, a reserved name"
    return None


def _size(record: str) -> int | None:
    """Returns the size in bytes; None if it contains bytes that could not be decoded."""
    try:
        return len(record.encode())
    except UnicodeEncodeError:
        return None


def _holds_nul(value: Any) -> bool:
    return b"\\u0000" in orjson.dumps(value).replace(b"\\\\", b"")
