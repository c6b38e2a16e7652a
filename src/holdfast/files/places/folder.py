"""A folder of this host that files arrive in."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from holdfast.files.contract import BLOCK_BYTES, Meter
from holdfast.files.places.contract import (
    DONE,
    FAILED,
    REASON,
    Arrived,
    PlaceTrouble,
    is_wanted,
    numbered,
)
from holdfast.stored_files import Written


class FolderPlace:
    """`roots` are the folders below which it must be, wherever links lead."""

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
        await asyncio.to_thread(self._refuse, file, reason)

    async def clear(self, name: str) -> None:
        await asyncio.to_thread((self._checked() / name).unlink, missing_ok=True)

    def _checked(self) -> Path:
        """The folder, if it is where it may be."""
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
                        found.append(_arrived(entry.name, entry.stat(follow_symlinks=False)))
        except OSError as error:
            raise PlaceTrouble(f"the folder {folder} cannot be read: {error.strerror}") from None
        return sorted(found, key=lambda file: file.name)

    def _fetch(self, file: Arrived, target: Path, max_bytes: int) -> Written:
        meter = Meter(max_bytes)
        try:
            # Not through a link that took the file's place.
            source = os.open(self._checked() / file.name, os.O_RDONLY | os.O_NOFOLLOW)
        except OSError as error:
            raise PlaceTrouble(f"{file.name} cannot be opened: {error.strerror}") from None
        with os.fdopen(source, "rb", buffering=0) as stream, target.open("xb") as copy:
            while block := stream.read(BLOCK_BYTES):
                meter.add(block)
                copy.write(block)
            if _arrived(file.name, os.fstat(stream.fileno())) != file:
                raise PlaceTrouble(f"{file.name} changed while it was read")
        return meter.written(file.name)

    def _move(self, file: Arrived, where: str) -> Path | None:
        folder = self._checked()
        source, target = folder / file.name, folder / where
        try:
            if _arrived(file.name, source.stat(follow_symlinks=False)) != file:
                return None  # another file has this name now
            target.mkdir(exist_ok=True)
            number = 1
            while (place := target / numbered(file.name, number)).exists():
                number += 1
            return source.rename(place)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise PlaceTrouble(f"{file.name} cannot be moved to {where}: {error}") from None

    def _refuse(self, file: Arrived, reason: str) -> None:
        moved = self._move(file, FAILED)
        if moved is not None:
            moved.with_name(moved.name + REASON).write_text(reason + "\n", encoding="utf-8")


def _arrived(name: str, stat: os.stat_result) -> Arrived:
    return Arrived(name, stat.st_size, str(stat.st_mtime_ns))
