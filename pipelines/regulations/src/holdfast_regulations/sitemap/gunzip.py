"""Undoes gzip piece by piece: no input, however small, becomes more than a piece at a time."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from holdfast_regulations.sitemap.problems import Fault, SitemapError

_PIECE_BYTES = 64 * 1024
_GZIP = zlib.MAX_WBITS | 16


class Gunzip:
    """Decompresses all members of a gzip file, one after another."""

    def __init__(self) -> None:
        self._unpacker = zlib.decompressobj(_GZIP)
        self._started = False  # whether the current member has any bytes

    def feed(self, data: bytes) -> Iterator[bytes]:
        # Only the rest of a piece is copied after each member, not the rest of everything that
        # arrived.
        for start in range(0, len(data), _PIECE_BYTES):
            yield from self._feed_piece(data[start : start + _PIECE_BYTES])

    def _feed_piece(self, data: bytes) -> Iterator[bytes]:
        while data:
            if not self._started:
                data = data.lstrip(b"\0")  # some writers pad the last block
                if not data:
                    return
            self._started = True
            piece, data = self._unpack(data)
            if piece:
                yield piece
            if self._unpacker.eof:
                data = self._unpacker.unused_data
                self._unpacker = zlib.decompressobj(_GZIP)
                self._started = False

    def close(self) -> None:
        if self._started:
            raise SitemapError(Fault.TRUNCATED_GZIP, "the compressed data ends before its end mark")

    def _unpack(self, data: bytes) -> tuple[bytes, bytes]:
        try:
            piece = self._unpacker.decompress(data, _PIECE_BYTES)
        except zlib.error as error:
            raise SitemapError(Fault.DAMAGED_GZIP, str(error)) from error
        return piece, self._unpacker.unconsumed_tail
