"""The contract of a file store, and what its implementations share."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from datetime import datetime
from pathlib import Path
from typing import Protocol

from holdfast.errors import InputError, NotThere, TooLarge, UserError
from holdfast.stored_files import CONDITIONAL_BYTES, Content, FileInfo, Written

BLOCK_BYTES = 1 << 20
_LONGEST_KEY = 700
_LONGEST_SEGMENT = 200


class FileStore(Protocol):
    """A file store.

    Writes are atomic: a key has its whole content or none, even if the writer is killed."""

    @property
    def place(self) -> str:
        """Where the files are, for people; without credentials."""

    async def put(
        self, key: str, content: Content, *, max_bytes: int, if_absent: bool = False
    ) -> Written | None:
        """Writes a file and replaces what the key had.

        With `if_absent`, writes only if it had nothing, and returns None otherwise. The file of a
        path must not be changed afterwards: a folder links to it."""

    def stream(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """Yields the bytes from `start` up to, not including, `end`."""

    async def copy_to(self, key: str, path: Path, *, max_bytes: int, sha256: str | None) -> None:
        """Makes the content available under a path, to be read only: a folder links to it."""

    async def find(self, key: str) -> FileInfo | None: ...

    def list(self, prefix: str, after: str = "") -> AsyncIterator[FileInfo]:
        """Lists the files whose keys begin with a prefix, which is empty or ends in `/`, those
        after a key. Files side by side come in order; some services list those below them in
        between."""

    async def delete(self, key: str) -> None:
        """Deletes a file; no error if there is none."""

    async def drop_unfinished(self, before: datetime) -> None:
        """Removes what killed writers left, if it was not touched since."""


def new_key(prefix: str) -> str:
    """Returns a key that nothing else has or will have: each row has its own object, so that one
    can be deleted without asking what else uses it."""
    return f"{prefix}{secrets.token_hex(16)}"


def checked_key(key: str) -> str:
    """Returns the same key, if it means the same in a folder and in a bucket."""
    segments = key.split("/")
    if (
        len(key.encode("utf-8", "replace")) > _LONGEST_KEY
        or not key.isprintable()
        or not all(map(_is_segment, segments))
    ):
        raise UserError(
            f"{key[:100]!r} is not a key of a file",
            "A key is printable text of at most 700 bytes; its parts, separated by /, have at most"
            " 200 bytes each, do not begin with a dot and are not empty.",
        )
    return key


def checked_prefix(prefix: str) -> str:
    """Returns the same prefix, if it is empty or ends in `/`."""
    if prefix:
        checked_key(prefix.removesuffix("/"))
        if not prefix.endswith("/"):
            raise UserError(f"the prefix {prefix[:100]!r} does not end in /")
    return prefix


def _is_segment(segment: str) -> bool:
    size = len(segment.encode("utf-8", "replace"))
    return 0 < size <= _LONGEST_SEGMENT and segment[0] != "." and "\\" not in segment


def missing(key: str) -> NotThere:
    return NotThere(f"there is no file {key!r} in the file store")


def too_large(max_bytes: int) -> TooLarge:
    return TooLarge(f"the file is larger than {max_bytes:,} bytes", "Split it, or raise the limit.")


def conditional_limit(max_bytes: int) -> int:
    return min(max_bytes, CONDITIONAL_BYTES)


class Meter:
    """Counts and hashes the content that passes, and refuses more than is allowed."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._digest = hashlib.sha256()
        self.size = 0

    def add(self, block: bytes) -> None:
        self.size += len(block)
        if self.size > self._max_bytes:
            raise too_large(self._max_bytes)
        self._digest.update(block)

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def written(self, key: str) -> Written:
        return Written(key, self.size, self.sha256)

    def require(self, key: str, sha256: str | None) -> None:
        if sha256 is not None and self.sha256 != sha256:
            raise InputError(
                f"the file {key!r} is damaged: its checksum is not the one that it was stored with",
                "Upload it again.",
            )


async def measured(blocks: AsyncIterable[bytes], meter: Meter) -> AsyncIterator[bytes]:
    async for block in blocks:
        meter.add(block)
        yield block


def blocks_of(path: Path) -> Iterator[bytes]:
    with path.open("rb", buffering=0) as file:
        while block := file.read(BLOCK_BYTES):
            yield block


def measure(path: Path, meter: Meter) -> None:
    for block in blocks_of(path):
        meter.add(block)


async def file_blocks(path: Path) -> AsyncIterator[bytes]:
    """Yields the blocks of a local file, read in a thread."""
    blocks = blocks_of(path)
    while (block := await asyncio.to_thread(next, blocks, b"")) != b"":
        yield block


async def stream_to(
    store: FileStore, key: str, path: Path, *, max_bytes: int, sha256: str | None
) -> Written:
    """Writes the content to a new file of the caller's."""
    meter = Meter(max_bytes)
    with path.open("xb") as file:
        async for block in measured(store.stream(key), meter):
            await asyncio.to_thread(file.write, block)
    meter.require(key, sha256)
    return meter.written(key)


async def read_all(
    store: FileStore, key: str, *, max_bytes: int, sha256: str | None = None
) -> bytes:
    meter = Meter(max_bytes)
    content = b"".join([block async for block in measured(store.stream(key), meter)])
    meter.require(key, sha256)
    return content
