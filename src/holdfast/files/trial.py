"""The file store as a dry run sees it: what it writes or deletes is kept apart, and forgotten."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from holdfast.files.access import FileAccess
from holdfast.files.contract import FileStore
from holdfast.files.folder import FolderStore
from holdfast.stored_files import Content, FileInfo, Written


@asynccontextmanager
async def on_trial(files: FileAccess) -> AsyncIterator[FileAccess]:
    """Provides the same files, in which nothing is changed."""
    async with files.local.passing() as folder:
        yield replace(files, store=TrialStore(files.store, FolderStore(folder)))


class TrialStore:
    """Reads from `kept` what was neither written to `tried` nor deleted."""

    def __init__(self, kept: FileStore, tried: FileStore) -> None:
        self._kept = kept
        self._tried = tried
        self._hidden: set[str] = set()  # keys for which `kept` is no longer asked

    @property
    def place(self) -> str:
        return self._kept.place

    async def put(
        self, key: str, content: Content, *, max_bytes: int, if_absent: bool = False
    ) -> Written | None:
        if if_absent and await self.find(key) is not None:
            return None
        written = await self._tried.put(key, content, max_bytes=max_bytes, if_absent=if_absent)
        self._hidden.add(key)
        return written

    def stream(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        return self._of(key).stream(key, start, end)

    async def copy_to(self, key: str, path: Path, *, max_bytes: int, sha256: str | None) -> None:
        await self._of(key).copy_to(key, path, max_bytes=max_bytes, sha256=sha256)

    async def find(self, key: str) -> FileInfo | None:
        return await self._of(key).find(key)

    async def list(self, prefix: str, after: str = "") -> AsyncIterator[FileInfo]:
        tried = sorted(
            [info async for info in self._tried.list(prefix, after)], key=lambda info: info.key
        )
        async for info in self._kept.list(prefix, after):
            while tried and tried[0].key < info.key:
                yield tried.pop(0)
            if info.key not in self._hidden:
                yield info
        for info in tried:
            yield info

    async def delete(self, key: str) -> None:
        if await self.find(key) is None:
            return
        await self._tried.delete(key)
        self._hidden.add(key)

    async def drop_unfinished(self, before: datetime) -> None:
        """Does nothing: the folder of the trial's files is removed as a whole."""

    def _of(self, key: str) -> FileStore:
        return self._tried if key in self._hidden else self._kept
