"""Reads zip files of images: where each begins, so that one can be read without the others.

Nothing is unpacked: an item names the bytes of its image within the archive.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from holdfast.columns import BAD_ROW, EXCERPT, LINE
from holdfast.errors import InputError, ItemError
from holdfast.tables.zip_directory import refuse_large_directory

_TYPES = {
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".png": "image/png",
    ".webp": "image/webp",
    ".gif": "image/gif",
    ".heic": "image/heic",
    ".heif": "image/heic",
}
MOST_IMAGES = 100_000
_LARGEST_IMAGE = 256 * 1024 * 1024
_HEADER = struct.Struct("<4s22xHH")  # signature, then the lengths of name and extra field
HEADER_BYTES = _HEADER.size
_LONGEST_PATH = 300


@dataclass(frozen=True, slots=True)
class Entry:
    """Where an image is in its archive: offset of its header, sizes, method and checksum."""

    offset: int
    packed: int
    size: int
    method: int
    crc: int


def image_archive(path: Path) -> list[dict[str, Any]] | None:
    """Returns a row for each file of a zip; None if it is not a zip that has images."""
    with path.open("rb") as file:
        refuse_large_directory(file, path.name)
    try:
        if not zipfile.is_zipfile(path):
            return None
        with zipfile.ZipFile(path) as archive:
            members = [info for info in archive.infolist() if _is_meant(info)]
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise InputError(f"{path.name} is a damaged zip: {error}", "Pack it again.") from None
    if not any(_media_type(info) for info in members):
        return None
    if len(members) > MOST_IMAGES:
        raise InputError(
            f"{path.name} has {len(members):,} files", f"Pack at most {MOST_IMAGES:,} into a zip."
        )
    return [_row(info, number) for number, info in enumerate(members, 1)]


def entry_of(value: Any) -> Entry | None:
    """Returns the place that a row names; None if it names none."""
    try:
        entry = Entry(**value)
    except TypeError:
        return None
    numbers = (entry.offset, entry.packed, entry.size, entry.method, entry.crc)
    return entry if all(type(number) is int and number >= 0 for number in numbers) else None


def content_start(entry: Entry, header: bytes) -> int:
    """Returns where the bytes of the image begin; the header before them has a name of any
    length."""
    if len(header) < HEADER_BYTES:
        raise ItemError("MEDIA_FORMAT_ERROR", "the zip ends before the image")
    signature, name, extra = _HEADER.unpack(header[:HEADER_BYTES])
    if signature != b"PK\x03\x04":
        raise ItemError("MEDIA_FORMAT_ERROR", "the zip is damaged: there is no file here")
    return entry.offset + HEADER_BYTES + int(name) + int(extra)


async def unpacked(entry: Entry, blocks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Unpacks the image, never more of it than its archive says."""
    inflate = zlib.decompressobj(-zlib.MAX_WBITS) if entry.method else None
    left, crc = entry.size, 0
    async for block in blocks:
        try:
            part = block if inflate is None else inflate.decompress(block, left + 1)
        except zlib.error as error:
            raise ItemError("MEDIA_FORMAT_ERROR", f"the zip is damaged: {error}") from None
        left -= len(part)
        if left < 0:
            raise ItemError("MEDIA_TOO_LARGE", "the image is larger than its zip says")
        crc = zlib.crc32(part, crc)
        yield part
    if left or crc != entry.crc:
        raise ItemError("MEDIA_FORMAT_ERROR", "the zip is damaged: wrong size or checksum")


def _row(info: zipfile.ZipInfo, number: int) -> dict[str, Any]:
    path = _path(info)
    flaw = _flaw(info, path)
    if flaw:
        return {BAD_ROW: flaw, LINE: number, EXCERPT: info.filename[:_LONGEST_PATH]}
    entry = Entry(
        info.header_offset, info.compress_size, info.file_size, info.compress_type, info.CRC
    )
    return {
        "name": path.name,
        "path": str(path)[:_LONGEST_PATH],
        "media_type": _media_type(info),
        "size": info.file_size,
        "entry": asdict(entry),
    }


def _flaw(info: zipfile.ZipInfo, path: PurePosixPath) -> str | None:
    if ".." in path.parts or path.is_absolute():
        return "has a path that leads out of the zip"
    if info.flag_bits & 1:
        return "is protected with a password"
    if not _media_type(info):
        return "is not an image"
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "is packed in a way that cannot be read"
    if info.file_size > _LARGEST_IMAGE:
        return f"has {info.file_size:,} bytes, more than {_LARGEST_IMAGE:,}"
    return None


def _path(info: zipfile.ZipInfo) -> PurePosixPath:
    """Parses a path; some programs write those of Windows."""
    return PurePosixPath(info.filename.replace("\\", "/"))


def _media_type(info: zipfile.ZipInfo) -> str | None:
    return _TYPES.get(PurePosixPath(info.filename).suffix.lower())


def _is_meant(info: zipfile.ZipInfo) -> bool:
    """Whether it is a file of the user's: no folder, and nothing that programs add by
    themselves."""
    name = _path(info).name
    # Not `is_dir()`, which raises an error for an entry without a name.
    if info.filename.endswith("/") or info.filename.startswith("__MACOSX/"):
        return False
    return not name.startswith(".") and name.lower() not in ("thumbs.db", "desktop.ini")
