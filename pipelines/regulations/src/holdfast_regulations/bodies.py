"""Stores bodies once for each SHA-256 of the decoded bytes, compressed, in the database or, if they
are large, in the file store."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import zstandard

from holdfast.stored_files import PipelineFiles

_LEVEL = 6
_PACKED_AT_ONCE = 128 * 1024
LARGEST_BODY = 1 << 30


class Place(StrEnum):
    DATABASE = "database"
    FILES = "files"


class DamagedBody(Exception):
    """Raised if what is stored does not match its hash."""


@dataclass(frozen=True, slots=True)
class Body:
    sha256: str
    size: int
    packed_size: int
    place: Place
    packed: bytes | None  # None: in the file store

    @property
    def file_key(self) -> str:
        return file_key(self.sha256)


def file_key(sha256: str) -> str:
    return f"bodies/{sha256[:2]}/{sha256}.zst"


def pack(content: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True).compress(content)


def unpack(packed: bytes, sha256: str, size: int) -> bytes:
    """Returns the body, if it is the one that was stored."""
    try:
        content = zstandard.ZstdDecompressor().decompress(packed, max_output_size=LARGEST_BODY)
    except zstandard.ZstdError as error:
        raise DamagedBody(f"it cannot be decompressed: {error}") from error
    if hashlib.sha256(content).hexdigest() != sha256:
        raise DamagedBody("its bytes have another hash")
    if len(content) != size:
        raise DamagedBody(f"it has {len(content)} bytes, not {size}")
    return content


async def store(content: bytes, sha256: str, files: PipelineFiles, most_in_database: int) -> Body:
    """Stores a body: a small one with its rows, a large one here, in the file store, under the name
    of its hash and never over another."""
    is_large = len(content) > _PACKED_AT_ONCE
    packed = await asyncio.to_thread(pack, content) if is_large else pack(content)
    if len(packed) <= most_in_database:
        return Body(sha256, len(content), len(packed), Place.DATABASE, packed)
    await files.put(file_key(sha256), packed, if_absent=True)
    return Body(sha256, len(content), len(packed), Place.FILES, None)


async def load(row: Any, files: PipelineFiles) -> bytes:
    """Returns the body of a row of `regulations_body`, checked."""
    packed = row["packed"]
    if row["place"] == Place.FILES:
        try:
            packed = await files.read(file_key(row["sha256"]), max_bytes=LARGEST_BODY)
        except FileNotFoundError:
            raise DamagedBody("its file is missing") from None
    return await asyncio.to_thread(unpack, bytes(packed), row["sha256"], row["size"])
