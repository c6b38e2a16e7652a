"""Reads CSV, TSV and other delimited text."""

from __future__ import annotations

import csv
import io
import itertools
import sys
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

from holdfast.errors import InputError
from holdfast.tables.content import Content
from holdfast.tables.detect import Text, find_delimiter, marking_of, sample_rows, separator_line
from holdfast.tables.layout import SAMPLE_ROWS, Layout, find_layout, header_note, second_table_note
from holdfast.tables.records import (
    CLEAN_END,
    END_CELL,
    NO_ROWS,
    RowEncoder,
    is_blank,
    name_columns,
    numbered_columns,
    row_too_large,
    unclosed_quote,
)
from holdfast.tables.types import NO_HEADER, Detected, Progress, TableOptions


class GuardedFile(io.RawIOBase):
    """A file that refuses to be read further if no row comes out of what was read.

    Without it a quote that is never closed, or a line without an end, would take the rest of the
    file into memory."""

    def __init__(
        self, content: Content, codec: str, progress: Progress, max_row_bytes: int
    ) -> None:
        self._file = content.open()
        self._can_drop = "\n".encode(codec) == b"\n"
        self._one_line = True  # whether no line has ended since the last row
        self._dropping = False
        self._progress = progress
        self._limit = max_row_bytes
        self._rows = 0
        self._since_row = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._file.readinto(buffer) or 0
        while self._dropping and count:
            count = self._keep_from_line_end(buffer, count)
        rows = self._progress.row + self._progress.blank
        if rows != self._rows:
            self._rows = rows
            self._since_row = 0
            self._one_line = True
        self._since_row += count
        # What was read ahead may contain many rows that were not requested yet: one buffer's worth.
        if self._since_row > self._limit + 2 * len(buffer):
            self._drop_line(bytes(buffer[:count]))
        self._one_line = self._one_line and b"\n" not in bytes(buffer[:count])
        return count

    def _drop_line(self, block: bytes) -> None:
        """Drops the rest of a line that is too long, so that the next rows can be read.

        If lines ended since the last row, a quotation mark is open, and no end of the row is
        known."""
        if not self._can_drop or not self._one_line:
            raise row_too_large(self._progress.row + 1, self._limit)
        self._dropping = b"\n" not in block
        self._since_row = 0

    def _keep_from_line_end(self, buffer: Any, count: int) -> int:
        block = bytes(buffer[:count])
        end = block.find(b"\n")
        if end < 0:
            return self._file.readinto(buffer) or 0
        self._dropping = False
        rest = block[end:]
        buffer[: len(rest)] = rest
        return len(rest)

    def close(self) -> None:
        self._file.close()
        super().close()


def open_guarded(
    content: Content, codec: str, newline: str, progress: Progress, max_row_bytes: int
) -> io.TextIOWrapper:
    guarded = GuardedFile(content, codec, progress, max_row_bytes)
    buffered = io.BufferedReader(guarded, buffer_size=1 << 16)
    return io.TextIOWrapper(buffered, encoding=codec, errors=marking_of(codec), newline=newline)


class DelimitedReader:
    def __init__(self, content: Content, text: Text, options: TableOptions) -> None:
        self._content = content
        self._text = text
        self._options = options
        self._separator = separator_line(text.sample)
        self._delimiter = find_delimiter(text, options.delimiter, self._separator)
        self._layout = self._find_layout()
        self._columns: tuple[str, ...] = ()
        self._lines: Any = None
        self._ended = False
        self.progress = Progress()
        self.problems: Counter[str] = Counter()
        with closing(self._open()) as file, self._errors_named():
            rows = self._rows(file)
            notes = self._name_columns(rows)
            self._encoder = RowEncoder(
                self._columns,
                options,
                self.progress,
                self.problems,
                self._line,
                lambda: self._ended,
                text.has_nul,
            )
            if next(self._encoder.encode(rows, skip=0), None) is None:
                notes.append(NO_ROWS)
        self.detected = self._describe(notes)

    def _find_layout(self) -> Layout:
        rows = sample_rows(self._text, self._delimiter)
        if self._separator:
            rows = rows[1:]
        return find_layout(rows[:SAMPLE_ROWS], self._options.header_row)

    def _name_columns(self, rows: Iterator[list[str]]) -> list[str | None]:
        header = self._header(rows)
        if header is None:
            self._columns = numbered_columns(self._layout.width)
            return [header_note(self._layout, self._columns)]
        self._columns, notes = name_columns(header)
        second = second_table_note(self._layout)
        return [header_note(self._layout, self._columns), *notes, second]

    def _describe(self, notes: list[str | None]) -> Detected:
        if self._separator:
            line = f"The first line, sep={self._separator},"
            notes = [f"{line} names the delimiter; it is not a row.", *notes]
        return Detected(
            format="csv",
            encoding=self._text.encoding,
            delimiter=self._delimiter,
            sheet=None,
            columns=self._columns,
            notes=(*self._text.notes, *filter(None, notes)),
            packing=self._content.packing,
            header_row=self._layout.header_row,
            header_reason=self._layout.reason,
        )

    def records(self, skip: int, bad: int = 0) -> Generator[bytes, None, None]:
        self._encoder.restart(bad)
        with closing(self._open()) as file, self._errors_named():
            rows = self._rows(file)
            self._header(rows)
            yield from self._encoder.encode(rows, skip)

    def close(self) -> None:
        """Does nothing: nothing is held open between reads."""

    def _open(self) -> io.TextIOWrapper:
        return open_guarded(
            self._content, self._text.codec, "", self.progress, self._options.max_row_bytes
        )

    def _rows(self, file: io.TextIOWrapper) -> Iterator[list[str]]:
        self._ended = False
        if self._separator:
            file.readline()
        # The limit is the process's; our own limit, per file, is in the guard and the encoder.
        csv.field_size_limit(sys.maxsize)
        lines = itertools.chain(file, self._end_line())
        self._lines = csv.reader(lines, delimiter=self._delimiter)
        rows: Iterator[list[str]] = self._lines
        return rows

    def _line(self) -> int:
        number: int = self._lines.line_num
        return number + 1 if self._separator else number

    def _end_line(self) -> Iterator[str]:
        """Yields a last line that shows whether the file ended inside a quoted cell.

        Its quote closes such a cell, and is an ordinary character otherwise. Either way the row has
        more cells than there are columns, so that plain rows need no test for it."""
        self._ended = True
        yield CLEAN_END + (self._delimiter + END_CELL) * (len(self._columns) + 1)

    def _header(self, rows: Iterator[list[str]]) -> list[str] | None:
        """Moves past the header, or leaves all rows if there is none."""
        if self._layout.header_row == NO_HEADER:
            return None
        for number, row in enumerate(rows, start=1):
            if self._ended and row and row[-1] == END_CELL:
                raise self._without_header(row)
            self.progress.blank += 1
            if number >= self._layout.header_row and not is_blank(row):
                self._layout = replace(self._layout, header_row=number)
                return row
        raise AssertionError("the end line comes after every row")

    def _without_header(self, row: list[str]) -> InputError:
        if row[0] != CLEAN_END:
            return unclosed_quote("The header")
        name = self._content.path.name
        if self._options.header_row:
            return InputError(
                f"{name} has no row {self._options.header_row:,} with names.",
                "Give the number of the row that names the columns; the first is 1.",
            )
        return InputError(
            f"{name} contains only blank lines.", "The first line must name the columns."
        )

    @contextmanager
    def _errors_named(self) -> Iterator[None]:
        try:
            yield
        except (csv.Error, UnicodeDecodeError) as error:
            name, row = self._content.path.name, self.progress.row + 1
            raise InputError(
                f"{name}: row {row:,} cannot be read: {error}.",
                "The file may have changed while it was being read.",
            ) from error
