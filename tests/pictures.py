"""Small images, made by hand: just enough of each format to have a size."""

from __future__ import annotations

import struct
import zlib


def png(width: int = 3, height: int = 2) -> bytes:
    """A whole one, which browsers show."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = b"".join(b"\0" + b"\x40\x80\xc0" * width for _ in range(height))
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def gif(width: int = 3, height: int = 2) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\0\0\0" + b"\x2c" + b"\0" * 12 + b";"


def jpeg(width: int = 3, height: int = 2) -> bytes:
    comment = b"\xff\xfe" + struct.pack(">H", 2 + 5) + b"\xff\xd9abc"  # an end that is none
    frame = b"\xff\xc2" + struct.pack(">HBHH", 11, 8, height, width) + b"\x01\x01\x11\0"
    return b"\xff\xd8" + comment + b"\xff" + frame + b"\xff\xda\0\x02data\xff\xd9"


def webp(kind: bytes, width: int = 3, height: int = 2) -> bytes:
    if kind == b"VP8X":
        size = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
        data = b"\0" * 4 + size
    elif kind == b"VP8L":
        data = b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14)
    else:
        data = b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", width, height)
    body = b"WEBP" + kind + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(body)) + body
