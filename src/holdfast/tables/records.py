"""Converts rows of cells to records: names for the columns, and every row as encoded JSON."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence

import orjson

from holdfast.columns import BAD_ROW
from holdfast.errors import InputError
from holdfast.tables.bad_rows import BAD_ROWS, bad_row
from holdfast.tables.types import Progress, TableOptions

EXTRA = "_extra"
SHORT_ROWS = "rows with too few cells (the missing ones are empty)"
LONG_ROWS = f"rows with too many cells (the surplus is kept under {EXTRA})"
BLANK_ROWS = "blank rows skipped"
NO_ROWS = "The file has a header and no rows."
#: As many as a spreadsheet can have. Every row gets a cell for each, even a row of one character.
MOST_COLUMNS = 16_384
MOST_NOTES = 20

_UNREADABLE = re.compile("[\udc00-\udcff\0]")

#: The cells of the line that `delimited` adds after the last one. A row of a file may contain the
#: same, but not after its last line.
END_CELL = "\0"
CLEAN_END = '\0"'


def name_columns(header: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """Returns unique names for the header's cells, and notes about the names that had to be made
    up."""
    if len(header) > MOST_COLUMNS:
        raise InputError(
            f"The header names {len(header):,} columns, more than {MOST_COLUMNS:,}.",
            "Check the delimiter and the line ends: the rows may have been read as one.",
        )
    if any(_UNREADABLE.search(cell) for cell in header):
        raise InputError(
            "The header has a NUL character or bytes that cannot be decoded.",
            "Fix it, name the encoding with --encoding, or name the row of the real header.",
        )
    tidy = [" ".join(cell.replace("\ufeff", "").split()) for cell in header]
    names = _FreeNames({EXTRA, BAD_ROW, *tidy})
    columns: list[str] = []
    notes: list[str] = []
    used: set[str] = {EXTRA, BAD_ROW}
    for position, wanted in enumerate(tidy, start=1):
        name = wanted
        if not wanted:
            name = names.take("column", position)
            notes.append(f"Column {position} has no header; it is called {name}.")
        elif wanted in used:
            name = names.take(wanted, 2)
            notes.append(
                f"The header {wanted!r} is used twice; column {position} is called {name}."
            )
        columns.append(name)
        used.add(name)
    return tuple(columns), _first_notes(notes)


def _first_notes(notes: list[str]) -> list[str]:
    more = len(notes) - MOST_NOTES
    return notes if more <= 0 else [*notes[:MOST_NOTES], f"{more:,} more columns got a new name."]


class _FreeNames:
    """Gives each stem its next free number. It remembers how far it has looked, because
    counting from the start for every equal name takes quadratic time."""

    def __init__(self, taken: set[str]) -> None:
        self._taken = taken
        self._next: dict[str, int] = {}

    def take(self, stem: str, first: int) -> str:
        number = max(first, self._next.get(stem, first))
        while f"{stem}_{number}" in self._taken:
            number += 1
        self._next[stem] = number + 1
        self._taken.add(f"{stem}_{number}")
        return f"{stem}_{number}"


def numbered_columns(width: int) -> tuple[str, ...]:
    """Returns names for the columns of a table without a header."""
    return tuple(f"column_{position}" for position in range(1, width + 1))


def is_blank(cells: Sequence[str]) -> bool:
    return not any(cells)


class RowEncoder:
    """Turns rows of cells into encoded records.

    `line` is the number of the line that was read last, `ended` says whether no line is left."""

    def __init__(
        self,
        columns: tuple[str, ...],
        options: TableOptions,
        progress: Progress,
        problems: Counter[str],
        line: Callable[[], int],
        ended: Callable[[], bool] = lambda: False,
        has_nul: bool = False,
    ) -> None:
        self.columns = columns
        self.options = options
        self.progress = progress
        self.problems = problems
        self._line = line
        self._ended = ended
        largest_plain = min(options.max_cell_bytes, options.max_row_bytes)
        # In a file with NULs each row is checked.
        self._largest_plain = 0 if has_nul else largest_plain

    def restart(self, bad: int) -> None:
        """Counts again: the file is read from its first row."""
        self.problems.clear()
        self.progress.restart(bad)

    def encode(self, rows: Iterable[list[str]], skip: int) -> Generator[bytes, None, None]:
        """Encodes rows.

        The hot path: whatever is not a plain row of the expected width leaves it."""
        columns, progress, dumps = self.columns, self.progress, orjson.dumps
        width, number, largest_plain = len(columns), progress.row, self._largest_plain
        for row in rows:
            if len(row) == width and (row[0] or any(row)):
                progress.row = number = number + 1
                if number <= skip:
                    continue
                record: Mapping[str, object] = dict(zip(columns, row))  # noqa: B905 - same widths
            elif is_blank(row):
                progress.blank += 1
                self.problems[BLANK_ROWS] += 1
                continue
            elif row[-1] == END_CELL and self._ended():
                return self._check_end(row)
            else:
                progress.row = number = number + 1
                record = self._completed(row)
                if number <= skip:
                    continue
            try:
                encoded = dumps(record)
            except TypeError:
                encoded = self._bad(row, "has bytes that are not text in the file's encoding")
            else:
                if len(encoded) > largest_plain:
                    encoded = self._checked(row, encoded)
            yield encoded

    def _check_end(self, row: list[str]) -> None:
        if row[0] != CLEAN_END:
            raise unclosed_quote(f"Row {self.progress.row + 1:,}")

    def _completed(self, row: list[str]) -> Mapping[str, object]:
        width = len(self.columns)
        if len(row) < width:
            self.problems[SHORT_ROWS] += 1
            return dict.fromkeys(self.columns, "") | dict(zip(self.columns, row, strict=False))
        self.problems[LONG_ROWS] += 1
        record: dict[str, object] = dict(zip(self.columns, row, strict=False))
        record[EXTRA] = row[width:]
        return record

    def _checked(self, row: list[str], encoded: bytes) -> bytes:
        """Returns the row, or its replacement if it is too large or has a NUL."""
        if any("\0" in cell for cell in row):
            return self._bad(row, "holds a NUL character")
        limit = self.options.max_cell_bytes
        for position, cell in enumerate(row):
            if len(cell.encode()) > limit:
                return self._bad(
                    row, f"has a cell of more than {limit:,} bytes ({self._name(position)})"
                )
        if len(encoded) > self.options.max_row_bytes:
            return self._bad(row, f"is larger than {self.options.max_row_bytes:,} bytes")
        return encoded

    def _name(self, position: int) -> str:
        return repr(self.columns[position]) if position < len(self.columns) else EXTRA

    def _bad(self, row: list[str], reason: str) -> bytes:
        self.problems[BAD_ROWS] += 1
        text = ",".join(cell[:300] for cell in row[:300])
        return bad_row(reason, self._line(), text, self.progress, self.options)


def row_too_large(row: int, limit: int) -> InputError:
    return InputError(
        f"Row {row:,} is larger than {limit:,} bytes.",
        "Look for an unclosed quotation mark, or for a file that is not"
        " a table. HOLDFAST_MAX_INPUT_BYTES sets the limit.",
    )


def unclosed_quote(place: str) -> InputError:
    return InputError(
        f"{place} opens a quotation mark that is never closed.",
        "Close it, or double it if it is part of the text.",
    )
