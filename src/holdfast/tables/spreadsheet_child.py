"""The child process that reads a workbook, and may die of it.

One far cell makes the parser ask for more memory than there is, which ends the process
without an exception. So it runs here, under limits, as a script of its own that imports
nothing of Holdfast, and writes length-prefixed JSON to its standard output:

{"sheet", "notes"}, then {"rows"} as often as needed, then {"problems"};
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
CPU_SECONDS = 900
#: A cell with an error value and its formula lies within this many bytes.
OVERLAP_BYTES = 1 << 14

LONG_NUMBERS = "numbers of more than 15 digits, whose last digits the workbook does not hold"
ERROR_CELLS = "error cells (such as #N/A), read as their text"

_ERROR_CELL = re.compile(rb'<(?:\w+:)?c\s([^>]*\bt="e"[^>/]*)>(.*?)</(?:\w+:)?c>', re.DOTALL)
_REFERENCE = re.compile(rb'\br="([A-Z]{1,3})(\d+)"')
_VALUE = re.compile(rb"<(?:\w+:)?v>([^<]*)</")
#: With and without a namespace prefix.
_FORMULA_TAGS = (b"<f>", b"<f ", b":f>", b":f ")
_RELATIONS = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"


class Refusal(Exception):
    """The workbook cannot be read; the parent tells the person."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def limit_self(memory_bytes: int) -> None:
    for kind, wanted in (
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_CPU, CPU_SECONDS),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(kind)
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(kind, (soft, hard))


def send(out: BinaryIO, message: dict[str, Any]) -> None:
    body = orjson.dumps(message)
    out.write(struct.pack(">I", len(body)) + body)
    out.flush()


def serve(request: dict[str, Any], out: BinaryIO) -> None:
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


def choose_sheet(workbook: CalamineWorkbook, wanted: str | None) -> str:
    sheets = [each for each in workbook.sheets_metadata if each.typ == SheetTypeEnum.WorkSheet]
    names = [each.name for each in sheets]
    if wanted is not None:
        if wanted not in names:
            listed = ", ".join(map(repr, names))
            raise Refusal(f"There is no sheet {wanted!r}.", f"The workbook has: {listed}.")
        return wanted
    visible = [each.name for each in sheets if each.visible == SheetVisibleEnum.Visible]
    if not names:
        raise Refusal("The workbook has no sheet with cells.", "Give another file.")
    return (visible or names)[0]


class Findings:
    """What the sheet's XML says and the parser does not: formulas, and error values."""

    def __init__(self) -> None:
        self.formulas = False
        self.errors: dict[int, dict[int, str]] = {}

    def scan(self, path: str, sheet: str) -> None:
        """Reads the parts through once, which also proves that their declared sizes hold."""
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
        tail = b""
        with archive.open(member) as part:
            while block := part.read(BLOCK_BYTES):
                data = tail + block
                self.formulas = self.formulas or any(tag in data for tag in _FORMULA_TAGS)
                if b't="e"' in data:
                    self._collect_errors(data)
                tail = data[-OVERLAP_BYTES:]

    def _collect_errors(self, data: bytes) -> None:
        for attributes, content in _ERROR_CELL.findall(data):
            reference, value = _REFERENCE.search(attributes), _VALUE.search(content)
            if reference and value:
                row = self.errors.setdefault(int(reference[2]) - 1, {})
                row[column_index(reference[1])] = value[1].decode(errors="replace")


def sheet_member(archive: zipfile.ZipFile, sheet: str) -> str:
    """The name within the zip of a sheet's part; empty if it cannot be told."""
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
    found = []
    if len(workbook.sheet_names) > 1:
        others = ", ".join(repr(each) for each in workbook.sheet_names if each != sheet.name)
        found.append(f"The sheet {sheet.name!r} is read; others are there: {others}.")
    if findings.formulas:
        found.append(
            "Formulas are read as the values that were saved with them; one that was never"
            " calculated is empty."
        )
    if sheet.merged_cell_ranges:
        found.append("Of merged cells only the first holds the value.")
    return found


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
            check_row(cells, index + 1, request)
            yield cells


def check_row(cells: list[str], number: int, request: dict[str, Any]) -> None:
    joined = "".join(cells)
    if "\0" in joined:
        raise Refusal(f"Row {number:,} of the sheet holds a NUL character.", "Remove it.")
    if len(joined) > request["max_row_bytes"]:
        limit = request["max_row_bytes"]
        raise Refusal(f"Row {number:,} of the sheet is larger than {limit:,} bytes.", "Split it.")


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
    # The shortest digits that name the number, then zeros: int() would invent the others.
    return f"{Decimal(repr(value)):f}" if abs(value) < 1e21 else repr(value)


def duration_text(value: datetime.timedelta) -> str:
    """Hours, minutes and seconds, as a workbook shows a duration: 27:30:00."""
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


def main() -> None:
    request = orjson.loads(sys.argv[1])
    limit_self(request["memory_bytes"])
    out = sys.stdout.buffer
    damaged = "Open it in a spreadsheet program and save it again, or save it as CSV."
    try:
        serve(request, out)
    except Refusal as refusal:
        send(out, {"error": refusal.message, "hint": refusal.hint})
    except (CalamineError, zipfile.BadZipFile, zlib.error, EOFError) as error:
        send(out, {"error": f"The workbook is damaged: {error}.", "hint": damaged})
    except BrokenPipeError:
        # The parent wants no more; leave without flushing into the closed pipe again.
        os._exit(0)


if __name__ == "__main__":
    main()
