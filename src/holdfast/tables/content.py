"""Unpacks table files while they are read: gzip, zstd, a zip with one table.

Nothing is unpacked to disk or as a whole. A file that unpacks to too much is refused on the way.
"""

from __future__ import annotations

import gzip
import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

import zstandard

from holdfast.errors import InputError
from holdfast.tables.zip_directory import refuse_large_directory

GZIP, ZSTD, ZIP = "gzip", "zstd", "zip"

_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_SKIPPABLE = 0x184D2A50
_ZIP_MAGICS = (b"PK\x03\x04", b"PK\x05\x06")
_ZSTD_WINDOW_BYTES = 1 << 27
_SUFFIXES = {GZIP: (".gz", ".gzip"), ZSTD: (".zst", ".zstd")}
#: Tables shrink 5 to 50 times, very repetitive ones more; a bomb shrinks 1,000 times.
_MAX_RATIO = 500
_RATIO_FROM_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Content:
    """A table's bytes, opened as often as they are read.

    `name` is the table's: without the suffix of its packing, or the name of the zip's member."""

    path: Path
    name: str
    packing: str | None
    max_bytes: int
    member: str | None = None

    @property
    def suffix(self) -> str:
        return PurePosixPath(self.name).suffix.lower()

    def open(self) -> io.RawIOBase:
        if self.packing is None:
            return self.path.open("rb", buffering=0)
        return _Unpacked(self)


def content_of(path: Path, head: bytes, max_bytes: int) -> Content:
    """Returns the table in a file that begins with `head`.

    A zip that contains a workbook is not unpacked."""
    if head.startswith(_GZIP_MAGIC):
        return Content(path, _inner_name(path, GZIP), GZIP, max_bytes)
    if head.startswith(_ZSTD_MAGIC):
        _refuse_cut_frames(path)
        return Content(path, _inner_name(path, ZSTD), ZSTD, max_bytes)
    if head.startswith(_ZIP_MAGICS):
        member = _only_table(path)
        if member is not None:
            return Content(path, PurePosixPath(member).name, ZIP, max_bytes, member)
    return Content(path, path.name, None, max_bytes)


def _inner_name(path: Path, packing: str) -> str:
    return path.stem if path.suffix.lower() in _SUFFIXES[packing] else path.name


class _Unpacked(io.RawIOBase):
    """Yields the unpacked bytes and counts them."""

    def __init__(self, content: Content) -> None:
        self._content = content
        self._packed: IO[bytes] = content.path.open("rb")
        self._count = 0
        with self._damage_named():
            self._stream: Any = self._opened()

    def _opened(self) -> Any:
        match self._content.packing:
            case "gzip":
                return gzip.GzipFile(fileobj=self._packed)
            case "zstd":
                decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES)
                return decompressor.stream_reader(self._packed, read_across_frames=True)
        return zipfile.ZipFile(self._packed).open(self._content.member or "")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with self._damage_named():
            data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        self._count += len(data)
        self._refuse_bomb()
        return len(data)

    def _refuse_bomb(self) -> None:
        name, limit = self._content.path.name, self._content.max_bytes
        if self._count > limit:
            raise InputError(
                f"{name} unpacks to more than {limit:,} bytes.",
                "Split it.",
            )
        if self._count > _RATIO_FROM_BYTES and self._count > _MAX_RATIO * self._packed.tell():
            raise InputError(
                f"{name} unpacks to more than {_MAX_RATIO} times its size: it looks like a zip"
                " bomb.",
                "If it is a real table, unpack it first.",
            )

    @contextmanager
    def _damage_named(self) -> Iterator[None]:
        try:
            yield
        except (
            EOFError,
            OSError,
            RuntimeError,
            NotImplementedError,
            zlib.error,
            zipfile.BadZipFile,
            zstandard.ZstdError,
        ) as error:
            raise InputError(
                f"{self._content.path.name} cannot be unpacked: {str(error)[:200]}.",
                "It may be damaged, cut off or have a password. Unpack it first.",
            ) from error

    def close(self) -> None:
        stream = getattr(self, "_stream", None)
        if stream is not None:
            stream.close()
        self._packed.close()
        super().close()


def _only_table(path: Path) -> str | None:
    """Returns the zip's one file, None if it is a workbook; the reader of workbooks names its
    damage."""
    with path.open("rb") as file:
        refuse_large_directory(file, path.name)
    try:
        with zipfile.ZipFile(path) as archive:
            infos = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, EOFError, NotImplementedError, RuntimeError):
        return None
    if any(info.filename.startswith("xl/") for info in infos):
        return None
    members = [info.filename for info in infos if _counts(info.filename)]
    if len(members) == 1:
        return members[0]
    listed = ", ".join(members[:5]) + (" …" if len(members) > 5 else "")
    raise InputError(
        f"{path.name} is a zip archive with {len(members):,} files, not one table"
        + (f": {listed}." if members else "."),
        "Put one table into it, or unpack it and give one of its files.",
    )


def _counts(name: str) -> bool:
    """Whether the member counts as a file: folders, nameless members and what archivers of some
    systems add do not."""
    parts = PurePosixPath(name).parts
    if not parts or name.endswith("/"):
        return False
    return "__MACOSX" not in parts and not parts[-1].startswith(".")


def _refuse_cut_frames(path: Path) -> None:
    """Checks for cut frames.

    A zstd stream that ends in the middle of a frame reads like a shorter one: its blocks are
    stepped through, by their headers only, before anything is read."""
    cut = InputError(f"{path.name} is cut off: its last zstd frame has no end.", "Send it again.")
    size = path.stat().st_size
    with path.open("rb") as file:
        while (start := file.tell()) < size:
            head = file.read(18)
            if len(head) < 8:
                raise cut
            magic, skipped = struct.unpack("<II", head[:8])
            if magic & 0xFFFFFFF0 == _ZSTD_SKIPPABLE:
                file.seek(start + 8 + skipped)
                continue
            if not head.startswith(_ZSTD_MAGIC):
                raise InputError(
                    f"{path.name} has other bytes after its zstd data.", "Remove them."
                )
            file.seek(start + zstandard.frame_header_size(head))
            _walk_blocks(file, bool(head[4] & 4), cut)
            if file.tell() > size:
                raise cut


def _walk_blocks(file: IO[bytes], has_checksum: bool, cut: InputError) -> None:
    last = False
    while not last:
        header = file.read(3)
        if len(header) < 3:
            raise cut
        bits = int.from_bytes(header, "little")
        last, kind, length = bool(bits & 1), bits >> 1 & 3, bits >> 3
        file.seek(1 if kind == 1 else length, io.SEEK_CUR)
    if has_checksum:
        file.seek(4, io.SEEK_CUR)
