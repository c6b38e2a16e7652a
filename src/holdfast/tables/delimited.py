"""Reads CSV, TSV and other delimited text."""

from __future__ import annotations

import csv
import io
import itertools
import sys
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from holdfast.errors import InputError
from holdfast.tables.detect import Text, find_delimiter, separator_line
from holdfast.tables.records import (
    CLEAN_END,
    END_CELL,
    NO_ROWS,
    RowEncoder,
    is_blank,
    name_columns,
    renamed,
    row_too_large,
    unclosed_quote,
)
from holdfast.tables.types import Detected, Progress, TableOptions


class GuardedFile(io.RawIOBase):
    """A file that refuses to be read on when no row comes out of what was read.

    Without it a quote that is never closed, or a line without an end, would take the rest
    of the file into memory.
    """

    def __init__(self, path: Path, progress: Progress, max_row_bytes: int) -> None:
        self._file = path.open("rb", buffering=0)
        self._progress = progress
        self._limit = max_row_bytes
        self._rows = 0
        self._since_row = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._file.readinto(buffer) or 0
        rows = self._progress.row + self._progress.blank
        if rows != self._rows:
            self._rows = rows
            self._since_row = 0
        self._since_row += count
        # What was read ahead may hold many rows that nobody asked for yet: one buffer's worth.
        if self._since_row > self._limit + 2 * len(buffer):
            raise row_too_large(self._progress.row + 1, self._limit)
        return count

    def close(self) -> None:
        self._file.close()
        super().close()


def open_guarded(
    path: Path, codec: str, newline: str, progress: Progress, max_row_bytes: int
) -> io.TextIOWrapper:
    guarded = GuardedFile(path, progress, max_row_bytes)
    buffered = io.BufferedReader(guarded, buffer_size=1 << 16)
    return io.TextIOWrapper(buffered, encoding=codec, newline=newline)


class DelimitedReader:
    def __init__(self, path: Path, text: Text, options: TableOptions) -> None:
        self._path = path
        self._text = text
        self._options = options
        self._separator = separator_line(text.sample)
        self._delimiter = find_delimiter(text, options.delimiter, self._separator)
        self._columns: tuple[str, ...] = ()
        self.progress = Progress()
        self.problems: Counter[str] = Counter()
        with closing(self._open()) as file, self._errors_named():
            rows = self._rows(file)
            named, notes = name_columns(self._header(rows))
            self._columns = renamed(named, options.names)
            self._encoder = RowEncoder(self._columns, options, self.progress, self.problems)
            if next(self._encoder.encode(rows, skip=0), None) is None:
                notes.append(NO_ROWS)
        self.detected = self._describe(notes)

    def _describe(self, notes: list[str]) -> Detected:
        if self._separator:
            said = f"The first line, sep={self._separator}, names the delimiter; it is no row."
            notes = [said, *notes]
        return Detected(
            format="csv",
            encoding=self._text.encoding,
            delimiter=self._delimiter,
            sheet=None,
            columns=self._columns,
            notes=(*self._text.notes, *notes),
        )

    def records(self, skip: int) -> Generator[bytes, None, None]:
        self._encoder.restart()
        with closing(self._open()) as file, self._errors_named():
            rows = self._rows(file)
            self._header(rows)
            yield from self._encoder.encode(rows, skip)

    def close(self) -> None:
        """Nothing is held open between reads."""

    def _open(self) -> io.TextIOWrapper:
        return open_guarded(
            self._path, self._text.codec, "", self.progress, self._options.max_row_bytes
        )

    def _rows(self, file: io.TextIOWrapper) -> Iterator[list[str]]:
        if self._separator:
            file.readline()
        # The limit is the process's; our own, per file, is the guard's and the encoder's.
        csv.field_size_limit(sys.maxsize)
        return csv.reader(itertools.chain(file, self._end_line()), delimiter=self._delimiter)

    def _end_line(self) -> Iterator[str]:
        """A last line that shows whether the file ended inside a quoted cell.

        Its quote closes such a cell, and is an ordinary character otherwise. Either way the
        row has more cells than there are columns, so that plain rows need no test for it.
        """
        yield CLEAN_END + (self._delimiter + END_CELL) * (len(self._columns) + 1)

    def _header(self, rows: Iterator[list[str]]) -> list[str]:
        for row in rows:
            if is_blank(row):
                continue
            if row[-1] != END_CELL:
                return row
            if row[0] != CLEAN_END:
                raise unclosed_quote("The header")
        raise InputError(
            f"{self._path.name} contains only blank lines.", "The first line must name the columns."
        )

    @contextmanager
    def _errors_named(self) -> Iterator[None]:
        try:
            yield
        except (csv.Error, UnicodeDecodeError) as error:
            raise InputError(
                f"{self._path.name}: row {self.progress.row + 1:,} cannot be read: {error}.",
                "The file may have changed while it was being read.",
            ) from error
