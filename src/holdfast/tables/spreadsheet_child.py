"""The child process that reads a workbook, and may die from it.

One far cell makes the parser ask for more memory than there is, which ends the process without an
exception. So everything that opens a workbook runs here, under limits, as a script of its own that
imports nothing of Holdfast, and writes length-prefixed JSON to its standard output:

for the task "rows": {"sheet", "notes"}, then {"rows"} as often as needed, then {"problems"};
for the task "furthest": {"furthest"};
or at any point {"error", "hint"}.
"""

from __future__ import annotations

import datetime
import math
import os
import re
import resource
import struct
import sys
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, BinaryIO
from xml.etree import ElementTree

import orjson
from python_calamine import (
    CalamineError,
    CalamineSheet,
    CalamineWorkbook,
    SheetTypeEnum,
    SheetVisibleEnum,
)

FRAME_ROWS = 500
FRAME_CHARACTERS = 500_000
BLOCK_BYTES = 1 << 20
#: A sheet is read at 15 to 20 MB of XML per second; a slow machine gets a quarter of that. So the
#: time grows with what there is to read, and a small file has a few seconds, whatever is in it.
CPU_SECONDS = 10
BYTES_PER_CPU_SECOND = 4_000_000
#: Python, its modules and the parser take about half of this before anything is read.
LEAST_MEMORY_BYTES = 200_000_000
#: Limits what this process may write to a file: its error messages.
COMPLAINT_BYTES = 1 << 20
#: A cell with an error value and its formula fits into this many bytes.
OVERLAP_BYTES = 1 << 14

#: Sheets shrink 5 to 20 times when zipped; anything that shrinks more was made to explode.
MAX_RATIO = 150
RATIO_FREE_BYTES = 10_000_000
#: A workbook has a part per sheet, drawing and comment.
MOST_PARTS = 10_000
LISTED_SHEETS = 20

LONG_NUMBERS = "numbers of more than 15 digits, whose last digits the workbook does not hold"
ERROR_CELLS = "error cells (such as #N/A), read as their text"
SAVE_AS_CSV = "Save the sheet as CSV and give that."

# None of these looks past the next "<" for the end of a tag, nor past the next cell for the end of
# a cell: whatever is missing, each byte is examined a fixed number of times.
_CELL = re.compile(rb'<(?:\w+:)?c\s[^<>]*?\br="([A-Z]{1,3})(\d{1,7})"')
_ERROR_CELL = re.compile(
    rb'<(?:\w+:)?c\s(?=[^<>]*?\bt="e")([^<>]*)(?<!/)>'
    rb"([^<]*(?:<(?!/?(?:\w+:)?c[\s/>])[^<]*)*)</(?:\w+:)?c>"
)
_REFERENCE = re.compile(rb'\br="([A-Z]{1,3})(\d{1,7})"')
_VALUE = re.compile(rb"<(?:\w+:)?v>([^<]*)</")
#: With and without a namespace prefix.
_FORMULA_TAGS = (b"<f>", b"<f ", b":f>", b":f ")
_RELATIONS = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"


class Refusal(Exception):
    """Raised if the workbook cannot be read; the parent shows the reason."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def limit_self(memory_bytes: int) -> None:
    most_seconds = CPU_SECONDS + memory_bytes // BYTES_PER_CPU_SECOND
    memory_bytes = max(memory_bytes, LEAST_MEMORY_BYTES)
    for kind, soft, hard in (
        (resource.RLIMIT_AS, memory_bytes, memory_bytes),
        (resource.RLIMIT_CPU, CPU_SECONDS, most_seconds),
        (resource.RLIMIT_FSIZE, COMPLAINT_BYTES, COMPLAINT_BYTES),
        (resource.RLIMIT_CORE, 0, 0),
    ):
        set_limit(kind, soft, hard)


def set_limit(kind: int, soft: int, hard: int) -> None:
    """Sets a limit; one that the system has set already may be lower, and is not raised."""
    _, ceiling = resource.getrlimit(kind)
    if ceiling != resource.RLIM_INFINITY:
        hard = min(hard, ceiling)
    resource.setrlimit(kind, (min(soft, hard), hard))


def allow_time(unpacked_bytes: int) -> None:
    """Allows more time for more to read, once the archive says how much that is."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    seconds = CPU_SECONDS + unpacked_bytes // BYTES_PER_CPU_SECOND
    resource.setrlimit(resource.RLIMIT_CPU, (min(seconds, hard), hard))


def send(out: BinaryIO, message: dict[str, Any]) -> None:
    body = orjson.dumps(message)
    out.write(struct.pack(">I", len(body)) + body)
    out.flush()


def serve(request: dict[str, Any], out: BinaryIO) -> None:
    allow_time(check_archive(request["path"], request["memory_bytes"]))
    workbook = CalamineWorkbook.from_path(request["path"])
    name = choose_sheet(workbook, request["sheet"])
    findings = Findings()
    findings.scan(request["path"], name)
    sheet = workbook.get_sheet_by_name(name)
    send(out, {"sheet": name, "notes": notes(workbook, sheet, findings)})
    problems: Counter[str] = Counter()
    for frame in frames(rows(sheet, findings, problems, request)):
        send(out, {"rows": frame})
    send(out, {"problems": problems})


def check_archive(path: str, max_bytes: int) -> int:
    """Returns how much a workbook unpacks to.

    Refuses what is not one, and what would unpack to far more than a sheet can contain."""
    with zipfile.ZipFile(path) as archive:
        parts = archive.infolist()
    if not any(is_workbook_part(part.filename) for part in parts):
        raise Refusal(
            "It is a zip archive, not an XLSX workbook.",
            "Unpack it and give the table inside; save .xlsb or .ods workbooks as .xlsx.",
        )
    if len(parts) > MOST_PARTS:
        raise bomb(path, f"it has {len(parts):,} parts")
    for part in parts:
        if part.file_size > max(RATIO_FREE_BYTES, part.compress_size * MAX_RATIO):
            raise bomb(path, f"{part.filename[:100]} unpacks to {part.file_size:,} bytes")
    total = sum(part.file_size for part in parts)
    if total > max_bytes:
        raise bomb(path, f"it unpacks to {total:,} bytes")
    return total


def is_workbook_part(name: str) -> bool:
    return name.startswith("xl/workbook") and name.endswith(".xml")


def bomb(path: str, what: str) -> Refusal:
    size = os.path.getsize(path)  # noqa: PTH202 - pathlib would only take time to import
    return Refusal(
        f"It is refused: {what}, from a file of {size:,} bytes.",
        f"If it is a real table: {SAVE_AS_CSV}",
    )


def find_furthest(request: dict[str, Any], out: BinaryIO) -> None:
    """Sends the corner that the cells of the sheets reach, for an error about memory."""
    column, row = b"", 0
    with zipfile.ZipFile(request["path"]) as archive:
        for name in archive.namelist():
            if not name.startswith("xl/worksheets/sheet"):
                continue
            for data in overlapping_blocks(archive, name, 200):
                for letters, number in _CELL.findall(data):
                    column = max(column, letters, key=lambda each: (len(each), each))
                    row = max(row, int(number))
    send(out, {"furthest": f"{column.decode()}{row}" if row else None})


def overlapping_blocks(archive: zipfile.ZipFile, name: str, overlap: int) -> Iterator[bytes]:
    """Yields a part's bytes; each block begins with the end of the one before it."""
    tail = b""
    with archive.open(name) as part:
        while block := part.read(BLOCK_BYTES):
            data = tail + block
            yield data
            tail = data[-overlap:]


def choose_sheet(workbook: CalamineWorkbook, wanted: str | None) -> str:
    sheets = [each for each in workbook.sheets_metadata if each.typ == SheetTypeEnum.WorkSheet]
    names = [each.name for each in sheets]
    if wanted is not None:
        if wanted not in names:
            raise Refusal(f"There is no sheet {wanted!r}.", f"The workbook has: {listed(names)}.")
        return wanted
    visible = [each.name for each in sheets if each.visible == SheetVisibleEnum.Visible]
    if not names:
        raise Refusal("The workbook has no sheet with cells.", "Give another file.")
    return (visible or names)[0]


def listed(names: list[str]) -> str:
    more = len(names) - LISTED_SHEETS
    return ", ".join(map(repr, names[:LISTED_SHEETS])) + (f" and {more:,} more" * (more > 0))


class Findings:
    """What the sheet's XML shows and the parser does not: formulas, and error values."""

    def __init__(self) -> None:
        self.formulas = False
        self.errors: dict[int, dict[int, str]] = {}

    def scan(self, path: str, sheet: str) -> None:
        """Reads the parts through once, which also proves that their declared sizes are true."""
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
            member = sheet_member(archive, sheet)
            if member in names:
                self._scan_sheet(archive, member)
            if "xl/sharedStrings.xml" in names:
                with archive.open("xl/sharedStrings.xml") as part:
                    while part.read(BLOCK_BYTES):
                        pass

    def _scan_sheet(self, archive: zipfile.ZipFile, member: str) -> None:
        for data in overlapping_blocks(archive, member, OVERLAP_BYTES):
            self.formulas = self.formulas or any(tag in data for tag in _FORMULA_TAGS)
            if b't="e"' in data:
                self._collect_errors(data)

    def _collect_errors(self, data: bytes) -> None:
        for attributes, content in _ERROR_CELL.findall(data):
            reference, value = _REFERENCE.search(attributes), _VALUE.search(content)
            if reference and value:
                row = self.errors.setdefault(int(reference[2]) - 1, {})
                row[column_index(reference[1])] = value[1].decode(errors="replace")


def sheet_member(archive: zipfile.ZipFile, sheet: str) -> str:
    """Returns the name within the zip of a sheet's part; empty if it is unknown."""
    try:
        workbook = ElementTree.fromstring(archive.read("xl/workbook.xml"))
        relations = ElementTree.fromstring(archive.read("xl/_rels/workbook.xml.rels"))
    except (KeyError, ElementTree.ParseError):
        return ""
    wanted = {
        each.get(f"{_RELATIONS}id")
        for each in workbook.iter()
        if each.tag.endswith("}sheet") and each.get("name") == sheet
    }
    for relation in relations:
        if relation.get("Id") in wanted:
            target = relation.get("Target", "")
            return target.lstrip("/") if target.startswith("/") else f"xl/{target}"
    return ""


def column_index(letters: bytes) -> int:
    index = 0
    for letter in letters:
        index = index * 26 + letter - 64
    return index - 1


def notes(workbook: CalamineWorkbook, sheet: CalamineSheet, findings: Findings) -> list[str]:
    lines = []
    if len(workbook.sheet_names) > 1:
        others = listed([name for name in workbook.sheet_names if name != sheet.name])
        lines.append(f"The sheet {sheet.name!r} is read; the others are: {others}.")
    if findings.formulas:
        lines.append(
            "Formulas are read as the values that were saved with them; one that was never"
            " calculated is empty."
        )
    if sheet.merged_cell_ranges:
        lines.append("Of merged cells only the first holds the value.")
    return lines


def rows(
    sheet: CalamineSheet, findings: Findings, problems: Counter[str], request: dict[str, Any]
) -> Iterator[list[str]]:
    first_column = sheet.start[1] if sheet.start else 0
    for index, values in enumerate(sheet.iter_rows()):
        cells = [value if type(value) is str else text_of(value, problems) for value in values]
        for column, text in findings.errors.get(index, {}).items():
            if 0 <= column - first_column < len(cells):
                cells[column - first_column] = text
                problems[ERROR_CELLS] += 1
        while cells and not cells[-1]:
            cells.pop()
        if cells:
            yield cut(cells, request["max_row_bytes"] + 1)


def cut(cells: list[str], characters: int) -> list[str]:
    """Returns the row; one that is too large is cut just above the limit."""
    if sum(map(len, cells)) < characters:
        return cells
    shortened = []
    for cell in cells:
        shortened.append(cell[:characters])
        characters -= len(shortened[-1])
    return shortened


def text_of(value: Any, problems: Counter[str]) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float | int):
        return number_text(value, problems)
    if isinstance(value, datetime.timedelta):
        return duration_text(value)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return str(value)


def number_text(value: float, problems: Counter[str]) -> str:
    if not math.isfinite(value) or value != int(value):
        return repr(value)
    if abs(value) < 1e15:
        return str(int(value))
    problems[LONG_NUMBERS] += 1
    # The shortest digits that identify the number, then zeros: int() would invent the others.
    return f"{Decimal(repr(value)):f}" if abs(value) < 1e21 else repr(value)


def duration_text(value: datetime.timedelta) -> str:
    """Formats hours, minutes and seconds as a workbook shows a duration: 27:30:00."""
    sign = "-" if value < datetime.timedelta(0) else ""
    seconds = round(abs(value).total_seconds())
    return f"{sign}{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def frames(source: Iterator[list[str]]) -> Iterator[list[list[str]]]:
    frame: list[list[str]] = []
    characters = 0
    for row in source:
        frame.append(row)
        characters += sum(map(len, row))
        if len(frame) >= FRAME_ROWS or characters >= FRAME_CHARACTERS:
            yield frame
            frame, characters = [], 0
    if frame:
        yield frame


DAMAGE = (CalamineError, zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError)
TASKS = {"rows": serve, "furthest": find_furthest}


def main() -> None:
    request = orjson.loads(sys.argv[1])
    limit_self(request["memory_bytes"])
    out = sys.stdout.buffer
    damaged = "Open it in a spreadsheet program and save it again, or save it as CSV."
    try:
        TASKS[request["task"]](request, out)
    except Refusal as refusal:
        send(out, {"error": refusal.message, "hint": refusal.hint})
    except (
        CalamineError,
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        ValueError,
        RuntimeError,
    ) as error:
        detail = str(error)[:200]
        send(out, {"error": f"The workbook is damaged: {detail}.", "hint": damaged})
    except BrokenPipeError:
        # The parent wants no more: leave without flushing into the closed pipe again.
        os._exit(0)


if __name__ == "__main__":
    main()
