"""How a table file is to be read, what was detected in it, and the batches it is read in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from holdfast.settings import setting

NO_HEADER = 0


@dataclass(frozen=True, slots=True)
class TableOptions:
    """What a person may say about a file (None: detect it), and the limits."""

    encoding: str | None = None
    delimiter: str | None = None
    sheet: str | None = None
    header_row: int | None = None  # counted from 1; NO_HEADER: the first row is data
    max_cell_bytes: int = 10_000_000
    max_row_bytes: int = 20_000_000
    max_workbook_bytes: int = setting(
        1_000_000_000,
        "Maximum memory for reading one XLSX workbook, and its maximum unpacked size. Up to four"
        " are read at once.",
        200_000_000,
        64 * 1024**3,
    )
    max_unpacked_bytes: int = 100_000_000_000
    max_bad_rows: int = setting(
        1_000,
        "Maximum number of rows of one file that cannot be read. Each becomes an ERROR item; one"
        " more stops the file.",
        0,
        10**12,
    )
    max_bad_rows_share: float = 0.1
    marks_bad_rows: bool = False  # a list that we wrote: its rows may say that they are bad


class HeaderReason(StrEnum):
    """Why a row is, or is not, taken as the header."""

    GIVEN = "given"
    FOUND = "found"  # the rows below show it
    ASSUMED = "assumed"  # no evidence for or against it
    KEYS = "keys"  # each JSON line names its own fields


@dataclass(frozen=True, slots=True)
class Detected:
    """What the file turned out to be. The notes are sentences for people."""

    format: str  # csv, xlsx or jsonl
    encoding: str | None
    delimiter: str | None
    sheet: str | None
    columns: tuple[str, ...]
    notes: tuple[str, ...]
    packing: str | None = None  # gzip, zstd or zip
    header_row: int | None = None  # counted from 1; NO_HEADER: none; None: has no rows of cells
    header_reason: str = HeaderReason.KEYS


@dataclass(slots=True)
class TableBatch:
    """Rows `first_row` up to, not including, `next_row`, each as the JSON text of a record.

    `next_row` is the cursor to store, with `bad_rows`, the unreadable ones up to there. `end` says
    that nothing follows; the last batch may be empty."""

    inputs: list[str]
    first_row: int
    next_row: int
    end: bool
    bytes: int
    bad_rows: int = 0


@dataclass(slots=True)
class Progress:
    """How many rows were read so far; the reader of raw bytes measures itself by it."""

    row: int = 0
    blank: int = 0
    bad: int = 0

    def restart(self, bad: int = 0) -> None:
        self.row = self.blank = 0
        self.bad = bad


class TableReader(Protocol):
    """One format's reader. `records` counts every row in `progress` but yields only those
    after the first `skip`, encoded; `bad` of those were unreadable. `problems` counts what was
    fixed, in words for people."""

    detected: Detected
    problems: Counter[str]
    progress: Progress

    def records(self, skip: int, bad: int = 0) -> Generator[bytes, None, None]: ...

    def close(self) -> None: ...
