"""Zips of images: each image is found by its place; what is not an image is said."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.columns import BAD_ROW
from holdfast.errors import InputError, ItemError
from holdfast.sources.image_archives import (
    HEADER_BYTES,
    content_start,
    entry_of,
    image_archive,
    unpacked,
)
from holdfast.tables.files import open_table
from tests.pictures import gif, png


def packed(path: Path, files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


async def read(path: Path, row: dict[str, Any], damage: bool = False) -> bytes:
    content, entry = path.read_bytes(), entry_of(row["entry"])
    assert entry is not None
    start = content_start(entry, content[entry.offset : entry.offset + HEADER_BYTES])
    body = content[start : start + entry.packed]
    if damage:
        body = bytes(byte ^ 255 for byte in body)

    async def blocks() -> AsyncIterator[bytes]:
        for at in range(0, len(body), 7):
            yield body[at : at + 7]

    return b"".join([part async for part in unpacked(entry, blocks())])


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
async def test_each_image_is_read_in_its_place(tmp_path: Path, method: int) -> None:
    files = {"a.png": png(9, 9), "folder/b.gif": gif(), "c.JPG": png(50, 50)}
    path = packed(tmp_path / "photos.zip", files, method)
    rows = image_archive(path)
    assert rows is not None
    assert [(row["name"], row["path"]) for row in rows] == [
        ("a.png", "a.png"), ("b.gif", "folder/b.gif"), ("c.JPG", "c.JPG"),
    ]  # fmt: skip
    assert [await read(path, row) for row in rows] == list(files.values())
    with pytest.raises(ItemError, match="damaged"):
        await read(path, rows[2], damage=True)


def test_what_is_not_an_image_is_said(tmp_path: Path) -> None:
    nested = io.BytesIO()
    packed(tmp_path / "inner.zip", {"a.png": png()})
    nested.write((tmp_path / "inner.zip").read_bytes())
    files = {
        "a.png": png(), "../../etc/passwd.png": png(), "inner.zip": nested.getvalue(),
        "..\\..\\windows.png": png(),
        "notes.txt": b"hello", "__MACOSX/._a.png": b"x", ".hidden.png": b"x", "Thumbs.db": b"x",
    }  # fmt: skip
    path = packed(tmp_path / "photos.zip", files)
    content = bytearray(path.read_bytes())
    rows = image_archive(path)
    assert rows is not None
    assert [row.get(BAD_ROW) for row in rows] == [
        None, "has a path that leads out of the zip", "is not an image",
        "has a path that leads out of the zip", "is not an image",
    ]  # fmt: skip
    # A password: the flag of the first file in the directory of the zip.
    directory = content.index(b"PK\x01\x02")
    content[directory + 8] |= 1
    path.write_bytes(content)
    locked = image_archive(path)
    assert locked is not None and "password" in locked[0][BAD_ROW]


def test_entry_without_a_name_spoils_no_other(tmp_path: Path) -> None:
    """A name ends at its first NUL."""
    for name in ("oak.png", "oak.csv"):
        path = packed(tmp_path / "oak.zip", {name: b"title\noak\n", "?.txt": b""})
        path.write_bytes(path.read_bytes().replace(b"?.txt", b"\0.txt"))
        rows = image_archive(path)
        if name == "oak.csv":
            assert rows is None and open_table(path, {}).detected.columns == ("title",)
        else:
            assert rows is not None and rows[0]["name"] == name and BAD_ROW in rows[1]


def test_zip_without_images_is_something_else(tmp_path: Path) -> None:
    assert image_archive(packed(tmp_path / "a.zip", {"rows.csv": b"a\n1\n"})) is None
    (tmp_path / "no.zip").write_bytes(b"PK\x03\x04 and no more")
    assert image_archive(tmp_path / "no.zip") is None
    broken = packed(tmp_path / "broken.zip", {"a.png": png()}).read_bytes()
    (tmp_path / "broken.zip").write_bytes(broken.replace(b"PK\x01\x02", b"PK\x01\x09"))
    with pytest.raises(InputError, match="damaged"):
        image_archive(tmp_path / "broken.zip")


async def test_image_that_is_larger_than_its_zip_says_is_cut_off(tmp_path: Path) -> None:
    path = packed(tmp_path / "bomb.zip", {"a.png": b"\0" * 1_000_000})
    rows = image_archive(path)
    assert rows is not None
    rows[0]["entry"]["size"] = 1000
    with pytest.raises(ItemError, match="larger"):
        await read(path, rows[0])


@pytest.mark.parametrize("read_archive", [image_archive, lambda path: open_table(path, {})])
def test_directory_that_lists_files_without_end_is_refused_unread(
    tmp_path: Path, read_archive: Callable[[Path], object]
) -> None:
    path = tmp_path / "many.zip"
    packed(path, {"a.png": png()})
    content = path.read_bytes()
    start = content.index(b"PK\x01\x02")
    entry = content[start : content.index(b"PK\x05\x06")]
    count = 20 * 1024 * 1024 // len(entry) + 1
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, count * len(entry), start, 0)
    path.write_bytes(content[:start] + entry * count + end)
    with pytest.raises(InputError, match="lists too many files"):
        read_archive(path)


def test_end_of_a_zip_that_makes_no_sense_is_damage(tmp_path: Path) -> None:
    path = packed(tmp_path / "odd.zip", {"a.png": png()})
    content = path.read_bytes()
    end = content.index(b"PK\x05\x06")
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, 0, 7)  # of seven disks
    path.write_bytes(content[:end] + locator + content[end:])
    for read_archive in (image_archive, lambda given: open_table(given, {})):
        with pytest.raises(InputError):
            read_archive(path)
