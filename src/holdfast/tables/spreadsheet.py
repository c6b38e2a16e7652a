"""Reads XLSX workbooks: checks the archive, then has a child process read the sheet."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
import tempfile
import weakref
import zipfile
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import IO, Any

import orjson

from holdfast.errors import InputError
from holdfast.tables import spreadsheet_child
from holdfast.tables.records import NO_ROWS, RowEncoder, name_columns, renamed
from holdfast.tables.types import Detected, Progress, TableOptions

#: Sheets shrink 5 to 20 times when zipped; what shrinks more than this was made to explode.
MAX_RATIO = 150
RATIO_FREE_BYTES = 10_000_000

_SAVE_AS_CSV = "Save the sheet as CSV and give that."
_CELL = re.compile(rb'<(?:\w+:)?c\s[^>]*?\br="([A-Z]{1,3})(\d{1,7})"')


class SpreadsheetReader:
    def __init__(self, path: Path, options: TableOptions) -> None:
        check_archive(path, options.max_workbook_bytes)
        self._path = path
        self._options = options
        self._child: Child | None = Child(path, options)
        opening = self._child.receive()
        header = next(self._child.rows(), None)
        if header is None:
            self.close()
            raise InputError(
                f"The sheet {opening['sheet']!r} of {path.name} is empty.",
                "Name another one with --sheet, or fill it: its first row names the columns.",
            )
        named, notes = name_columns(header)
        columns = renamed(named, options.names)
        self.progress = Progress()
        self.problems: Counter[str] = Counter()
        self._encoder = RowEncoder(columns, options, self.progress, self.problems)
        if not self._child.has_rows():
            notes.append(NO_ROWS)
        self.detected = Detected(
            format="xlsx",
            encoding=None,
            delimiter=None,
            sheet=opening["sheet"],
            columns=columns,
            notes=(*opening["notes"], *notes),
        )

    def records(self, skip: int) -> Generator[bytes, None, None]:
        self._encoder.restart()
        child = self._waiting_child()
        try:
            yield from self._encoder.encode(self._full_rows(child), skip)
            self.problems.update(child.problems)
        finally:
            child.stop()

    def _full_rows(self, child: Child) -> Iterator[list[str]]:
        """The child leaves the empty end of a row away; in a grid nothing is missing there."""
        width = len(self.detected.columns)
        for row in child.rows():
            yield row if len(row) >= width else row + [""] * (width - len(row))

    def _waiting_child(self) -> Child:
        """The child that told the header, or a new one that is past it."""
        child, self._child = self._child, None
        if child is None:
            child = Child(self._path, self._options)
            child.receive()
            next(child.rows(), None)
        return child

    def close(self) -> None:
        if self._child is not None:
            self._child.stop()
            self._child = None


class Child:
    """The reading process, seen from here. It never outlives this object."""

    def __init__(self, path: Path, options: TableOptions) -> None:
        self._path = path
        self._options = options
        self.problems: dict[str, int] = {}
        self._frame: Iterator[list[str]] = iter(())
        self._ended = False
        request = {
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
            env={**os.environ, "RUST_BACKTRACE": "0"},
            # Ctrl-C is for this process to act on; it would kill the child first.
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
        """Whether a row follows; looks no further than the frame at hand needs."""
        row = next(self.rows(), None)
        if row is not None:
            self._frame = _prepend(row, self._frame)
        return row is not None

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
        if "memory allocation" in words or "MemoryError" in words:
            return _too_wide(self._path, self._options.max_workbook_bytes)
        last_line = words.splitlines()[-1] if words else f"it ended with code {code}"
        return InputError(
            f"{self._path.name} cannot be read: the reading process failed ({last_line}).",
            _SAVE_AS_CSV,
        )


def _stop(process: subprocess.Popen[bytes], complaints: IO[bytes]) -> None:
    process.kill()
    process.wait()
    if process.stdout:
        process.stdout.close()
    complaints.close()


def _prepend(row: list[str], rest: Iterator[list[str]]) -> Iterator[list[str]]:
    yield row
    yield from rest


def check_archive(path: Path, max_bytes: int) -> None:
    """Refuses what is no workbook, and what would unpack to far more than a sheet can be."""
    try:
        with zipfile.ZipFile(path) as archive:
            parts = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise InputError(
            f"{path.name} is a damaged zip archive: {error}.", "Fetch or save it again."
        ) from None
    if not any(_is_workbook_part(part.filename) for part in parts):
        raise InputError(
            f"{path.name} is a zip archive, not an XLSX workbook.",
            "Unpack it and give the table inside; save .xlsb or .ods workbooks as .xlsx.",
        )
    for part in parts:
        if part.file_size > max(RATIO_FREE_BYTES, part.compress_size * MAX_RATIO):
            raise _bomb(path, f"{part.filename} unpacks to {part.file_size:,} bytes")
    total = sum(part.file_size for part in parts)
    if total > max_bytes:
        raise _bomb(path, f"it unpacks to {total:,} bytes")


def _is_workbook_part(name: str) -> bool:
    return name.startswith("xl/workbook") and name.endswith(".xml")


def _bomb(path: Path, what: str) -> InputError:
    return InputError(
        f"{path.name} is refused: {what}, from a file of {path.stat().st_size:,} bytes.",
        f"If it is a real table: {_SAVE_AS_CSV}",
    )


def _too_wide(path: Path, limit: int) -> InputError:
    cell = furthest_cell(path)
    where = f"; its furthest cell is {cell}" if cell else ""
    return InputError(
        f"{path.name} needs more than {limit:,} bytes of memory to be read{where}.",
        "One stray cell far from the table is enough: delete the empty rows and columns"
        f" around the table. Or: {_SAVE_AS_CSV}",
    )


def furthest_cell(path: Path) -> str | None:
    """The corner that the cells of the workbook's sheets reach. Slow, so only for an error."""
    column, row = b"", 0
    with zipfile.ZipFile(path) as archive:
        sheets = [each for each in archive.namelist() if each.startswith("xl/worksheets/sheet")]
        for name in sheets:
            with archive.open(name) as part:
                tail = b""
                while block := part.read(1 << 20):
                    for letters, number in _CELL.findall(tail + block):
                        column = max(column, letters, key=lambda each: (len(each), each))
                        row = max(row, int(number))
                    tail = block[-200:]
    return f"{column.decode()}{row}" if row else None
