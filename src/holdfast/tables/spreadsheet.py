"""Reads XLSX workbooks: a child process opens the file, and this one receives its rows."""

from __future__ import annotations

import itertools
import signal
import struct
import subprocess
import sys
import tempfile
import weakref
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import IO, Any

import orjson

from holdfast.child_environment import child_environment
from holdfast.errors import InputError
from holdfast.tables import spreadsheet_child
from holdfast.tables.layout import SAMPLE_ROWS, Layout, find_layout, header_note, second_table_note
from holdfast.tables.records import NO_ROWS, RowEncoder, name_columns, numbered_columns
from holdfast.tables.spreadsheet_child import SAVE_AS_CSV
from holdfast.tables.types import NO_HEADER, Detected, Progress, TableOptions

_DETAIL_CHARACTERS = 300


class SpreadsheetReader:
    def __init__(self, path: Path, options: TableOptions) -> None:
        self._path = path
        self._options = options
        self._columns: tuple[str, ...] = ()
        self._child: Child | None = Child(path, options)
        opening = self._child.receive()
        self._layout, notes = self._lay_out(opening["sheet"])
        self.progress = Progress()
        self.problems: Counter[str] = Counter()
        header_row, progress = self._layout.header_row, self.progress
        self._encoder = RowEncoder(
            self._columns,
            options,
            progress,
            self.problems,
            # Not a method: the child must end with this object, not with the garbage collection of
            # a cycle.
            lambda: progress.row + header_row,
            has_nul=True,  # unknown until all rows are read
        )
        if not self._child.has_rows():
            notes.append(NO_ROWS)
        self.detected = Detected(
            format="xlsx",
            encoding=None,
            delimiter=None,
            sheet=opening["sheet"],
            columns=self._columns,
            notes=(*opening["notes"], *filter(None, notes)),
            header_row=self._layout.header_row,
            header_reason=self._layout.reason,
        )

    def _lay_out(self, sheet: str) -> tuple[Layout, list[str]]:
        """Finds the header among the first rows and moves the child past it."""
        assert self._child is not None
        first = self._child.first_rows(SAMPLE_ROWS)
        if not first:
            self.close()
            raise InputError(
                f"The sheet {sheet!r} of {self._path.name} is empty.",
                "Choose another one with --sheet, or fill it; its first row must name the columns.",
            )
        width = max(map(len, first))
        layout = find_layout(
            [row + [""] * (width - len(row)) for row in first], self._options.header_row
        )
        if layout.header_row == NO_HEADER:
            self._columns = numbered_columns(width)
            return layout, [header_note(layout, self._columns) or ""]
        header = self._child.skip_to(layout.header_row)
        if header is None:
            self.close()
            raise InputError(
                f"The sheet {sheet!r} of {self._path.name} has no row {layout.header_row:,} with"
                " content.",
                "Blank rows do not count.",
            )
        self._columns, notes = name_columns(header)
        second = second_table_note(layout) or ""
        return layout, [header_note(layout, self._columns) or "", *notes, second]

    def records(self, skip: int, bad: int = 0) -> Generator[bytes, None, None]:
        self._encoder.restart(bad)
        child = self._waiting_child()
        try:
            yield from self._encoder.encode(self._full_rows(child), skip)
            self.problems.update(child.problems)
        finally:
            child.stop()

    def _full_rows(self, child: Child) -> Iterator[list[str]]:
        """Fills up rows: the child leaves out the empty end of a row; in a grid nothing is missing
        there."""
        width = len(self.detected.columns)
        for row in child.rows():
            yield row if len(row) >= width else row + [""] * (width - len(row))

    def _waiting_child(self) -> Child:
        """Returns the child that read the header, or a new one that is past it."""
        child, self._child = self._child, None
        if child is None:
            child = Child(self._path, self._options)
            child.receive()
            child.skip_to(self._layout.header_row)
        return child

    def close(self) -> None:
        if self._child is not None:
            self._child.stop()
            self._child = None


class Child:
    """The reading process, seen from here. It never outlives this object."""

    def __init__(self, path: Path, options: TableOptions, task: str = "rows") -> None:
        self._path = path
        self._options = options
        self.problems: dict[str, int] = {}
        self._frame: Iterator[list[str]] = iter(())
        self._ended = False
        request = {
            "task": task,
            "path": str(path),
            "sheet": options.sheet,
            "memory_bytes": options.max_workbook_bytes,
            "max_row_bytes": options.max_row_bytes,
        }
        script = str(Path(spreadsheet_child.__file__))
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 - closed by stop
        self._process = subprocess.Popen(
            # -P: the script's own folder must not hide modules of the standard library.
            [sys.executable, "-P", script, orjson.dumps(request).decode()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            env=child_environment(RUST_BACKTRACE="0"),
            # Ctrl-C is for this process to handle; it would kill the child first.
            start_new_session=True,
        )
        self._pipe: IO[bytes] = self._process.stdout  # type: ignore[assignment]
        self.stop = weakref.finalize(self, _stop, self._process, self._complaints)

    def receive(self) -> dict[str, Any]:
        prefix = self._pipe.read(4)
        size = struct.unpack(">I", prefix)[0] if len(prefix) == 4 else -1
        body = self._pipe.read(size) if size >= 0 else b""
        if size < 0 or len(body) < size:
            raise self._death()
        message: dict[str, Any] = orjson.loads(body)
        if "error" in message:
            self.stop()
            raise InputError(f"{self._path.name}: {message['error']}", message["hint"])
        return message

    def rows(self) -> Iterator[list[str]]:
        while True:
            yield from self._frame
            if self._ended or not self._next_frame():
                return

    def has_rows(self) -> bool:
        """Whether a row follows; reads no further than needed."""
        return bool(self.first_rows(1))

    def first_rows(self, count: int) -> list[list[str]]:
        """Returns the next rows without consuming them."""
        rows = list(itertools.islice(self.rows(), count))
        self._frame = itertools.chain(rows, self._frame)
        return rows

    def skip_to(self, number: int) -> list[str] | None:
        """Moves past the row of this number among those left and returns it; 0 leaves all."""
        row = None
        for _ in range(number):
            row = next(self.rows(), None)
        return row

    def _next_frame(self) -> bool:
        message = self.receive()
        self.problems = message.get("problems", {})
        self._ended = "rows" not in message
        self._frame = iter(message.get("rows", ()))
        return not self._ended

    def _death(self) -> InputError:
        code = self._process.wait()
        self._complaints.seek(0)
        words = self._complaints.read(100_000).decode(errors="replace").strip()
        self.stop()
        if code == -signal.SIGXCPU:
            return InputError(
                f"{self._path.name} takes too long to read for its size.",
                f"If it is a real table: {SAVE_AS_CSV}",
            )
        if "memory allocation" in words or "MemoryError" in words:
            return _too_wide(self._path, self._options)
        last_line = words.splitlines()[-1] if words else f"it ended with code {code}"
        return InputError(
            f"{self._path.name} cannot be read: the reading process failed"
            f" ({last_line[:_DETAIL_CHARACTERS]}).",
            SAVE_AS_CSV,
        )


def _stop(process: subprocess.Popen[bytes], complaints: IO[bytes]) -> None:
    process.kill()
    process.wait()
    if process.stdout:
        process.stdout.close()
    complaints.close()


def _too_wide(path: Path, options: TableOptions) -> InputError:
    cell = _furthest_cell(path, options)
    where = f"; its furthest cell is {cell}" if cell else ""
    limit = options.max_workbook_bytes
    return InputError(
        f"{path.name} needs more than {limit:,} bytes of memory to be read{where}.",
        "One stray cell far from the table is enough: delete the empty rows and columns"
        f" around the table. Or: {SAVE_AS_CSV}",
    )


def _furthest_cell(path: Path, options: TableOptions) -> str | None:
    """Returns the furthest cell; None if a second child cannot find it in time either."""
    child = Child(path, options, task="furthest")
    try:
        cell: str | None = child.receive()["furthest"]
    except InputError:
        return None
    finally:
        child.stop()
    return cell
