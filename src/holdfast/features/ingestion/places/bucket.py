"""Watches a prefix of a bucket under which files arrive."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.errors import FilesGone, TooLarge, UserError
from holdfast.features.ingestion.places.contract import (
    DONE,
    FAILED,
    LONGEST_IN_BUCKET,
    REASON,
    Arrived,
    FileTrouble,
    PlaceTrouble,
    is_wanted,
    numbered,
    with_ending,
)
from holdfast.files.bucket import BucketStore
from holdfast.files.contract import stream_to
from holdfast.stored_files import FileInfo, Written

_LARGEST_REASON = 100_000


class BucketPlace:
    """The files directly under a prefix: `done/` and `failed/` are below it."""

    def __init__(self, store: BucketStore) -> None:
        self._store = store

    async def arrivals(self) -> list[Arrived]:
        try:
            found = [
                _arrived(info) async for info in self._store.list_level() if is_wanted(info.key)
            ]
        except (FilesGone, UserError) as error:
            raise PlaceTrouble(error.message) from None
        return sorted(found, key=lambda file: file.name)

    async def fetch(self, file: Arrived, target: Path, max_bytes: int) -> Written:
        with _troubles():
            written = await stream_to(
                self._store, file.name, target, max_bytes=max_bytes, sha256=None
            )
        if written.size != file.size:
            raise FileTrouble(f"{file.shown} changed while it was read")
        return written

    async def accept(self, file: Arrived) -> None:
        await self._move(file, DONE)

    async def refuse(self, file: Arrived, reason: str) -> None:
        name = await self._move(file, FAILED)
        if name is not None:
            with _troubles():
                reason_key = f"{FAILED}/{with_ending(name, REASON, LONGEST_IN_BUCKET)}"
                await self._store.put(reason_key, reason.encode(), max_bytes=_LARGEST_REASON)

    async def clear(self, name: str) -> None:
        with _troubles():
            await self._store.delete(name)

    async def _move(self, file: Arrived, where: str) -> str | None:
        """Moves a file; returns its name there, or None if it was moved before, or another file has
        its name now."""
        with _troubles():
            if not await self._is_as_listed(file):
                return None
            number = 1
            while await self._store.find(key := f"{where}/{self._numbered(file, number)}"):
                number += 1
            # A copy, then the deletion: if it is killed in between, both exist.
            await self._store.copy(file.name, key)
            if not await self._is_as_listed(file):
                await self._store.delete(key)
                return None
            await self._store.delete(file.name)
        return self._numbered(file, number)

    async def _is_as_listed(self, file: Arrived) -> bool:
        info = await self._store.find(file.name)
        return info is not None and _arrived(info) == file

    @staticmethod
    def _numbered(file: Arrived, number: int) -> str:
        return numbered(file.name, number, LONGEST_IN_BUCKET)


def _arrived(info: FileInfo) -> Arrived:
    return Arrived(info.key, info.size, f"{info.modified_at.isoformat()} {info.tag}".strip())


@contextmanager
def _troubles() -> Iterator[None]:
    try:
        yield
    except FilesGone as error:
        raise PlaceTrouble(error.message) from None
    except TooLarge:
        raise
    except UserError as error:  # it is gone, or its name is not one that we accept
        raise FileTrouble(error.message) from None
