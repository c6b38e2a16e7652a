"""A prefix of a bucket that files arrive under."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from holdfast.errors import FilesGone, TooLarge, UserError
from holdfast.files.bucket import BucketStore
from holdfast.files.contract import stream_to
from holdfast.files.places.contract import (
    DONE,
    FAILED,
    REASON,
    Arrived,
    FileTrouble,
    PlaceTrouble,
    is_wanted,
    numbered,
)
from holdfast.stored_files import Written

_LARGEST_REASON = 100_000


class BucketPlace:
    """Only what lies directly under the prefix: `done/` and `failed/` are below it."""

    def __init__(self, store: BucketStore) -> None:
        self._store = store

    async def arrivals(self) -> list[Arrived]:
        try:
            found = [
                Arrived(info.key, info.size, info.modified_at.isoformat())
                async for info in self._store.list_level()
                if is_wanted(info.key)
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
        key = await self._move(file, FAILED)
        if key is not None:
            with _troubles():
                await self._store.put(key + REASON, reason.encode(), max_bytes=_LARGEST_REASON)

    async def clear(self, name: str) -> None:
        with _troubles():
            await self._store.delete(name)

    async def _move(self, file: Arrived, where: str) -> str | None:
        with _troubles():
            info = await self._store.find(file.name)
            if info is None or Arrived(file.name, info.size, info.modified_at.isoformat()) != file:
                return None
            number = 1
            while await self._store.find(key := f"{where}/{numbered(file.name, number)}"):
                number += 1
            await self._store.move(file.name, key)
        return str(PurePosixPath(key))


@contextmanager
def _troubles() -> Iterator[None]:
    try:
        yield
    except FilesGone as error:
        raise PlaceTrouble(error.message) from None
    except TooLarge:
        raise
    except UserError as error:  # it is gone, or its name is not one that we take
        raise FileTrouble(error.message) from None
