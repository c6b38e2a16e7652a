"""Recognizes images by content: format, width, height, and whether they are complete.

Nothing is decoded: the first bytes contain the size, the last show whether the file was cut off.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from holdfast.errors import InputError

MEDIA_TYPES = ("image/png", "image/jpeg", "image/webp", "image/gif", "image/heic")
_HEAD_BYTES = 1 << 20
_TAIL_BYTES = 4096
_MOST_PIXELS = 500_000_000
#: Frames of a JPEG file that contain its size: all but the tables (C4, C8, CC) among C0 to CF.
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_HEIC_BRANDS = frozenset({b"heic", b"heix", b"mif1", b"msf1", b"heim", b"heis"})
_JPEG_ALONE = frozenset(range(0xD0, 0xD9)) | {0x01}


@dataclass(frozen=True, slots=True)
class Image:
    media_type: str
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class _Bytes:
    head: bytes
    tail: bytes
    size: int


_Reader = Callable[[_Bytes], tuple[int, int]]


def image_in(path: Path) -> Image | None:
    """Describes an image; returns None if the file is not one of a known format, raises an error if
    it is damaged."""
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
        size = file.seek(0, 2)
        file.seek(max(0, size - _TAIL_BYTES))
        found = _Bytes(head, file.read(), size)
    media_type, read = _format_of(head)
    if read is None:
        return None
    try:
        width, height = read(found)
    except (struct.error, IndexError):
        raise _bad(path, "it ends within its header") from None
    except ValueError as error:
        raise _bad(path, str(error)) from None
    if not width or not height:
        raise _bad(path, "it has no size")
    if width * height > _MOST_PIXELS:
        raise _bad(path, f"{width:,} by {height:,} is more than {_MOST_PIXELS:,} pixels")
    return Image(media_type, width, height)


def _bad(path: Path, reason: str) -> InputError:
    return InputError(
        f"{path.name} is a damaged image: {reason}", "Save it again and send it again."
    )


def _format_of(head: bytes) -> tuple[str, _Reader | None]:
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png", _png
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg", _jpeg
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif", _gif
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp", _webp
    if head[4:8] == b"ftyp" and head[8:12] in _HEIC_BRANDS:
        return "image/heic", _heic
    return "", None


def _heic(found: _Bytes) -> tuple[int, int]:
    """Returns the size of the largest of its pictures: tiles and thumbnails have sizes too."""
    sizes, at = [], found.head.find(b"ispe")
    while at >= 0:
        sizes.append(struct.unpack_from(">II", found.head, at + 8))
        at = found.head.find(b"ispe", at + 4)
    if not sizes:
        raise ValueError("it has no size")
    return max(sizes, key=lambda size: size[0] * size[1])


def _png(found: _Bytes) -> tuple[int, int]:
    if found.head[12:16] != b"IHDR":
        raise ValueError("its header is missing")
    width, height = struct.unpack_from(">II", found.head, 16)
    if b"IEND" not in found.tail:
        raise ValueError("its end is missing")
    return width, height


def _gif(found: _Bytes) -> tuple[int, int]:
    width, height = struct.unpack_from("<HH", found.head, 6)
    if b";" not in found.tail[-16:]:
        raise ValueError("its end is missing")
    return width, height


def _jpeg(found: _Bytes) -> tuple[int, int]:
    head, place = found.head, 2
    while True:
        while head[place] == 0xFF and head[place + 1] == 0xFF:  # padding
            place += 1
        if head[place] != 0xFF:
            raise ValueError("its segments are damaged")
        kind = head[place + 1]
        if kind in _JPEG_ALONE:
            place += 2
            continue
        if kind in (0xD9, 0xDA):
            raise ValueError("it has no size")
        if kind in _JPEG_FRAMES:
            height, width = struct.unpack_from(">HH", head, place + 5)
            break
        (length,) = struct.unpack_from(">H", head, place + 2)
        if length < 2:
            raise ValueError("its segments are damaged")
        place += 2 + length
    # An earlier one belongs to a thumbnail.
    start = max(0, place - (found.size - len(found.tail)))
    if found.tail.find(b"\xff\xd9", start) < 0:
        raise ValueError("its end is missing")
    return width, height


def _webp(found: _Bytes) -> tuple[int, int]:
    head = found.head
    (length,) = struct.unpack_from("<I", head, 4)
    if found.size < length + 8:
        raise ValueError("its end is missing")
    kind = head[12:16]
    if kind == b"VP8X":
        return 1 + int.from_bytes(head[24:27], "little"), 1 + int.from_bytes(head[27:30], "little")
    if kind == b"VP8L":
        (bits,) = struct.unpack_from("<I", head, 21)
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", head, 26)
        return width & 0x3FFF, height & 0x3FFF
    raise ValueError("its header is missing")
