"""Provides local copies, for code that needs a real file."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path

from holdfast.errors import FilesGone
from holdfast.files.contract import FileStore, missing

#: Prefix of the folders that contain files while a process works with them.
PASSING = ".passing-"
#: A folder in use is touched all the time.
UNTOUCHED = timedelta(days=1)
#: How much must stay free on the disk: the database and the logs may be on it too.
_RESERVED_BYTES = 256 * 1024 * 1024


class LocalFiles:
    """Temporary folders below one folder, which processes on a host may share."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @asynccontextmanager
    async def passing(self) -> AsyncIterator[Path]:
        """Provides a folder that is removed afterwards."""
        folder = await asyncio.to_thread(self._new)
        try:
            yield folder
        finally:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    @asynccontextmanager
    async def copy(
        self, store: FileStore, key: str, name: str, *, size: int, sha256: str | None
    ) -> AsyncIterator[Path]:
        """Provides a file of the store under its name, to be read only."""
        async with self.passing() as folder:
            self.require_room(size)
            path = folder / name
            await store.copy_to(key, path, max_bytes=size, sha256=sha256)
            yield path

    def require_room(self, size: int) -> None:
        if shutil.disk_usage(self.folder).free < size + _RESERVED_BYTES:
            raise FilesGone(
                f"{self.folder} has no room for a local copy of {size:,} bytes",
                "Free some space, or set HOLDFAST_DATA_DIR to a larger disk.",
            )

    async def clear(self, now: datetime) -> None:
        """Removes what killed processes left behind."""
        await asyncio.to_thread(_clear, self.folder, (now - UNTOUCHED).timestamp())

    def _new(self) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return Path(tempfile.mkdtemp(prefix=PASSING, dir=self.folder))


async def copied_size(store: FileStore, key: str) -> int:
    """Returns the size of a file, for the copy that is made of it."""
    info = await store.find(key)
    if info is None:
        raise missing(key)
    return info.size


def _clear(folder: Path, before: float) -> None:
    for path in folder.glob(f"{PASSING}*"):
        if _touched_at(path) < before:
            shutil.rmtree(path, ignore_errors=True)


def _touched_at(folder: Path) -> float:
    try:
        return max(path.stat().st_mtime for path in (folder, *folder.iterdir()))
    except OSError:
        return float("inf")  # another process is removing it
