"""Reads table files as batches of records: CSV and similar formats, XLSX, JSON lines.

file = TableFile(Path("products.csv"))
for batch in file.pages(cursor=0, page_rows=lambda: 1000, max_page_bytes=4_000_000):
    ...
"""

from __future__ import annotations

import csv
import hashlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import fields, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from holdfast.errors import InputError
from holdfast.tables.content import content_of
from holdfast.tables.delimited import DelimitedReader
from holdfast.tables.detect import (
    BLOCK_BYTES,
    find_text,
    is_zip,
    looks_like_json_lines,
    read_head,
    refuse_foreign,
    refuse_markup,
    unpacked_head,
)
from holdfast.tables.jsonlines import JsonLinesReader
from holdfast.tables.spreadsheet import SpreadsheetReader
from holdfast.tables.types import Detected, TableBatch, TableOptions, TableReader

__all__ = ["Detected", "TableBatch", "TableFile", "TableOptions", "content_key", "open_table"]

_DEFAULTS = TableOptions()
_OPTION_NAMES = frozenset(field.name for field in fields(TableOptions))
_FORMAT_NAMES = {"csv": "delimited text", "xlsx": "an XLSX workbook", "jsonl": "JSON lines"}
_FORMAT_OF_SUFFIX = {
    **dict.fromkeys((".csv", ".tsv"), "csv"),
    **dict.fromkeys((".xlsx", ".xlsm"), "xlsx"),
    **dict.fromkeys((".jsonl", ".ndjson"), "jsonl"),
}


def content_key(path: Path) -> str:
    """Returns the SHA-256 of the file's content: what finds its job again, whatever its name."""
    read_head(path)
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        while block := file.read(BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


class TableFile:
    """A table file, opened: detected, checked, ready to be read from any row.

    Opening raises InputError for whatever can be known before the first row. The code is plain and
    blocking: run it in a thread, one iteration at a time."""

    def __init__(self, path: Path, options: TableOptions = _DEFAULTS) -> None:
        self.path = path
        with _failures_named(path):
            self._reader = _open_reader(path, options)
        self.detected = _with_name_note(path, self._reader.detected)

    @property
    def problems(self) -> Counter[str]:
        """What had to be repaired in the rows read so far, counted; the keys are for people."""
        return self._reader.problems

    def pages(
        self, cursor: int, page_rows: Callable[[], int], max_page_bytes: int, bad_rows: int = 0
    ) -> Iterator[TableBatch]:
        """Yields the rows after the first `cursor`.

        Each batch has at most as many rows as `page_rows` says before it, and ends with the row
        that reaches `max_page_bytes`. `bad_rows` of the rows before could not be read."""
        rows = self._reader.records(cursor, bad_rows)
        with _failures_named(self.path), closing(rows) as records:
            position, end = cursor, False
            while not end:
                batch = _take(records, position, max(1, page_rows()), max_page_bytes)
                position, end = batch.next_row, batch.end
                batch.bad_rows = self._reader.progress.bad
                if end and self._reader.progress.row < cursor:
                    raise self._shrunk(cursor)
                yield batch

    def close(self) -> None:
        self._reader.close()

    def __enter__(self) -> TableFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _shrunk(self, cursor: int) -> InputError:
        return InputError(
            f"{self.path.name} has {self._reader.progress.row:,} rows, but {cursor:,} were read"
            " from it before.",
            "The file has changed. Start a new job for it.",
        )


def open_table(path: Path, options: Mapping[str, Any]) -> TableFile:
    """Opens a table file with options as they are stored with a job, which may contain more."""
    known = {name: value for name, value in options.items() if name in _OPTION_NAMES}
    return TableFile(path, TableOptions(**known))


@contextmanager
def _failures_named(path: Path) -> Iterator[None]:
    """Turns whatever a file, a codec or a parser raises into a sentence for a person."""
    try:
        yield
    except (OSError, ValueError, LookupError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or str(error)[:200]
        raise InputError(
            f"{path.name} cannot be read: {reason}.",
            "It may have been changed or moved, or its encoding may differ from the one given.",
        ) from error


def _open_reader(path: Path, options: TableOptions) -> TableReader:
    packed_head = read_head(path)
    content = content_of(path, packed_head, options.max_unpacked_bytes)
    if is_zip(packed_head) and content.packing is None:
        return SpreadsheetReader(path, options)
    if options.sheet is not None:
        raise InputError(
            f"{path.name} has no sheets, because it is not a spreadsheet.",
            "Leave the sheet out, or check that it is the right file.",
        )
    head = packed_head if content.packing is None else unpacked_head(content)
    refuse_foreign(content, head)
    text = find_text(content, head, options)
    refuse_markup(content, text)
    if looks_like_json_lines(content, text):
        return JsonLinesReader(content, text, options)
    return DelimitedReader(content, text, options)


def _with_name_note(path: Path, detected: Detected) -> Detected:
    suffix = path.suffix if detected.packing is None else ""
    named = _FORMAT_OF_SUFFIX.get(suffix.lower(), detected.format)
    if named == detected.format:
        return detected
    note = f"Despite its name, {path.name} holds {_FORMAT_NAMES[detected.format]}."
    return replace(detected, notes=(note, *detected.notes))


def _take(records: Iterator[bytes], first_row: int, rows: int, max_bytes: int) -> TableBatch:
    inputs: list[str] = []
    size = 0
    for encoded in itertools.islice(records, rows):
        inputs.append(encoded.decode())
        size += len(encoded)
        if size >= max_bytes:
            break
    end = len(inputs) < rows and size < max_bytes
    return TableBatch(inputs, first_row, first_row + len(inputs), end, size)
