"""Every parser takes seconds for a megabyte of what is worst for it."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import openpyxl
import pytest

from holdfast.child_environment import child_environment
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
from holdfast_meetings import datasette
class Reply:
    content = orjson.dumps({"error": "<" * 90_000})
    content_type, sample = "application/json", "sample"
assert len(datasette._message(Reply())) <= 300
Reply.content = orjson.dumps({"error": "<" * 1_000_000})
assert datasette._message(Reply()) == "sample"
""",
    "reply in punycode": """
import httpx2
from holdfast.http.reply import Reply
headers = httpx2.Headers({"content-type": "text/plain; charset=punycode"})
assert len(Reply(200, "http://a/", headers, b"a-" + b"b" * 1_000_000).text) == 1_000_002
""",
    "page of a shop": """
from holdfast_catalog.providers.structured_data import products_in, schema_data
worst = ["<a>" * 150_000 + "</b>" * 150_000, "<b itemscope><b itemprop=a>x" * 30_000,
     "<b itemscope itemprop=offers>" * 30_000, "<b itemscope><b itemprop=a>" + "x<br>" * 200_000,
     "<b itemscope itemtype=Product>" + "<b itemprop=offers itemscope></b>" * 30_000]
for page in worst:
    list(products_in(schema_data(page)))
""",
    "deep JSON": """
from holdfast_client.json_depth import is_too_deep
assert is_too_deep("[" * 1_000 + "]" * 1_000)
assert not is_too_deep("[" + "[]," * 300_000 + "[]]")
""",
    "robots.txt": """
from protego import Protego
rules = Protego.parse("User-agent: *\\n" + "Disallow: /*a*a*a*b\\n" * 25_000)
assert rules.can_fetch("https://shop.example/" + "a" * 10_000, "holdfast")
""",
    "CSV": """
import tempfile
from holdfast.errors import InputError
from holdfast.tables.files import TableFile, TableOptions
path = Path(tempfile.mkdtemp(dir=sys.argv[1])) / "a.csv"
worst = ["\\"", "a,\\"", "a,\\"\\"", ",", ",\\n", "a;,", "\\t|", "\\n", "\\r",
     "\\0", "a,\\0", "\\"\\n", "a"]
for unit in worst:
    for start in ("", "a,b\\n", 'a,b\\n1,"'):
        path.write_text(start + unit * (1_000_000 // len(unit)))
        try:
            with TableFile(path, TableOptions()) as file:
                for page in file.pages(0, lambda: 1000, 1_000_000):
                    pass
        except InputError as error:
            assert error.hint
""",
    "JSON lines": """
import tempfile
from holdfast.errors import InputError
from holdfast.tables.files import TableFile, TableOptions
path = Path(tempfile.mkdtemp(dir=sys.argv[1])) / "a.jsonl"
keys = ",".join('"%d":1' % n for n in range(100_000))
nul = "\\\\u0000"
lines = {
    "deep": '{"a":' * 150_000, "deep and closed": '{"a":' + "[" * 900 + "]" * 900 + "}",
    "arrays": '{"a":' + "[" * 900_000, "string": '{"a":"' + "a" * 900_000 + '"}',
    "open string": '{"a":"' + "a" * 900_000, "backslashes": '{"a":"' + "\\\\" * 450_000 + '"}',
    "quotes": '{"a":"' + '\\\\"' * 450_000 + '"}', "NULs": '{"a":"' + nul * 150_000 + '"}',
    "keys": "{" + keys + "}", "equal keys": "{" + '"a":1,' * 150_000 + '"a":1}',
    "number": '{"a":' + "1" * 900_000 + "}", "lines": '{"a":1}\\n' * 120_000,
    "blank lines": '{"a":1}' + "\\n" * 900_000,
}
for line in lines.values():
    path.write_text(line + "\\n")
    try:
        with TableFile(path, TableOptions()) as file:
            for page in file.pages(0, lambda: 1000, 1_000_000):
                pass
    except InputError as error:
        assert error.hint
""",
    "images": """
import tempfile
from holdfast.errors import InputError
from holdfast.sources.images import image_in
path = Path(tempfile.mkdtemp(dir=sys.argv[1])) / "a"
png, jpeg = b"\\x89PNG\\r\\n\\x1a\\n", b"\\xff\\xd8\\xff"
size = (1_000_000).to_bytes(4, "little")
worst = [
    (png, b"\\0\\0\\0\\0IDAT\\0\\0\\0\\0"), (png + b"\\0\\0\\0\\rIHDR", b"\\0\\0\\0\\1"),
    (png + b"\\0\\0\\0\\rIHDR", b"IEN"), (jpeg, b"\\xff"), (jpeg[:2], b"\\xff\\xe0\\0\\2"),
    (jpeg[:2], b"\\xff\\xd0"), (jpeg[:2], b"\\xff\\xff\\xe0\\0\\2"),
    (jpeg[:2], b"\\xff\\xe0\\0\\0"),
    (b"RIFF" + size + b"WEBP", b"VP8X"), (b"RIFF" + size + b"WEBP", b"VP8L"),
    (b"RIFF\\0\\0\\0\\0WEBP", b"VP8 "), (b"GIF89a", b"\\1\\0,"),
    (b"GIF87a", b"\\0"), (b"GIF89a", b"!\\xfe\\0"),
]
for start, unit in worst:
    path.write_bytes(start + unit * (1_100_000 // len(unit)))
    try:
        image_in(path)
    except InputError as error:
        assert error.hint
""",
    "sitemap": """
import gzip
from holdfast_regulations.sitemap.problems import SitemapError
from holdfast_regulations.sitemap.reader import SitemapReader
start = b'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
units = [
    b"<", b"<a>", b"<url>", b"<url/>", b"<url><loc>", b"<!--", b"<!---->", b"<a b='", b"&amp;",
    b"<![CDATA[", b"<![CDATA[]]>", b"<?a", b"a", b" ", b"\\n", b"<url><loc>a</loc></url>",
]
starts = [b"", start, start + b"<url><loc>", b"<rss><channel><item><link>", b"<!DOCTYPE a ["]
documents = [first + unit * (1_000_000 // len(unit)) for first in starts for unit in units]
documents += [gzip.compress(b"") * 50_000, gzip.compress(b"a") * 45_000]
documents += [gzip.compress(b"\\0" * 10**8)]
documents += [gzip.compress(start) + b"\\0" * 1_000_000]
for document in documents:
    for chunk in (1_000_000, 4_096):
        reader = SitemapReader()
        try:
            for at in range(0, len(document), chunk):
                reader.feed(document[at : at + chunk])
            reader.close()
        except SitemapError as error:
            assert error.fault
""",
    "Sitemap lines of robots.txt": """
from holdfast_regulations.sitemap.reader import sitemaps_in_robots
units = ("Sitemap: a\\n", "Sitemap:", ":", " ", "\\n", "\\r", "Sitemap: #", "Sitemap: a #\\n", "a")
for unit in units:
    assert len(sitemaps_in_robots(unit * (1_000_000 // len(unit)))) <= 1
assert len(sitemaps_in_robots("".join("Sitemap: %d\\n" % n for n in range(60_000)))) == 60_000
""",
    "links of a listing": """
from holdfast.errors import DiscoveryError
from holdfast_regulations.admission import Admission
from holdfast_regulations.listing import Fetched, ListingPage
def read(unit, selector="a[href]"):
    text = "".join(unit.replace("N", str(n)) for n in range(1_000_000 // len(unit)))
    page = ListingPage(Fetched("https://a.example/", 200, text))
    return len(page.found(selector, Admission(["a.example"]), "time, .date"))
assert read("<a href=/N>a</a>") > 50_000
assert read("<li><a href=/N>a</a><time>1.1.2020</time></li>") > 10_000
assert read("<a href=/x>a</a>") == 1
assert read("<") == 0
for unit in ("<p><a href=/N><b>", "<a href='#N'>", "<a ", "<a href="):
    try:
        read(unit)
        raise AssertionError(unit)
    except DiscoveryError:
        pass
""",
    "dates and names of the linker": """
from holdfast_linker.dates import BadDate, parse_date
from holdfast_linker.names import clean, cut, fold, language_of, latin_form
from holdfast_linker.names import spoken_order
units = (" ", "a ", "1", "1 ", "?", " ?", "c.", "-", "'", ",", "|",
    "a\\u0301", "\\u0301", "\\ufdfa", "\\u6f22",
    "\\u0301\\u0316")
for unit in units:
    text = "a" + unit * (1_000_000 // len(unit)) + "a"
    try:
        raise AssertionError(parse_date(text))
    except BadDate:
        pass
    for step in (clean, cut, latin_form, spoken_order):
        step(text)
    fold(text[:1_500])
    language_of(text, "en")
""",
    "cells of the linker": """
from holdfast_linker.entries import ColumnMapping, read_entry
from holdfast_linker.names import likeness
mapping = ColumnMapping(
    name="a", id="a", type="a", aliases=("b",), dates={"c": "P1"}, identifiers={"d": "P2"},
    properties={"e": "P3"},
)
for unit in (" ", "1 ", "|", " ;", "a\\u0301", "\\u0301\\u0316"):
    text = "a" + unit * (200_000 // len(unit)) + "a"
    entry = read_entry(dict.fromkeys("abcde", text), mapping, 1)
    assert len(entry.name) <= 250 and not entry.dates
    assert likeness(entry.name, entry.name + "a") <= 100
""",
    "normal forms": """
import unicodedata
from holdfast_regulations.extract import normalised, text_hash
for unit in ("\\u0301\\u0316", "a\\u0301\\u0316", "e\\u0301 ", "\\u1100\\u1161"):
    text = unit * (1_000_000 // len(unit))
    assert normalised(text) and text_hash(text)
assert normalised("e\\u0301 " * 1_000) == ("\\u00e9 " * 1_000).strip()
""",
    "nesting of a listing page": """
from holdfast_regulations.nesting import is_too_nested
assert is_too_nested("<div>" * 200_000) and is_too_nested("<ul><li>" * 5_000)
assert is_too_nested("".join(f"<b x={i}>" for i in range(900)) + "<p>" * 10_000)
assert is_too_nested("<div></span>" * 2_000)
assert not is_too_nested("<p>x<br><li><td>" * 60_000)
assert not is_too_nested("<ul><li><a href=x>y</a></ul>" * 30_000)
for unit in ("<", "</", "<a", "</a>", "<A ", "< a", "<!--"):
    is_too_nested(unit * (1_000_000 // len(unit)))
""",
    "dates of a page": """
from holdfast_regulations.dates import read_date
for unit in ("1", "1 ", "1.", " ", "a ", "2020-", "1. a ", "(", ",", ":", "a\\u0301"):
    assert read_date(unit * (1_000_000 // len(unit))) is None
""",
}


@pytest.mark.exhaustive(keep=8)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_parser_takes_seconds(name: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", LIMITED + PROGRAMS[name], str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, check=False)
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
    monkeypatch.setenv("HOLDFAST_DATABASE_URL", "postgresql://user:secret@host/db")
    monkeypatch.setenv("HOLDFAST_MEETINGS_API_KEY", "secret")
    assert "secret" not in str(child_environment())
