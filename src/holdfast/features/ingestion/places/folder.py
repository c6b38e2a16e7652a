"""Watches a folder of this host in which files arrive."""

from __future__ import annotations

import asyncio
import errno
import os
import secrets
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from holdfast.features.ingestion.places.contract import (
    DONE,
    FAILED,
    REASON,
    Arrived,
    FileTrouble,
    PlaceTrouble,
    is_wanted,
    numbered,
    with_ending,
)
from holdfast.files.contract import BLOCK_BYTES, Meter
from holdfast.stored_files import Written

# Does not follow a link that took the file's place, nor wait for someone to write to a pipe.
_READ_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
_OPEN_FOLDER = os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY


class FolderPlace:
    """A folder where files arrive.

    `roots` are the folders below which it must be, wherever links lead."""

    def __init__(self, folder: Path, roots: Sequence[Path]) -> None:
        self._folder = folder
        self._roots = roots

    async def arrivals(self) -> list[Arrived]:
        return await asyncio.to_thread(self._list)

    async def fetch(self, file: Arrived, target: Path, max_bytes: int) -> Written:
        return await asyncio.to_thread(self._fetch, file, target, max_bytes)

    async def accept(self, file: Arrived) -> None:
        await asyncio.to_thread(self._move, file, DONE)

    async def refuse(self, file: Arrived, reason: str) -> None:
        await asyncio.to_thread(self._move, file, FAILED, reason)

    async def clear(self, name: str) -> None:
        await asyncio.to_thread((self._checked() / name).unlink, missing_ok=True)

    def _checked(self) -> Path:
        """Returns the folder, if it is where it may be."""
        try:
            folder = self._folder.resolve(strict=True)
        except (OSError, RuntimeError) as error:
            raise PlaceTrouble(f"the folder {self._folder} cannot be opened: {error}") from None
        roots = [root.resolve() for root in self._roots]
        if not folder.is_dir() or not any(folder.is_relative_to(root) for root in roots):
            raise PlaceTrouble(
                f"the folder {self._folder} is not in a folder of HOLDFAST_FILE_ROOTS"
            )
        return folder

    def _list(self) -> list[Arrived]:
        folder = self._checked()
        found = []
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_file(follow_symlinks=False) and is_wanted(entry.name):
                        with suppress(FileNotFoundError):  # renamed or deleted since
                            found.append(_arrived(entry.name, entry.stat(follow_symlinks=False)))
        except OSError as error:
            raise PlaceTrouble(f"the folder {folder} cannot be read: {error.strerror}") from None
        return sorted(found, key=lambda file: file.name)

    def _fetch(self, file: Arrived, target: Path, max_bytes: int) -> Written:
        meter = Meter(max_bytes)
        try:
            source = os.open(self._checked() / file.name, _READ_FILE)
        except OSError as error:
            raise FileTrouble(f"{file.shown} cannot be opened: {error.strerror}") from None
        with os.fdopen(source, "rb", buffering=0) as stream, target.open("xb") as copy:
            while block := stream.read(BLOCK_BYTES):
                meter.add(block)
                copy.write(block)
            if _arrived(file.name, os.fstat(stream.fileno())) != file:
                raise FileTrouble(f"{file.shown} changed while it was read")
        return meter.written(file.name)

    def _move(self, file: Arrived, where: str, reason: str | None = None) -> None:
        folder = self._checked()
        source = folder / file.name
        try:
            if _arrived(file.name, source.stat(follow_symlinks=False)) != file:
                return  # another file has this name now
            (folder / where).mkdir(exist_ok=True)
            # People who may write to the folder could put a link in its place, and so choose where
            # files are written. The descriptor is of the folder itself.
            target = os.open(folder / where, _OPEN_FOLDER)
            try:
                name = _move_into(target, source, file)
                if name is not None and reason is not None:
                    _write_into(target, with_ending(name, REASON), f"{reason}\n".encode())
            finally:
                os.close(target)
        except FileNotFoundError:
            return
        except OSError as error:
            raise FileTrouble(f"{file.shown} cannot be moved to {where}: {error}") from None


def _move_into(folder: int, source: Path, file: Arrived) -> str | None:
    """Moves the file; returns its name there, or None if another file has taken its place: that one
    stays, or is put back."""
    number = 1
    while _is_there(folder, name := numbered(source.name, number)):
        number += 1
    try:
        os.rename(source, name, dst_dir_fd=folder)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        return name if _copy_into(folder, name, source, file) else None
    if _arrived(file.name, os.stat(name, dir_fd=folder)) == file:
        return name
    with suppress(FileExistsError):  # an even later one has replaced it
        os.link(name, source, src_dir_fd=folder)
        os.unlink(name, dir_fd=folder)
    return None


def _copy_into(folder: int, name: str, source: Path, file: Arrived) -> bool:
    """Copies the file to a folder on another device."""
    part = f".{secrets.token_hex(8)}.part"
    copy = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=folder)
    try:
        with os.fdopen(copy, "wb") as target, open(source, "rb", opener=_open_file) as stream:
            shutil.copyfileobj(stream, target, BLOCK_BYTES)
        is_same = _arrived(file.name, source.stat(follow_symlinks=False)) == file
        if is_same:
            os.rename(part, name, src_dir_fd=folder, dst_dir_fd=folder)
            source.unlink()
        return is_same
    finally:
        with suppress(FileNotFoundError):
            os.unlink(part, dir_fd=folder)


def _open_file(path: str, _: int) -> int:
    return os.open(path, _READ_FILE)


def _is_there(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _write_into(folder: int, name: str, content: bytes) -> None:
    """Writes a new file; an existing one stays, because it may be a link."""
    with suppress(FileExistsError):
        file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=folder)
        with os.fdopen(file, "wb") as stream:
            stream.write(content)


def _arrived(name: str, stat: os.stat_result) -> Arrived:
    return Arrived(name, stat.st_size, str(stat.st_mtime_ns))
