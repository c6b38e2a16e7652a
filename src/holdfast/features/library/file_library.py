"""Files that people upload or refer to: checked, stored once by content, previewed."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from copy import copy
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from holdfast.columns import Inputs
from holdfast.errors import DatabaseGone, FilesGone, InputError, UserError
from holdfast.features.library.file_imports import FileImports, Received
from holdfast.features.library.files import NewFile, StoredFile
from holdfast.features.library.images import (
    IMAGE_LIST,
    archived_row,
    detected_archive,
    detected_image,
    image_row,
    is_archive,
    is_image,
)
from holdfast.files import FileAccess
from holdfast.files.contract import new_key
from holdfast.kernel.arrivals.idempotency import RequestKey
from holdfast.sources.image_archives import image_archive
from holdfast.sources.images import image_in
from holdfast.stored_files import UPLOADS
from holdfast.tables.files import Detected, open_table
from holdfast.tables.plan import reading_plan
from holdfast.tables.threads import look

if TYPE_CHECKING:
    from holdfast.features.console import Console

TABLE_OPTIONS = ("encoding", "delimiter", "sheet", "header_row")
HEADER_ROW = "Row that names the columns, counted from 1; 0 if the first row is data."
#: Kinds of stored files: uploaded by people, or copied from a folder or bucket that is open to the
#: API.
UPLOAD, IMPORT = "upload", "import"
MOST_IMAGES = 10_000
_FIRST_IMAGES = 5
_PREVIEW_ROWS = 20
_PREVIEW_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Preview:
    detected: Mapping[str, Any]
    rows: list[dict[str, Any]]


class FileLibrary:
    """The stored files that people can use.

    `table`: limits of reading a table, by the names of TableOptions."""

    def __init__(
        self, console: Console, access: FileAccess, imports: FileImports, table: Mapping[str, float]
    ) -> None:
        self._files = console.files
        self._quotas = console.quotas
        self._imports = imports
        self.access = access
        self.table_limits = table
        #: Files that are kept only if a job is created from them; None: each is kept.
        self.drafts: list[int] | None = None

    @asynccontextmanager
    async def drafting(self) -> AsyncIterator[FileLibrary]:
        """Provides the library for one request for a job: what it stores and no job keeps is
        removed. If the process is killed before, FileLeftovers removes it."""
        library = copy(self)
        library.drafts = list[int]()
        try:
            yield library
        finally:
            with suppress(DatabaseGone, FilesGone):
                await self._drop(library.drafts)

    async def _drop(self, drafts: Sequence[int]) -> None:
        for key in await self._files.drop_drafts(drafts) if drafts else ():
            await self.access.store.delete(key)

    async def store(
        self,
        received: Received,
        table: Mapping[str, Any],
        owner: str,
        request: RequestKey | None = None,
        kind: str = UPLOAD,
    ) -> tuple[StoredFile, Preview]:
        """Stores a file if it is an image, or a table with rows."""
        complete = received.under_its_name()
        preview = await look(self._detect, complete.path, table)
        await self._quotas.require(owner, files=1, bytes=received.size)
        file = await self._add(complete, kind, owner, preview.detected, request)
        return file, await self.preview(file, {}) if is_image(file) else preview

    @asynccontextmanager
    async def fetched_path(self, path: str) -> AsyncIterator[Received]:
        """Provides a copy of a file of the server, from a folder that is open to the API."""
        async with self.access.local.passing() as folder:
            yield await asyncio.to_thread(self._imports.copy_path, path, folder)

    @asynccontextmanager
    async def fetched_object(self, place: str, owner: str) -> AsyncIterator[Received]:
        """Provides a copy of an object, from a bucket that is open to the API."""
        async with self.access.local.passing() as folder:
            yield await self._imports.copy_object(place, owner, folder)

    def opened(self, file: StoredFile) -> AbstractAsyncContextManager[Path]:
        """Opens a local copy, to be read only."""
        return self.access.local.copy(
            self.access.store, file.key, file.name, size=file.size, sha256=file.sha256
        )

    async def preview(self, file: StoredFile, table: Mapping[str, Any]) -> Preview:
        """Returns what was detected with these table options, and the first rows."""
        if is_image(file):
            return Preview(file.detected, [image_row(file)])
        if is_archive(file):
            return Preview(file.detected, (await self.archived(file))[:_FIRST_IMAGES])
        async with self.opened(file) as path:
            return await look(self._preview_table, path, table)

    async def plan(
        self,
        file: StoredFile,
        inputs: Inputs,
        table: Mapping[str, Any],
        columns: Mapping[str, str],
    ) -> dict[str, Any]:
        """Describes how a job will read the file.

        Without table options, its upload has detected that."""
        if is_image(file) or is_archive(file) or file.kind == IMAGE_LIST:
            return dict(table)
        detected = file.detected
        if table:
            detected = (await self.preview(file, table)).detected
        return reading_plan(Detected(**detected), inputs, table, columns)

    async def images(self, ids: Sequence[int], scope: str | None) -> list[StoredFile]:
        files = await self._all(ids, scope)
        _require_images(files)
        return files

    async def _all(self, ids: Sequence[int], scope: str | None) -> list[StoredFile]:
        if len(ids) > MOST_IMAGES:
            raise UserError(f"more than {MOST_IMAGES:,} images are selected", "Start several jobs.")
        return [await self._files.file(file_id, scope) for file_id in dict.fromkeys(ids)]

    async def job_input(
        self, ids: Sequence[int], table: Mapping[str, Any], owner: str, scope: str | None
    ) -> StoredFile:
        """Returns the file whose rows a job over these stored files ingests: the one table, or a
        list of the images. A table is opened as the job would open it, so that its owner learns at
        once what is wrong with it."""
        files = await self._all(ids, scope)
        if len(files) == 1 and is_archive(files[0]):
            rows = await self.archived(files[0])
            return await self._store_list(rows, files[0].name, owner, [files[0].id])
        if len(files) == 1 and not is_image(files[0]):
            if table:  # without options it was opened when it was stored
                await self.preview(files[0], table)
            return files[0]
        _require_images(files)
        return await self._list_images(files, owner)

    async def archived(self, file: StoredFile) -> list[dict[str, Any]]:
        """Returns the images of a stored zip, as rows."""
        async with self.opened(file) as path:
            rows = await look(image_archive, path)
        return [archived_row(row, file) for row in rows or ()]

    async def _list_images(self, files: Sequence[StoredFile], owner: str) -> StoredFile:
        name = "1 image" if len(files) == 1 else f"{len(files):,} images"
        rows, ids = [image_row(file) for file in files], [file.id for file in files]
        return await self._store_list(rows, name, owner, ids)

    async def _store_list(
        self, rows: Sequence[dict[str, Any]], name: str, owner: str, ids: Sequence[int]
    ) -> StoredFile:
        """Stores a file with a row for each image, which a job ingests like any table.

        `ids`: the stored files that it names."""
        columns = next((list(row) for row in rows if "name" in row), [])
        detected = {"format": "jsonl", "columns": columns, "notes": [], "files": list(ids)}
        async with self.access.local.passing() as folder:
            received = await asyncio.to_thread(_write_rows, rows, folder, name)
            return await self._add(received, IMAGE_LIST, owner, detected)

    async def _add(
        self,
        file: Received,
        kind: str,
        owner: str,
        detected: Mapping[str, Any],
        request: RequestKey | None = None,
    ) -> StoredFile:
        """Stores the content first, then the row: if the process is killed in between, an object
        without a row is left, which FileLeftovers removes."""
        key, store = new_key(UPLOADS), self.access.store
        written = await store.put(key, file.path, max_bytes=self.access.max_bytes)
        if written is None or written.sha256 != file.sha256:
            raise InputError(f"{file.name} changed while it was stored", "Send it again.")
        draft = self.drafts is not None
        new = NewFile(owner, file.name, kind, key, file.size, file.sha256, detected, request, draft)
        try:
            return await self._files.file(await self._add_row(new))
        except UserError:  # refused, so there is no row
            await store.delete(key)
            raise

    async def _add_row(self, new: NewFile) -> int:
        file_id = await self._files.add_file(new)
        if self.drafts is not None:
            self.drafts.append(file_id)
        return file_id

    def _detect(self, path: Path, table: Mapping[str, Any]) -> Preview:
        image = image_in(path)
        if image is not None:
            return Preview(detected_image(image), [])
        images = image_archive(path)
        if images is not None:
            return Preview(detected_archive(images), images[:_FIRST_IMAGES])
        preview = self._preview_table(path, table)
        _require_rows(path, preview.rows)
        return preview

    def _preview_table(self, path: Path, table: Mapping[str, Any]) -> Preview:
        with open_table(path, {**table, **self.table_limits}) as file:
            batch = next(file.pages(0, lambda: _PREVIEW_ROWS, _PREVIEW_BYTES))
            rows = [orjson.loads(text) for text in islice(batch.inputs, _PREVIEW_ROWS)]
            return Preview(asdict(file.detected), rows)


def table_options(fields: Mapping[str, str]) -> dict[str, Any]:
    """Returns the table options in a form's fields; an empty field means that it is not given."""
    options: dict[str, Any] = {name: fields[name] for name in TABLE_OPTIONS if fields.get(name)}
    row = fields.get("headerRow") or options.pop("header_row", None)
    if row:
        if not (row.isascii() and row.isdecimal() and len(row) < 8):
            raise InputError(f"the header row {row[:50]!r} is not a number", HEADER_ROW)
        options["header_row"] = int(row)
    return options


def _require_rows(path: Path, rows: Sequence[Any]) -> None:
    if not rows:
        raise InputError(f"{path.name} has a header but no rows", "Choose a file with rows.")


def _require_images(files: Sequence[StoredFile]) -> None:
    tables = [file.name for file in files if not is_image(file)]
    if tables:
        raise UserError(
            f"{tables[0]} is not an image", "Start a job over one table, or over images only."
        )


def _write_rows(rows: Sequence[dict[str, Any]], folder: Path, name: str) -> Received:
    path, meter = folder / f"{name}.jsonl", hashlib.sha256()
    size = 0
    with path.open("wb") as file:
        for row in rows:
            line = orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)
            meter.update(line)
            size += file.write(line)
    return Received(path.name, path, size, meter.hexdigest())
