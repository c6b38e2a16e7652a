"""Decides which row of a table is its header: by the rows, never by the names in them alone.

A row is not the header if it contains the same kinds of values as the rows below it, or values that
occur again there. One column whose header differs in kind settles that there is one. If there is no
evidence for either, the first row is the header: losing a real header is worse.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from holdfast.tables.types import NO_HEADER, HeaderReason

SAMPLE_ROWS = 200
_MOST_TITLES = 20
_LONGEST_NAME = 80
_MOST_NAMES = 8
_EMPTY = frozenset({"", "-", "?", "na", "n/a", "nan", "nil", "none", "null", "\\n", "#n/a"})

_KINDS = (
    ("number", re.compile(r"[-+]?[$€£¥]? ?\d[\d ,.']*(e[-+]?\d+)?[ ]?[%€$£¥]?", re.IGNORECASE)),
    (
        "date",
        re.compile(
            r"\d{4}-\d{1,2}-\d{1,2}([T ]\d{1,2}:.*)?|\d{1,2}[./-]\d{1,2}[./-]\d{2,4}( .*)?"
            r"|\d{4}/\d{1,2}/\d{1,2}( .*)?|\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?"
        ),
    ),
    ("logical", re.compile(r"true|false|yes|no", re.IGNORECASE)),
    ("address", re.compile(r"(https?|ftp)://\S+|[^@\s,;]+@[^@\s,;]+\.[a-z]{2,}", re.IGNORECASE)),
    ("id", re.compile(r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)),
)
_YEAR = re.compile(r"(1[89]|20)\d\d")
_WHOLE = re.compile(r"\d{1,6} ?%?")
_DIGITS = re.compile(r"[^\d.]|\.(?=.*\.)")
_NUMBER_CHARACTERS = 100


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of a table.

    `header_row` counts from 1; NO_HEADER: there is none. `width` is that of most rows.
    `other_header`: cells of a row that looks like the header of a second table."""

    header_row: int
    reason: HeaderReason
    width: int
    other_header: tuple[str, ...] = ()


def find_layout(rows: Sequence[Sequence[str]], wanted: int | None) -> Layout:
    """Finds the layout; `rows` are the first of the file, blank ones included."""
    layout = _first_table(rows, wanted)
    if layout.header_row == NO_HEADER:
        return layout
    return replace(layout, other_header=_other_header(rows[layout.header_row - 1 :]))


def _first_table(rows: Sequence[Sequence[str]], wanted: int | None) -> Layout:
    filled = [(number, row) for number, row in enumerate(rows, start=1) if any(row)]
    width = _usual_width([row for _, row in filled])
    if wanted is not None:
        return Layout(wanted, HeaderReason.GIVEN, width)
    if not filled:
        return Layout(1, HeaderReason.ASSUMED, width)
    titles = _titles(filled, width)
    if titles:
        return Layout(filled[titles][0], HeaderReason.FOUND, width)
    first, below = filled[0][1], [row for _, row in filled[1:]]
    verdict = _judge(first, below)
    if verdict < 0:
        return Layout(NO_HEADER, HeaderReason.FOUND, width)
    reason = HeaderReason.FOUND if verdict else HeaderReason.ASSUMED
    return Layout(filled[0][0], reason, width)


def header_note(layout: Layout, columns: Sequence[str]) -> str | None:
    """Returns what is worth a sentence about the header: that there is none, that it does not come
    first, that it does not fit the rows."""
    if layout.header_row == NO_HEADER:
        guessed = layout.reason != HeaderReason.GIVEN
        how = " If it is a header, set the header row to 1." if guessed else ""
        names = f"column_1 to column_{len(columns)}" if len(columns) > 1 else "column_1"
        return f"The first row is data, not a header; the columns are called {names}.{how}"
    if layout.header_row > 1 and layout.reason == HeaderReason.FOUND:
        return (
            f"Row {layout.header_row} is the header; the rows above it are titles and are left out."
        )
    if len(columns) == 1 < layout.width and layout.reason != HeaderReason.GIVEN:
        return (
            f"The header has 1 cell, but most rows have {layout.width}. If titles come before it,"
            " set the header row."
        )
    return None


def second_table_note(layout: Layout) -> str | None:
    if not layout.other_header:
        return None
    names = ", ".join(layout.other_header[:_MOST_NAMES])
    return (
        f"The row '{names}' looks like the header of a second table. Its rows are read as rows of"
        " the first one; put it into its own file or sheet if they are something else."
    )


def _other_header(rows: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Returns names in other columns than the header's, above rows that fill no other columns than
    these."""
    filled = [row for row in rows if any(row)]
    if not filled:
        return ()
    places = [frozenset(at for at, cell in enumerate(row) if cell) for row in filled]
    below: frozenset[int] = frozenset()
    for at in range(len(filled) - 1, 1, -1):
        is_block = len(places[at]) > 1 and places[at] != places[0] and below and below <= places[at]
        cells = [filled[at][place] for place in sorted(places[at])]
        if is_block and _are_names(cells) and _judge(filled[at], filled[at + 1 :]) > 0:
            return tuple(cells)
        below |= places[at]
    return ()


def _usual_width(rows: Sequence[Sequence[str]]) -> int:
    widths = Counter(map(len, rows))
    return max(widths, key=lambda width: (widths[width], width)) if widths else 0


def _titles(filled: Sequence[tuple[int, Sequence[str]]], width: int) -> int:
    """Counts how many rows above the header are titles: rows of one cell above a full row of
    names."""
    count = 0
    while count < min(_MOST_TITLES, len(filled)) and _is_title(filled[count][1], width):
        count += 1
    if count == 0 or len(filled) < count + 3:
        return 0
    number, header = filled[count]
    below = [row for _, row in filled[count + 1 :]]
    regular = sum(len(row) == width for row in below) >= 0.9 * len(below)
    if not regular or len(header) != width or not _are_names(header):
        return 0
    verdict = _judge(header, below)
    set_apart = number > filled[count - 1][0] + 1
    if verdict > 0 or (verdict == 0 and (set_apart or width >= 3)):
        return count
    return 0


def _is_title(row: Sequence[str], width: int) -> bool:
    return width >= 2 and sum(map(bool, row)) == 1 and bool(row[0])


def _are_names(row: Sequence[str]) -> bool:
    """Whether all cells can be names of columns.

    Text after a comma in prose begins with a space."""
    return (
        len({*row}) == len(row)
        and all(cell and len(cell) <= _LONGEST_NAME and cell == cell.strip() for cell in row)
        and not any(_kind(cell) for cell in row)
    )


def _judge(first: Sequence[str], below: Sequence[Sequence[str]]) -> int:
    """Returns 1 if the first row is a header, -1 if it is data, 0 if there is no evidence for
    either."""
    others = [row for row in below if list(row) != list(first)]  # a header may be repeated
    alike: dict[int, str] = {}  # position -> kind of the column, which the first row shares
    recurring = 0
    for position, cell in enumerate(first):
        values = [row[position] for row in others if position < len(row)]
        values = [value for value in values if not _is_empty(value)]
        if not values or _is_empty(cell):
            continue
        kinds = {_kind(value) for value in values}
        kind = kinds.pop() if len(kinds) == 1 else None
        if kind is None:
            recurring += values.count(cell) >= max(2, 0.02 * len(values))
        elif kind != _kind(cell):
            return 1
        else:
            alike[position] = kind
    if recurring >= 2 or any(kind != "number" for kind in alike.values()):
        return -1
    return -1 if alike and not _may_be_names(first, others, list(alike)) else 0


def _is_empty(cell: str) -> bool:
    return cell.strip().lower() in _EMPTY


def _kind(cell: str) -> str | None:
    text = cell.strip()
    return next((name for name, pattern in _KINDS if pattern.fullmatch(text)), None)


def _may_be_names(
    first: Sequence[str], others: Sequence[Sequence[str]], positions: Sequence[int]
) -> bool:
    """Whether numbers can be names of columns: years, places or steps, such as 2019, 2020; 0, 1, 2;
    5 %, 10 %; 0.5, 0.95, 0.99. Then they rise or fall along the row, in even steps or apart from
    the numbers below them."""
    cells = [first[position].strip() for position in positions]
    numbers = [_number(cell) for cell in cells]
    if all(_YEAR.fullmatch(cell) for cell in cells) or cells == ["0"]:
        return True
    steps = [later - earlier for earlier, later in pairwise(numbers)]
    if not steps or not (all(step > 0 for step in steps) or all(step < 0 for step in steps)):
        return False
    is_even = max(steps) - min(steps) < 1e-9
    if is_even and (len(steps) >= 2 or numbers in ([0, 1], [1, 2])):
        return True
    if len(steps) == 1 and not all(_WHOLE.fullmatch(cell) for cell in cells):
        return False
    columns = [[_number(row[at]) for row in others if at < len(row)] for at in positions]
    inside = sum(min(c) <= n <= max(c) for n, c in zip(numbers, columns, strict=True) if c)
    return inside <= len(numbers) / 2


def _number(cell: str) -> float:
    """Returns a rough value: only order and distance matter."""
    digits = _DIGITS.sub("", cell[:_NUMBER_CHARACTERS])
    return float(digits) if digits.strip(".") else 0.0
