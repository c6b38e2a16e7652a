"""Every parser takes seconds for a megabyte of what is worst for it."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import openpyxl
import pytest

from tests.tables.reading import read, refusal

CPU_SECONDS = 20
LIMITED = f"""
import resource, sys
from pathlib import Path
resource.setrlimit(resource.RLIMIT_CPU, ({CPU_SECONDS}, {CPU_SECONDS}))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
"""

PROGRAMS = {
    "equal column names": """
from holdfast.tables.records import MOST_COLUMNS, name_columns
columns, notes = name_columns(["a"] * MOST_COLUMNS)
assert len(set(columns)) == MOST_COLUMNS and len(notes) == 21
name_columns(["column_%d" % n for n in range(1, 8000)] + [""] * 8000)
""",
    "gzip members": """
import gzip
from holdfast.http.body import decode
assert decode(gzip.compress(b"") * 50_000, "gzip", 1000) == b""
assert decode(gzip.compress(b"a") * 40_000, "gzip", 100_000) == b"a" * 40_000
assert decode(gzip.compress(b"a") + b"\\0" * 1_000_000, "gzip", 1000) == b"a"
""",
    "link header": """
from holdfast.sources.cursor_api import next_link
assert next_link("<" * 1_000_000) is None
""",
    "error of a site": """
import orjson
from holdfast.pipelines.meetings import datasette
class Reply:
    content = orjson.dumps({"error": "<" * 90_000})
    content_type, sample = "application/json", "sample"
assert len(datasette._told(Reply())) <= 300
Reply.content = orjson.dumps({"error": "<" * 1_000_000})
assert datasette._told(Reply()) == "sample"
""",
    "reply in punycode": """
import httpx2
from holdfast.http.reply import Reply
headers = httpx2.Headers({"content-type": "text/plain; charset=punycode"})
assert len(Reply(200, "http://a/", headers, b"a-" + b"b" * 1_000_000).text) == 1_000_002
""",
    "deep JSON": """
from holdfast.json_depth import is_too_deep
assert is_too_deep("[" * 1_000 + "]" * 1_000)
assert not is_too_deep("[" + "[]," * 300_000 + "[]]")
""",
    "robots.txt": """
from protego import Protego
rules = Protego.parse("User-agent: *\\n" + "Disallow: /*a*a*a*b\\n" * 25_000)
assert rules.can_fetch("https://shop.example/" + "a" * 10_000, "holdfast")
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_parser_takes_seconds(name: str) -> None:
    program = LIMITED + PROGRAMS[name]
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr.decode()


def hostile_workbook(path: Path, part: str, content: bytes, far: bool = False) -> Path:
    """A workbook whose second sheet, or first, holds this instead of rows."""
    book = openpyxl.Workbook()
    book.active["A1"] = "a"
    book.active["A2"] = "x"
    if far:
        book.active["XFD1048576"] = "far"
    book.create_sheet("Other")["A1"] = "b"
    book.save(path.with_suffix(".plain.xlsx"))
    with (
        zipfile.ZipFile(path.with_suffix(".plain.xlsx")) as old,
        zipfile.ZipFile(path, "w", 8) as new,
    ):
        for name in old.namelist():
            text = old.read(name)
            if name == part:
                text = text.replace(b"<sheetData", b"<!-- " + content + b" --><sheetData", 1)
            new.writestr(name, text)
    return path


def test_furthest_cell_is_looked_for_in_linear_time(tmp_path: Path) -> None:
    content = b"<c " * 300_000
    path = hostile_workbook(tmp_path / "a.xlsx", "xl/worksheets/sheet2.xml", content, far=True)
    assert "XFD1048576" in refusal(path).message


@pytest.mark.parametrize("unit", [b"<c ", b'<c t="e" ', b'<c t="e">', b"<w"])
def test_error_cells_are_looked_for_in_linear_time(tmp_path: Path, unit: bytes) -> None:
    content = unit * (1_000_000 // len(unit)) + b' t="e" '
    path = hostile_workbook(tmp_path / "a.xlsx", "xl/worksheets/sheet1.xml", content)
    assert read(path) == [{"a": "x"}]


def test_child_gets_no_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from holdfast.tables.spreadsheet import _child_environment

    monkeypatch.setenv("HOLDFAST_DATABASE_URL", "postgresql://user:secret@host/db")
    monkeypatch.setenv("HOLDFAST_MEETINGS_API_KEY", "secret")
    assert "secret" not in str(_child_environment())
