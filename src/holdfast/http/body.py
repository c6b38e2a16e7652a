"""A body's content codings, undone without letting a small body grow beyond its limit."""

from __future__ import annotations

import zlib
from collections.abc import Callable

from holdfast.errors import ItemError

ACCEPTED_CODINGS = "gzip, deflate"

_GZIP = zlib.MAX_WBITS | 16
_ZLIB = zlib.MAX_WBITS
_RAW = -zlib.MAX_WBITS


class CutShort(Exception):
    """The compressed data ends before its end mark."""


def decode(body: bytes, codings: str, limit: int) -> bytes:
    """The body without its codings. TOO_LARGE beyond `limit` bytes, at every layer."""
    if not body:
        return body
    for coding in reversed(_names(codings)):
        body = _undo(coding)(body, limit)
        if len(body) > limit:
            raise ItemError("TOO_LARGE", f"more than {limit} bytes when decompressed")
    return body


def decode_beginning(body: bytes, codings: str, limit: int) -> bytes:
    """As much of a cut body as can be read; what is no proper coding gives nothing."""
    try:
        for coding in reversed(_names(codings)):
            body = _beginning(body, coding, limit) if body else body
    except (zlib.error, ItemError):
        return b""
    return body[:limit]


def _names(codings: str) -> list[str]:
    names = [name.strip().lower() for name in codings.split(",")]
    return [name for name in names if name not in ("", "identity")]


def _undo(coding: str) -> Callable[[bytes, int], bytes]:
    if coding in ("gzip", "x-gzip"):
        return _gunzip
    if coding == "deflate":
        return _inflate
    raise ItemError("INVALID_RESPONSE", f"content coding {coding!r} was not asked for")


def _gunzip(body: bytes, limit: int) -> bytes:
    """All members of a gzip file, up to one byte more than the limit."""
    parts: list[bytes] = []
    room = limit + 1
    while body and room > 0:
        part, body = _unpacked(body, _GZIP, room)
        parts.append(part)
        room -= len(part)
        body = body.lstrip(b"\0")  # some writers pad the last block
    return b"".join(parts)


def _inflate(body: bytes, limit: int) -> bytes:
    return _unpacked(body, _deflate_bits(body), limit + 1)[0]


def _unpacked(body: bytes, bits: int, room: int) -> tuple[bytes, bytes]:
    unpacker = zlib.decompressobj(bits)
    try:
        part = unpacker.decompress(body, room)
    except zlib.error as error:
        raise ItemError("INVALID_RESPONSE", f"compressed data is damaged ({error})") from error
    if not unpacker.eof and len(part) < room:
        raise CutShort
    return part, unpacker.unused_data


def _beginning(body: bytes, coding: str, limit: int) -> bytes:
    _undo(coding)
    bits = _deflate_bits(body) if coding == "deflate" else _GZIP
    return zlib.decompressobj(bits).decompress(body, limit)


def _deflate_bits(body: bytes) -> int:
    """`deflate` means zlib's format, but some servers send the bare stream."""
    has_header = len(body) > 1 and body[0] & 15 == 8 and (body[0] << 8 | body[1]) % 31 == 0
    return _ZLIB if has_header else _RAW
