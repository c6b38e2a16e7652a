"""Removes what killed processes leave in the file store and on their hosts."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from holdfast.files import FileAccess
from holdfast.files.local import UNTOUCHED
from holdfast.stored_files import EXPORTS, UPLOADS, FileInfo

if TYPE_CHECKING:
    from holdfast.features.console import Console

_DUTY = "files"
#: How many objects one round looks at, so that a large bucket does not take long.
_ROUND = 10_000
_BATCH = 500


class FileLeftovers:
    """Removes objects without a row.

    An object is written before its row, so a process that is killed in between leaves one. It is
    removed when it is a day old: until then its row may still come."""

    def __init__(self, console: Console, access: FileAccess, holder: str, log: Any) -> None:
        """Takes as `holder` the name of the process: only one at a time looks into the store."""
        self._console = console
        self._access = access
        self._holder = holder
        self._log = log
        self._after = {UPLOADS: "", EXPORTS: ""}

    async def clear(self, now: datetime) -> None:
        await self._access.local.clear(now)
        workers = self._console.store.workers
        if await workers.hold_duty(_DUTY, self._holder):
            await self.clear_store(now)

    async def clear_store(self, now: datetime) -> None:
        await self._access.store.drop_unfinished(now - UNTOUCHED)
        await self._drop_drafts()
        for prefix in self._after:
            await self._clear(prefix, now - UNTOUCHED)

    async def _drop_drafts(self) -> None:
        """Drops the rows of files that came with requests which were never answered; after that,
        their objects have none."""
        files = self._console.files
        await files.drop_drafts(await files.old_drafts(UNTOUCHED.total_seconds(), _ROUND))

    async def _clear(self, prefix: str, before: datetime) -> None:
        """Clears objects; continues where the last round ended."""
        seen, batch = 0, list[FileInfo]()
        async for info in self._access.store.list(prefix, self._after[prefix]):
            seen, self._after[prefix] = seen + 1, info.key
            if info.modified_at < before:
                batch.append(info)
            if len(batch) >= _BATCH:
                await self._drop_unknown(batch)
                batch = []
            if seen >= _ROUND:
                break
        else:
            self._after[prefix] = ""
        await self._drop_unknown(batch)

    async def _drop_unknown(self, batch: list[FileInfo]) -> None:
        if not batch:
            return
        known = await self._console.files.known_keys([info.key for info in batch])
        unknown = [info for info in batch if info.key not in known]
        for info in unknown:
            await self._access.store.delete(info.key)
        if unknown:
            size = sum(info.size for info in unknown)
            self._log.info("files.cleared", count=len(unknown), bytes=size)
