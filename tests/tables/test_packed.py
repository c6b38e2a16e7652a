"""Packed tables: read while they are unpacked, refused where they are bombs or damaged."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import zstandard

from holdfast.tables.files import TableFile
from tests.tables.reading import read, records_of, refusal

TEXT = b"sku,price\n" + b"".join(b"%d,%d.5\n" % (n, n) for n in range(1, 2001))


def zipped(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "."), content)
    return buffer.getvalue()


PACKED = {
    "table.csv.gz": gzip.compress(TEXT),
    "table.csv.zst": zstandard.compress(TEXT),
    "table.zip": zipped(table__csv=TEXT),
}


@pytest.fixture
def file(tmp_path: Path):
    def make(content: bytes, name: str) -> Path:
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return make


@pytest.mark.parametrize(
    ("name", "packing"),
    [("table.csv.gz", "gzip"), ("table.csv.zst", "zstd"), ("table.zip", "zip")],
)
def test_packed_table_is_read_like_its_content(file, name: str, packing: str) -> None:
    with TableFile(file(PACKED[name], name)) as table:
        assert table.detected.packing == packing
        assert table.detected.notes == ()
        assert len(records_of(table)) == 2000
        assert records_of(table, 1999) == [{"sku": "2000", "price": "2000.5"}]


def test_json_lines_and_other_encodings_are_read_packed(file) -> None:
    assert read(file(gzip.compress(b'{"a":1}\n'), "t.jsonl.gz")) == [{"a": 1}]
    german = "name;ort\nMüller;Köln\nJäger;Düren\n".encode("utf-16")
    assert read(file(zstandard.compress(german), "t.csv.zst"))[0] == {
        "name": "Müller",
        "ort": "Köln",
    }


def test_several_frames_and_members_are_read_on(file) -> None:
    half = len(TEXT) // 2
    frames = zstandard.compress(TEXT[:half]) + zstandard.compress(TEXT[half:])
    members = gzip.compress(TEXT[:half]) + gzip.compress(TEXT[half:])
    assert len(read(file(frames, "t.csv.zst"))) == len(read(file(members, "t.csv.gz"))) == 2000


def test_what_archivers_add_does_not_count(file) -> None:
    extra = io.BytesIO()
    with zipfile.ZipFile(extra, "w") as archive:
        archive.writestr("data/", b"")
        archive.writestr("data/table.csv", TEXT)
        archive.writestr("__MACOSX/data/._table.csv", b"x")
        archive.writestr("data/.DS_Store", b"x")
    assert len(read(file(extra.getvalue(), "t.zip"))) == 2000


@pytest.mark.parametrize("name", PACKED)
def test_cut_archive_is_refused(file, name: str) -> None:
    content = PACKED[name]
    for length in (len(content) - 1, len(content) // 2, 20):
        error = refusal(file(content[:length], name))
        assert any(word in error.message for word in ("unpacked", "cut off", "damaged"))


def test_damaged_content_is_refused(file) -> None:
    content = bytearray(PACKED["table.csv.gz"])
    content[len(content) // 2] ^= 0xFF
    assert "cannot be unpacked" in refusal(file(bytes(content), "t.csv.gz")).message
    content = bytearray(PACKED["table.csv.zst"])
    content[-1:] = b"rest"
    assert refusal(file(bytes(content), "t.csv.zst")).message


def test_packed_twice_workbooks_and_several_tables_are_refused(file) -> None:
    assert "packed twice" in refusal(file(gzip.compress(gzip.compress(TEXT)), "t.gz")).message
    assert (
        "workbook or archive" in refusal(file(gzip.compress(PACKED["table.zip"]), "t.gz")).message
    )
    assert "2 files" in refusal(file(zipped(a__csv=TEXT, b__csv=TEXT), "t.zip")).message
    assert "0 files" in refusal(file(zipped(), "t.zip")).message


@pytest.mark.parametrize("name", PACKED)
def test_table_that_unpacks_to_too_much_is_refused(file, name: str) -> None:
    error = refusal(file(PACKED[name], name), max_unpacked_bytes=10_000)
    assert "more than 10,000 bytes" in error.message


@pytest.mark.parametrize("packing", ["gz", "zst", "zip"])
def test_bomb_is_refused_in_little_memory(file, packing: str) -> None:
    content = b"a,b\n" + b"1,2\n" * 50_000_000
    packed = {
        "gz": lambda: gzip.compress(content),
        "zst": lambda: zstandard.compress(content),
        "zip": lambda: zipped(t__csv=content),
    }[packing]()
    path = file(packed, f"bomb.csv.{packing}")
    program = (
        "import sys; from pathlib import Path\n"
        "from holdfast.tables.files import TableFile\n"
        "try: TableFile(Path(sys.argv[1]))\n"
        "except Exception as error: print(error)\n"
        "peak = [l for l in Path('/proc/self/status').open() if l.startswith('VmHWM')]\n"
        "print(peak[0].split()[1])\n"
    )
    command = [sys.executable, "-c", program, str(path)]
    message, kilobytes = subprocess.check_output(command, text=True).splitlines()
    assert "looks like a zip bomb" in message
    assert int(kilobytes) < 150_000
