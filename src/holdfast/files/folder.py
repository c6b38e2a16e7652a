"""Keeps files in a folder: for one host, or for several that mount the same folder."""

from __future__ import annotations

import asyncio
import errno
import os
import secrets
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from holdfast.errors import UserError
from holdfast.files.contract import (
    BLOCK_BYTES,
    Meter,
    checked_key,
    checked_prefix,
    conditional_limit,
    measure,
    missing,
)
from holdfast.stored_files import Content, FileInfo, Written

#: Prefix of the names under which files are written until they are complete.
_UNFINISHED = ".writing-"
_LISTED_AT_ONCE = 1000
_TRIES = 5


class FolderStore:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def place(self) -> str:
        return f"folder {self._folder}"

    async def put(
        self, key: str, content: Content, *, max_bytes: int, if_absent: bool = False
    ) -> Written | None:
        path = self._path(key)
        meter = Meter(conditional_limit(max_bytes) if if_absent else max_bytes)
        with self._unfinished() as unfinished:
            if isinstance(content, Path):
                await asyncio.to_thread(_take, content, unfinished, meter)
            else:
                await _write(content, unfinished, meter)
            if not await asyncio.to_thread(_settle, unfinished, path, if_absent):
                return None
        return meter.written(key)

    async def stream(
        self, key: str, start: int = 0, end: int | None = None
    ) -> AsyncIterator[bytes]:
        with _failures(key):
            file = await asyncio.to_thread(self._path(key).open, "rb", 0)
        with file:
            file.seek(start)
            left = None if end is None else end - start
            while left is None or left > 0:
                size = BLOCK_BYTES if left is None else min(left, BLOCK_BYTES)
                block = await asyncio.to_thread(file.read, size)
                if not block:
                    return
                left = None if left is None else left - len(block)
                yield block

    async def copy_to(self, key: str, path: Path, *, max_bytes: int, sha256: str | None) -> None:
        meter = Meter(max_bytes)
        with _failures(key):
            await asyncio.to_thread(_link, self._path(key), path)
        await asyncio.to_thread(measure, path, meter)
        meter.require(key, sha256)

    async def find(self, key: str) -> FileInfo | None:
        return await asyncio.to_thread(_info, key, self._path(key))

    async def list(self, prefix: str, after: str = "") -> AsyncIterator[FileInfo]:
        prefix = checked_prefix(prefix)
        files = _files(self._folder / prefix, prefix, after)
        while batch := await asyncio.to_thread(lambda: [*islice(files, _LISTED_AT_ONCE)]):
            for info in batch:
                yield info

    async def delete(self, key: str) -> None:
        await asyncio.to_thread(_delete, self._path(key), self._folder)

    async def drop_unfinished(self, before: datetime) -> None:
        await asyncio.to_thread(_drop_unfinished, self._folder, before.timestamp())

    def _path(self, key: str) -> Path:
        return self._folder / checked_key(key)

    @contextmanager
    def _unfinished(self) -> Iterator[Path]:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self._folder / f"{_UNFINISHED}{secrets.token_hex(8)}"
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)


@contextmanager
def _failures(key: str) -> Iterator[None]:
    try:
        yield
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        raise missing(key) from None


def _take(content: Path, path: Path, meter: Meter) -> None:
    measure(content, meter)
    _link(content, path)
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _link(source: Path, path: Path) -> None:
    """Links a file; copies it only if a link is not possible."""
    try:
        path.hardlink_to(source)
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP):
            raise
        shutil.copyfile(source, path)


async def _write(content: Content, path: Path, meter: Meter) -> None:
    # Buffered: a write without a buffer may write only a part, for example when the disk becomes
    # full.
    with path.open("xb") as file:
        if isinstance(content, bytes):
            meter.add(content)
            await asyncio.to_thread(file.write, content)
        else:
            assert not isinstance(content, Path)
            async for block in content:
                meter.add(block)
                await asyncio.to_thread(file.write, block)
        await asyncio.to_thread(file.flush)
        await asyncio.to_thread(os.fsync, file.fileno())


def _settle(unfinished: Path, path: Path, if_absent: bool) -> bool:
    """Gives a complete file its name; returns False if it must not replace the one that has it."""
    for _ in range(_TRIES):
        # A deletion nearby may remove the folder again before the file is in it.
        with suppress(FileNotFoundError):
            try:
                path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                if if_absent:
                    path.hardlink_to(unfinished)
                else:
                    unfinished.replace(path)
            except (NotADirectoryError, IsADirectoryError):
                raise _is_folder(path) from None
            except FileExistsError:
                if not path.is_file():  # a part of the key is a file
                    raise _is_folder(path) from None
                return False
            _sync_folder(path.parent)
            return True
    raise OSError(errno.ENOENT, "its folder is removed again and again", str(path))


def _is_folder(path: Path) -> UserError:
    return UserError(
        f"{path.name!r} cannot be written: in a folder, a key cannot continue another key",
        "Use keys of which none begins with another one and a slash.",
    )


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _info(key: str, path: Path) -> FileInfo | None:
    try:
        state = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not path.is_file():
        return None
    return FileInfo(key, state.st_size, datetime.fromtimestamp(state.st_mtime, UTC))


def _files(folder: Path, prefix: str, after: str) -> Iterator[FileInfo]:
    """Lists files in the order of the keys, as most buckets do: a folder counts with its slash."""
    try:
        names = [f"{entry.name}/" if entry.is_dir() else entry.name for entry in os.scandir(folder)]
    except (FileNotFoundError, NotADirectoryError):
        return
    for name in sorted(names):
        key = prefix + name
        if name.startswith("."):
            continue
        if name.endswith("/"):
            if key > after or after.startswith(key):
                yield from _files(folder / name, key, after)
        elif key > after:
            info = _info(key, folder / name)
            if info is not None:
                yield info


def _delete(path: Path, root: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except (NotADirectoryError, IsADirectoryError, PermissionError):
        if path.is_file():
            raise
        return
    with suppress(OSError):  # not empty, or gone already
        for folder in path.parents:
            if folder == root:
                return
            folder.rmdir()


def _drop_unfinished(root: Path, before: float) -> None:
    for path in root.glob(f"{_UNFINISHED}*"):
        with suppress(OSError):
            if path.stat().st_mtime < before:
                path.unlink()
