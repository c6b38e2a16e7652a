"""Reads JSON lines: one object per line. The line itself is the record, unchanged."""

from __future__ import annotations

import io
import itertools
from collections import Counter
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson

from holdfast.errors import InputError
from holdfast.json_depth import DEEPEST, is_too_deep
from holdfast.tables.delimited import open_guarded
from holdfast.tables.detect import Text
from holdfast.tables.records import BLANK_ROWS, NO_ROWS, renamed, row_too_large
from holdfast.tables.types import Detected, Progress, TableOptions

_ROWS_FOR_COLUMNS = 100
_ONE_PER_LINE = "Write one object per line, for example with: jq -c . FILE."


class JsonLinesReader:
    def __init__(self, path: Path, text: Text, options: TableOptions) -> None:
        self._path = path
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
        )

    def records(self, skip: int) -> Generator[bytes, None, None]:
        self.problems.clear()
        self.progress.row = self.progress.blank = 0
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
        """Nothing is held open between reads."""

    def _open(self) -> io.TextIOWrapper:
        return open_guarded(
            self._path, self._text.codec, "\n", self.progress, self._options.max_row_bytes
        )

    def _checked(self, record: str, number: int) -> bytes:
        value = self._parse(record, number)
        if is_too_deep(record):
            raise self._refusal(number, f"nests deeper than {DEEPEST} levels", "Flatten it.")
        if "\\u0000" in record and _holds_nul(value):
            raise self._refusal(number, "holds a NUL character (\\u0000)", "Remove it.")
        encoded = record.encode() if not self._options.names else self._renamed(value)
        if len(encoded) > self._options.max_row_bytes:
            raise row_too_large(self.progress.row, self._options.max_row_bytes)
        return encoded

    def _renamed(self, value: dict[str, Any]) -> bytes:
        names = renamed(tuple(value), self._options.names)
        return orjson.dumps(dict(zip(names, value.values(), strict=True)))

    def _parse(self, record: str, number: int) -> dict[str, Any]:
        try:
            value = orjson.loads(record)
        except orjson.JSONDecodeError as error:
            raise self._refusal(number, f"is not valid JSON: {error.msg}", _ONE_PER_LINE) from None
        if not isinstance(value, dict):
            raise self._refusal(number, "is not a JSON object", _ONE_PER_LINE)
        return value

    def _refusal(self, number: int, what: str, hint: str) -> InputError:
        return InputError(f"{self._path.name}: line {number:,} {what}.", hint)

    def _refuse_array(self) -> None:
        if self._text.sample.lstrip("\ufeff \t\r\n").startswith("["):
            raise InputError(
                f"{self._path.name} is a JSON array, not JSON Lines.",
                "Write one object per line, for example with: jq -c '.[]' FILE > FILE.jsonl.",
            )

    def _first_columns(self) -> tuple[str, ...]:
        columns: dict[str, None] = {}
        with closing(self.records(skip=0)) as records:
            for record in itertools.islice(records, _ROWS_FOR_COLUMNS):
                columns.update(dict.fromkeys(orjson.loads(record)))
        return tuple(columns)


def _holds_nul(value: Any) -> bool:
    return b"\\u0000" in orjson.dumps(value).replace(b"\\\\", b"")
