"""Undoes a body's content codings without letting a small body grow beyond its limit."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from holdfast.errors import ItemError

ACCEPTED_CODINGS = "gzip, deflate"

_GZIP = zlib.MAX_WBITS | 16
_ZLIB = zlib.MAX_WBITS
_RAW = -zlib.MAX_WBITS
_ZEROS = re.compile(rb"\0*")
#: An empty member has 20 bytes; larger ones are read in increasingly large blocks.
_SMALLEST_BLOCK = 256
_LARGEST_BLOCK = 1 << 20
#: Servers use one, or two by mistake. Each costs as much as the largest body.
_MOST_CODINGS = 3


class CutShort(Exception):
    """Raised if the compressed data ends before its end mark."""


def decode(body: bytes, codings: str, limit: int) -> bytes:
    """Returns the body without its codings; raises TOO_LARGE beyond `limit` bytes, at every
    layer."""
    if not body:
        return body
    for coding in reversed(_names(codings)):
        body = _undo(coding)(body, limit)
        if len(body) > limit:
            raise ItemError("TOO_LARGE", f"more than {limit} bytes when decompressed")
    return body


def decode_beginning(body: bytes, codings: str, limit: int) -> bytes:
    """Returns as much of a cut body as can be read; nothing if the coding is invalid."""
    try:
        for coding in reversed(_names(codings)):
            body = _beginning(body, coding, limit) if body else body
    except (zlib.error, ItemError):
        return b""
    return body[:limit]


def _names(codings: str) -> list[str]:
    names = [name.strip().lower() for name in codings.split(",")]
    coded = [name for name in names if name not in ("", "identity")]
    if len(coded) > _MOST_CODINGS:
        raise ItemError("INVALID_RESPONSE", f"more than {_MOST_CODINGS} content codings")
    return coded


def _undo(coding: str) -> Callable[[bytes, int], bytes]:
    if coding in ("gzip", "x-gzip"):
        return _gunzip
    if coding == "deflate":
        return _inflate
    raise ItemError("INVALID_RESPONSE", f"content coding {coding[:40]!r} was not requested")


def _gunzip(body: bytes, limit: int) -> bytes:
    """Unpacks all members of a gzip file, up to one byte more than the limit."""
    source = _Source(body)
    parts: list[bytes] = []
    room = limit + 1
    while source.has_more and room > 0:
        for part in source.unpack(_GZIP, room):
            parts.append(part)
            room -= len(part)
        source.skip_padding()
    return b"".join(parts)


def _inflate(body: bytes, limit: int) -> bytes:
    return b"".join(_Source(body).unpack(_deflate_bits(body), limit + 1))


class _Source:
    """Compressed data, unpacked in blocks.

    zlib copies what it has not used, so giving it all the rest for each member would take quadratic
    time."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._view = memoryview(body)
        self._position = 0

    @property
    def has_more(self) -> bool:
        return self._position < len(self._body)

    def unpack(self, bits: int, room: int) -> Iterator[bytes]:
        """Yields one member, in parts of together at most `room` bytes."""
        unpacker = zlib.decompressobj(bits)
        size = _SMALLEST_BLOCK
        while not unpacker.eof and room > 0:
            if not self.has_more:
                raise CutShort
            block = self._view[self._position : self._position + size]
            try:
                part = unpacker.decompress(block, room)
            except zlib.error as error:
                detail = f"compressed data is damaged ({error})"
                raise ItemError("INVALID_RESPONSE", detail) from error
            rest = len(unpacker.unused_data) + len(unpacker.unconsumed_tail)
            self._position += len(block) - rest
            room -= len(part)
            size = min(2 * size, _LARGEST_BLOCK)
            yield part

    def skip_padding(self) -> None:
        """Skips zeros, with which some writers fill the last block."""
        padding = _ZEROS.match(self._body, self._position)
        self._position = padding.end() if padding else self._position


def _beginning(body: bytes, coding: str, limit: int) -> bytes:
    _undo(coding)
    bits = _deflate_bits(body) if coding == "deflate" else _GZIP
    return zlib.decompressobj(bits).decompress(body, limit)


def _deflate_bits(body: bytes) -> int:
    """Returns which format it is: `deflate` means zlib's, but some servers send the bare stream."""
    has_header = len(body) > 1 and body[0] & 15 == 8 and (body[0] << 8 | body[1]) % 31 == 0
    return _ZLIB if has_header else _RAW


class Unpacking:
    """A body whose codings are undone part by part, as it arrives."""

    def __init__(self, codings: str | None, limit: int) -> None:
        names = _names(codings or "")
        if len(names) > 1:
            raise ItemError("INVALID_RESPONSE", "several content codings of a streamed body")
        if names:
            _undo(names[0])
        self._coding = names[0] if names else None
        self._unpacker: Any = None
        self._room = limit

    def feed(self, data: bytes) -> Iterator[bytes]:
        if self._coding is None:
            yield self._counted(data)
            return
        while data:
            if self._unpacker is None:
                data = data.lstrip(b"\0") if self._coding != "deflate" else data
                if not data:
                    return
                bits = _deflate_bits(data) if self._coding == "deflate" else _GZIP
                self._unpacker = zlib.decompressobj(bits)
            yield self._counted(self._unpack(data))
            data = self._unpacker.unconsumed_tail or self._unpacker.unused_data
            if self._unpacker.eof:
                self._unpacker = None
                if self._coding == "deflate":
                    return

    def close(self) -> None:
        """Ends the body; raises CutShort if the end is missing."""
        if self._unpacker is not None and not self._unpacker.eof:
            raise CutShort

    def _unpack(self, data: bytes) -> bytes:
        try:
            unpacked: bytes = self._unpacker.decompress(data, _LARGEST_BLOCK)
        except zlib.error as error:
            detail = f"compressed data is damaged ({error})"
            raise ItemError("INVALID_RESPONSE", detail) from error
        return unpacked

    def _counted(self, part: bytes) -> bytes:
        self._room -= len(part)
        if self._room < 0:
            raise ItemError("TOO_LARGE", "more bytes than allowed")
        return part
