"""Rows of cells to records: names for the columns, and every row as encoded JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Mapping, Sequence

import orjson

from holdfast.errors import InputError
from holdfast.tables.types import Progress, TableOptions

EXTRA = "_extra"
SHORT_ROWS = "rows with too few cells (the missing ones are empty)"
LONG_ROWS = f"rows with too many cells (the surplus is kept under {EXTRA})"
BLANK_ROWS = "blank rows skipped"
NO_ROWS = "The file has a header and no rows."
#: As many as a spreadsheet can have. Every row gets a cell for each, also a row of one character.
MOST_COLUMNS = 16_384
MOST_NOTES = 20

#: The cells of the line that `delimited` adds after the last one. No other cell holds a NUL.
END_CELL = "\0"
CLEAN_END = '\0"'


def name_columns(header: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """Unique names for the header's cells, and notes about the names that had to be made up."""
    if len(header) > MOST_COLUMNS:
        raise InputError(
            f"The header names {len(header):,} columns, more than {MOST_COLUMNS:,}.",
            "Check the delimiter and the line ends: the rows may have been read as one.",
        )
    tidy = [" ".join(cell.replace("\ufeff", "").split()) for cell in header]
    names = _FreeNames({EXTRA, *tidy})
    columns: list[str] = []
    notes: list[str] = []
    used: set[str] = {EXTRA}
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


def renamed(columns: Sequence[str], names: Mapping[str, str]) -> tuple[str, ...]:
    """The columns under the names that a person chose. Duplicates are refused: they lose cells."""
    called = tuple(names.get(name, name) for name in columns)
    for name, count in Counter(called).items():
        if count > 1:
            raise InputError(f"Two columns would be called {name!r}.", "Map only one of them.")
    return called


def is_blank(cells: Sequence[str]) -> bool:
    return not any(cells)


class RowEncoder:
    """Turns rows of cells into encoded records."""

    def __init__(
        self,
        columns: tuple[str, ...],
        options: TableOptions,
        progress: Progress,
        problems: Counter[str],
    ) -> None:
        self.columns = columns
        self.options = options
        self.progress = progress
        self.problems = problems

    def restart(self) -> None:
        """Starts counting again, because the file is read from its first row again."""
        self.problems.clear()
        self.progress.row = self.progress.blank = 0

    def encode(self, rows: Iterable[list[str]], skip: int) -> Generator[bytes, None, None]:
        """The hot path: whatever is not a plain row of the expected width leaves it."""
        columns, progress, dumps = self.columns, self.progress, orjson.dumps
        width, number = len(columns), progress.row
        largest_plain = min(self.options.max_cell_bytes, self.options.max_row_bytes)
        for row in rows:
            if len(row) == width and (row[0] or any(row)):
                progress.row = number = number + 1
                if number <= skip:
                    continue
                encoded = dumps(dict(zip(columns, row)))  # noqa: B905 - the widths were compared
            elif is_blank(row):
                progress.blank += 1
                self.problems[BLANK_ROWS] += 1
                continue
            elif row[-1] == END_CELL:
                return self._check_end(row)
            else:
                progress.row = number = number + 1
                encoded = dumps(self._mended(row))
                if number <= skip:
                    continue
            if len(encoded) > largest_plain:
                self._check_size(row, encoded)
            yield encoded

    def _check_end(self, row: list[str]) -> None:
        if row[0] != CLEAN_END:
            raise unclosed_quote(f"Row {self.progress.row + 1:,}")

    def _mended(self, row: list[str]) -> Mapping[str, object]:
        width = len(self.columns)
        if len(row) < width:
            self.problems[SHORT_ROWS] += 1
            return dict.fromkeys(self.columns, "") | dict(zip(self.columns, row, strict=False))
        self.problems[LONG_ROWS] += 1
        record: dict[str, object] = dict(zip(self.columns, row, strict=False))
        record[EXTRA] = row[width:]
        return record

    def _check_size(self, row: list[str], encoded: bytes) -> None:
        for position, cell in enumerate(row):
            if len(cell.encode()) > self.options.max_cell_bytes:
                name = (
                    repr(self.columns[position])
                    if position < len(self.columns)
                    else f"number {position + 1}"
                )
                raise InputError(
                    f"Row {self.progress.row:,}: the cell {name} is larger than"
                    f" {self.options.max_cell_bytes:,} bytes.",
                    "Look for an unclosed quotation mark, or take the"
                    " large content out of the table. HOLDFAST_MAX_INPUT_BYTES sets the limit.",
                )
        if len(encoded) > self.options.max_row_bytes:
            raise row_too_large(self.progress.row, self.options.max_row_bytes)


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
