"""What a table file is told to be, what it was found to be, and the batches it is read in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class TableOptions:
    """What a person may say about a file; None means: find it out."""

    encoding: str | None = None
    delimiter: str | None = None
    sheet: str | None = None
    names: Mapping[str, str] = field(default_factory=dict)  # what columns are to be called instead
    max_cell_bytes: int = 10_000_000
    max_row_bytes: int = 20_000_000
    max_workbook_bytes: int = 1_000_000_000  # memory for one sheet, and what its zip may unpack to


@dataclass(frozen=True, slots=True)
class Detected:
    """What the file turned out to be. The notes are sentences for people."""

    format: str  # csv, xlsx or jsonl
    encoding: str | None
    delimiter: str | None
    sheet: str | None
    columns: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(slots=True)
class TableBatch:
    """Rows `first_row` up to, not including, `next_row`, each as the JSON text of a record.

    `next_row` is the cursor to store. `end` is the file's word that nothing follows; the
    last batch may be empty.
    """

    inputs: list[str]
    first_row: int
    next_row: int
    end: bool
    bytes: int


@dataclass(slots=True)
class Progress:
    """How many rows were read so far; what the reader of raw bytes measures itself by."""

    row: int = 0
    blank: int = 0


class TableReader(Protocol):
    """One format's reader. `records` counts every row in `progress` but yields only those
    after the first `skip`, encoded; `problems` counts what was mended, in words for people."""

    detected: Detected
    problems: Counter[str]
    progress: Progress

    def records(self, skip: int) -> Generator[bytes, None, None]: ...

    def close(self) -> None: ...
