"""Images on the command line of `holdfast run`: stored like uploads, one row for each."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from holdfast.configuration import Settings
from holdfast.errors import UserError
from holdfast.features.console import open_console
from holdfast.features.jobs.new_jobs import job_file
from holdfast.features.library.compose import file_library
from holdfast.features.library.file_imports import Received
from holdfast.features.library.file_library import FileLibrary
from holdfast.kernel import Store
from holdfast.kernel.jobs.control import JobFile
from holdfast.sources.image_archives import image_archive
from holdfast.sources.images import image_in
from holdfast.tables.files import content_key


def are_images(paths: Sequence[Path]) -> bool:
    """Whether these are images, or one zip of them; a table is always a single file."""
    existing = [path for path in paths if path.is_file()]
    if len(existing) < len(paths):
        if len(paths) > 1:
            missing = next(path for path in paths if not path.is_file())
            raise UserError(f"there is no file {missing}", "Check the path.")
        return False
    others = [path for path in paths if image_in(path) is None]
    if len(paths) == 1:
        return not others or image_archive(paths[0]) is not None
    if others:
        raise UserError(
            f"{others[0].name} is not an image",
            "Give one table, one zip of images, or several images.",
        )
    return True


@dataclass(frozen=True, slots=True)
class ImageInput:
    """Images, or one zip of them, in the order of the command line."""

    settings: Settings
    paths: Sequence[Path]

    @property
    def name(self) -> str:
        return self.paths[0].name if len(self.paths) == 1 else f"{len(self.paths):,} images"

    def key(self) -> str:
        """Returns what finds their job again: a hash of their content and names."""
        if len(self.paths) == 1:
            return content_key(self.paths[0])
        digest = hashlib.sha256()
        for path in self.paths:
            digest.update(f"{content_key(path)} {path.name}\n".encode())
        return digest.hexdigest()

    @asynccontextmanager
    async def stored(self, store: Store) -> AsyncIterator[JobFile]:
        """Stores the list of the images in the file store while a job is created from it; it stays
        there with the job."""
        owner, ids = self.settings.owner, []
        async with self._library(store).drafting() as library:
            for path in self.paths:
                async with library.access.local.passing() as folder:
                    received = await asyncio.to_thread(_copied, path, folder)
                    ids.append((await library.store(received, {}, owner))[0].id)
            file = await library.job_input(ids, {}, owner, None)
            over = job_file(file, {}, library.drafts or ())
            yield replace(over, name=self.name, key=self.key())

    @asynccontextmanager
    async def opened(self, store: Store, file_id: int | None) -> AsyncIterator[Path]:
        """Provides a local copy of the list that a job reads."""
        file = await open_console(store).files.file(file_id or 0)
        async with self._library(store).opened(file) as path:
            yield path

    def _library(self, store: Store) -> FileLibrary:
        return file_library(self.settings, open_console(store))


def _copied(path: Path, folder: Path) -> Received:
    copy = folder / "file"
    shutil.copyfile(path, copy)
    return Received(path.name, copy, copy.stat().st_size, content_key(copy))
