"""Writes rows to CSV, XLSX, JSON and JSON-lines files, without ever leaving half a file.

with open_writer(Path("prices.xlsx"), "xlsx", ["title", "price"]) as writer:
    writer.write([{"title": "Chair", "price": 12.5}])
"""

from __future__ import annotations

import csv
import math
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import date, time
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import orjson
import xlsxwriter
from xlsxwriter.exceptions import XlsxFileError

from holdfast.errors import UserError

#: Prefix of the folders in which files are written until they are complete.
UNFINISHED = ".holdfast-export-"
FORMATS = ("csv", "xlsx", "jsonl", "json")
_SUFFIXES = {
    ".csv": "csv",
    ".xlsx": "xlsx",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
}

#: What a spreadsheet takes for the beginning of a formula, in ASCII and in full-width forms. At the
#: beginning of the file, a byte order mark is removed before the cell is read.
FORMULA_STARTS = frozenset("=+-@\t\r\n＝＋－＠\ufeff")
_PLAIN_NUMBER = re.compile(r"[+-]?\d+(?:[.,]\d+)*(?:[eE][+-]?\d+)?\Z", re.ASCII)
#: Where a cell begins for a program that separates cells by semicolons or tabs. It does not see the
#: quotation marks of a cell that follows a comma, so quoting would not help; line breaks count too.
#: There is one expression for each: with a plain character first, they are found many times as
#: fast.
_SEMICOLON_CELL = re.compile(r';"*[=+\-@＝＋－＠]')
_TAB_CELL = re.compile(r'\t"*[=+\-@＝＋－＠]')
_RETURN_CELL = re.compile(r'\r"*[=+\-@＝＋－＠]')
_NEWLINE_CELL = re.compile(r'\n"*[=+\-@＝＋－＠]')
_FORMULA_WITHIN = re.compile(
    r'([;\t\r\n]"*)(?=[=+\-@＝＋－＠])'
    r"(?![+-]?\d+(?:[.,]\d+)*(?:[eE][+-]?\d+)?[;\t\r\n])",
    re.ASCII,
)

ROWS_PER_SHEET = 1_048_575  # and one for the header
CELL_CHARACTERS = 32_767
CUT_MARK = " … [cut]"
EXACT_INTEGERS = 10**15


class TableWriter(Protocol):
    """Takes rows in order. `notes` says what the format could not represent, in sentences."""

    @property
    def notes(self) -> list[str]: ...

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None: ...

    def close(self) -> None: ...

    def abandon(self) -> None:
        """Closes what is open; the file is no longer wanted."""


def format_of(path: Path, explicit: str | None) -> str:
    """Returns the requested format, or the one that the file's name ends in."""
    if explicit is not None:
        if explicit not in FORMATS:
            raise UserError(
                f"There is no export format {explicit!r}.", f"Choose one of: {', '.join(FORMATS)}."
            )
        return explicit
    format = _SUFFIXES.get(path.suffix.lower())
    if format is None:
        raise UserError(
            f"The name {path.name} does not say which format to write.",
            f"Use a name that ends in {', '.join(_SUFFIXES)}.",
        )
    return format


@contextmanager
def open_writer(path: Path, format: str, columns: Sequence[str]) -> Iterator[TableWriter]:
    """Provides a writer whose file takes its place under `path` only when everything was
    written."""
    make_writer = _WRITERS[format_of(path, format)]
    with whole_file(path) as unfinished:
        with _failures_named(path.name):
            writer = make_writer(unfinished, columns)
        try:
            yield writer
            writer.close()
        except BaseException:
            writer.abandon()
            raise


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Provides a path for a file that takes its place under `path` only when it is complete."""
    if path.is_dir():
        raise UserError(f"{path} is a folder.", "Give the name of a file inside it.")
    with _failures_named(path.name):
        folder = tempfile.TemporaryDirectory(prefix=UNFINISHED, dir=path.parent)
    with folder:
        unfinished = Path(folder.name) / path.name
        yield unfinished
        with _failures_named(path.name):
            _to_disk(unfinished)
            unfinished.replace(path)


@contextmanager
def _failures_named(name: str) -> Iterator[None]:
    try:
        yield
    except (OSError, XlsxFileError) as error:
        cause = error.args[0] if isinstance(error, XlsxFileError) and error.args else error
        reason = getattr(cause, "strerror", None) or cause
        raise UserError(
            f"{name} cannot be written: {reason}.",
            "Check the folder, its permissions and the free space; no file was left behind.",
        ) from error


def _to_disk(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


class CsvWriter:
    """Writes RFC 4180 in UTF-8 without a byte order mark."""

    notes: list[str]

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        self.notes = []
        self._name = path.name
        self._columns = tuple(columns)
        # A lone surrogate cannot be encoded; it must not fail the whole export.
        self._file = path.open("w", encoding="utf-8", errors="backslashreplace", newline="")
        self._file.write(_csv_text([[csv_cell(column) for column in columns]]))

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        columns, starts = self._columns, FORMULA_STARTS
        text = _csv_text(
            [
                value if type(value) is str and value[:1] not in starts else csv_cell(value)
                for value in map(row.get, columns)
            ]
            for row in rows
        )
        if _has_cell_within(text, len(rows)):
            text = _csv_text([csv_cell(row.get(column)) for column in columns] for row in rows)
        with _failures_named(self._name):
            self._file.write(text)

    def close(self) -> None:
        with _failures_named(self._name):
            self._file.close()

    def abandon(self) -> None:
        with suppress(OSError):
            self._file.close()


class _Lines(list[str]):
    """Receives the lines of the csv module; faster than a file in memory."""

    write = list.append


def _csv_text(rows: Iterable[Sequence[Any]]) -> str:
    lines = _Lines()
    # Cells that contain either one are only quoted if both characters are in the line's end.
    csv.writer(lines, lineterminator="\r\n").writerows(rows)
    return "".join(lines)


def _has_cell_within(text: str, lines: int) -> bool:
    """Whether a cell of these lines may contain a formula.

    All lines are searched at once: few have one, and looking into each cell takes longer."""
    return bool(
        _SEMICOLON_CELL.search(text)
        or _TAB_CELL.search(text)
        or (text.count("\r") > lines and _RETURN_CELL.search(text))
        or (text.count("\n") > lines and _NEWLINE_CELL.search(text))
    )


def csv_cell(value: Any) -> str | int | float:
    """Returns the value as a CSV cell in which no spreadsheet finds a formula, whether it separates
    cells by commas, semicolons or tabs."""
    if type(value) is int or type(value) is float:
        return value
    text = _FORMULA_WITHIN.sub(r"\1'", plain_text(value))
    if text[:1] in FORMULA_STARTS and not _PLAIN_NUMBER.match(text):
        return "'" + text
    return text


def plain_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, dict | list | tuple):
        return orjson.dumps(value, default=str).decode()
    return str(value)


class XlsxWriter:
    """Writes XLSX with one row in memory at a time, and a new sheet when one is full."""

    def __init__(
        self, path: Path, columns: Sequence[str], rows_per_sheet: int = ROWS_PER_SHEET
    ) -> None:
        self._name = path.name
        self._columns = tuple(columns)
        self._rows_per_sheet = rows_per_sheet
        self._cut_cells = 0
        self._workbook = xlsxwriter.Workbook(
            str(path),
            {
                "constant_memory": True,
                "tmpdir": str(path.parent),
                "use_zip64": True,
                "strings_to_urls": False,
                "strings_to_formulas": False,
                "strings_to_numbers": False,
            },
        )
        self._sheets = 0
        self._add_sheet()

    @property
    def notes(self) -> list[str]:
        notes = []
        if self._cut_cells:
            notes.append(
                f"{self._cut_cells:,} cells were longer than {CELL_CHARACTERS:,} characters, the"
                f" most that XLSX allows; they were cut and end in {CUT_MARK!r}."
            )
        if self._sheets > 1:
            notes.append(f"The rows fill {self._sheets} sheets.")
        return notes

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        with _failures_named(self._name):
            for row in rows:
                if self._row > self._rows_per_sheet:
                    self._add_sheet()
                self._write_row([row.get(column) for column in self._columns])

    def _add_sheet(self) -> None:
        self._sheets += 1
        name = "Results" if self._sheets == 1 else f"Results {self._sheets}"
        self._sheet = self._workbook.add_worksheet(name)
        self._row = 0
        self._write_row(self._columns)

    def _write_row(self, values: Sequence[Any]) -> None:
        for column, value in enumerate(values):
            if value is None or value == "":
                continue
            if isinstance(value, bool):
                self._sheet.write_boolean(self._row, column, value)
            elif _is_exact_number(value):
                number = _AllDigits(value) if type(value) is float else value
                self._sheet.write_number(self._row, column, number)
            else:
                self._sheet.write_string(self._row, column, self._fitting(plain_text(value)))
        self._row += 1

    def _fitting(self, text: str) -> str:
        if len(text) > CELL_CHARACTERS // 2 and _utf16_length(text) > CELL_CHARACTERS:
            self._cut_cells += 1
            room = (CELL_CHARACTERS - len(CUT_MARK)) * 2
            start = text.encode("utf-16-le", "replace")[:room].decode("utf-16-le", "ignore")
            text = start + CUT_MARK
        if text.startswith("<r>") and text.endswith("</r>"):
            # The library would take such a string for markup and write it unescaped.
            text += " "
        return text.encode("utf-8", "replace").decode() if not text.isascii() else text

    def close(self) -> None:
        with _failures_named(self._name):
            self._workbook.close()

    def abandon(self) -> None:
        for sheet in self._workbook.worksheets():
            with suppress(OSError):
                sheet._opt_close()


class _AllDigits(float):
    """Formats numbers with up to 17 digits; the library uses 16, and some need 17 to be read as the
    same."""

    def __format__(self, _: str) -> str:
        return float.__repr__(self)


def _is_exact_number(value: Any) -> bool:
    if type(value) is int:
        return -EXACT_INTEGERS < value < EXACT_INTEGERS
    return type(value) is float and math.isfinite(value)


def _utf16_length(text: str) -> int:
    return len(text.encode("utf-16-le", "replace")) // 2


class JsonLinesWriter:
    """Writes one object per line, with the values as they are; or, with `array`, one JSON array."""

    notes: list[str]

    def __init__(self, path: Path, columns: Sequence[str], *, array: bool = False) -> None:
        self.notes = []
        self._name = path.name
        self._columns = tuple(columns)
        self._array = array
        self._before = b"[\n" if array else b""
        self._file = path.open("wb")

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        with _failures_named(self._name):
            self._file.writelines(map(self._line, rows))

    def _line(self, row: Mapping[str, Any]) -> bytes:
        values = {column: row.get(column) for column in self._columns}
        if not self._array:
            return orjson.dumps(values, default=str, option=orjson.OPT_APPEND_NEWLINE)
        line = self._before + orjson.dumps(values, default=str)
        self._before = b",\n"
        return line

    def close(self) -> None:
        with _failures_named(self._name):
            if self._array:
                self._file.write(b"[]\n" if self._before.startswith(b"[") else b"\n]\n")
            self._file.close()

    def abandon(self) -> None:
        with suppress(OSError):
            self._file.close()


_WRITERS: dict[str, Callable[[Path, Sequence[str]], TableWriter]] = {
    "csv": CsvWriter,
    "xlsx": XlsxWriter,
    "jsonl": JsonLinesWriter,
    "json": partial(JsonLinesWriter, array=True),
}
