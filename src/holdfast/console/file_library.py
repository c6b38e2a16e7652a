"""Files that people upload or refer to: checked, stored once by content, previewed."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from holdfast.columns import Inputs
from holdfast.console import Console
from holdfast.console.files import NewFile, StoredFile
from holdfast.console.images import IMAGE_LIST, detected_image, image_row, is_image
from holdfast.errors import InputError, NotAllowed, UserError
from holdfast.file_store import place_of
from holdfast.sources.images import image_in
from holdfast.store.idempotency import RequestKey
from holdfast.tables.files import Detected, content_key, open_table
from holdfast.tables.plan import reading_plan
from holdfast.tables.threads import look
from holdfast.tables.writers import UNFINISHED

TABLE_OPTIONS = ("encoding", "delimiter", "sheet", "header_row")
HEADER_ROW = "Row that names the columns, counted from 1; 0 if the first row is data."
#: The kind of a stored file that stays where the server's owner keeps it.
REFERENCE = "reference"
#: Prefix of the folders in which files arrive until they are complete.
ARRIVING = ".arriving-"
MOST_IMAGES = 1000
_PREVIEW_ROWS = 20
_PREVIEW_BYTES = 1 << 20
#: A file that is still arriving or being written is touched all the time.
_UNTOUCHED_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class Received:
    """A file that arrived completely, still under a temporary name."""

    name: str
    path: Path
    size: int
    sha256: str

    def move_to(self, folder: Path) -> Path:
        """Moves it to the place its content determines, so that the same file is stored once."""
        place = place_of(folder, self.sha256, self.name)
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path.replace(place)
        return place


@dataclass(frozen=True, slots=True)
class Preview:
    detected: Mapping[str, Any]
    rows: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class FileLimits:
    roots: tuple[Path, ...]  # folders whose files may be referred to
    max_upload_bytes: int
    table: Mapping[str, float]  # by the names of TableOptions


class FileLibrary:
    def __init__(self, console: Console, folder: Path, limits: FileLimits) -> None:
        self._files = console.files
        self._quotas = console.quotas
        self.folder = folder
        self.limits = limits

    async def store(
        self,
        received: Received,
        table: Mapping[str, Any],
        owner: str,
        request: RequestKey | None = None,
    ) -> StoredFile:
        """Keeps an upload if it is an image, or a table with rows."""
        path = received.path.with_name(received.name)
        received.path.rename(path)
        detected = await look(self._detect, path, table)
        await self._quotas.require(owner, files=1, bytes=received.size)
        complete = Received(received.name, path, received.size, received.sha256)
        place = await asyncio.to_thread(complete.move_to, self.folder)
        return await self._add(complete, place, "upload", owner, detected, request)

    async def refer(self, path: str, table: Mapping[str, Any], owner: str) -> StoredFile:
        """Refers to a file under one of the configured roots; it stays where it is."""
        place = await asyncio.to_thread(self._under_a_root, path)
        preview = await look(self._preview_table, place, table)
        _require_rows(place, preview.rows)
        sha256 = await look(content_key, place)
        file = Received(place.name, place, place.stat().st_size, sha256)
        return await self._add(file, place, REFERENCE, owner, preview.detected)

    async def preview(self, file: StoredFile, table: Mapping[str, Any]) -> Preview:
        """What was detected with these table options, and the first rows."""
        if is_image(file):
            return Preview(file.detected, [image_row(file)])
        await self.require_in_place(file)
        return await look(self._preview_table, Path(file.path), table)

    async def plan(
        self,
        file: StoredFile,
        inputs: Inputs,
        table: Mapping[str, Any],
        columns: Mapping[str, str],
    ) -> dict[str, Any]:
        """How a job will read the file. Without table options, its upload detected that."""
        if is_image(file) or file.kind == IMAGE_LIST:
            return dict(table)
        detected = file.detected
        if table:
            detected = (await self.preview(file, table)).detected
        return reading_plan(Detected(**detected), inputs, table, columns)

    async def require_in_place(self, file: StoredFile) -> None:
        """A referenced file may have become a link to somewhere else since, and its folder may
        no longer be open to the API."""
        if file.kind == REFERENCE:
            place = await asyncio.to_thread(self._under_a_root, file.path)
            if str(place) != file.path:
                raise NotAllowed(
                    f"{file.name} now leads to another file", "Refer to the file again."
                )

    async def images(self, ids: Sequence[int], scope: str | None) -> list[StoredFile]:
        files = await self._all(ids, scope)
        _require_images(files)
        return files

    async def _all(self, ids: Sequence[int], scope: str | None) -> list[StoredFile]:
        if len(ids) > MOST_IMAGES:
            raise UserError(f"more than {MOST_IMAGES:,} images are selected", "Make several jobs.")
        return [await self._files.file(file_id, scope) for file_id in dict.fromkeys(ids)]

    async def job_input(
        self, ids: Sequence[int], table: Mapping[str, Any], owner: str, scope: str | None
    ) -> StoredFile:
        """The file whose rows a job over these stored files ingests: the one table, or a list of
        the images. A table is opened as the job would open it, so that its owner learns at once
        what is wrong with it."""
        files = await self._all(ids, scope)
        if len(files) == 1 and not is_image(files[0]):
            await self.require_in_place(files[0])
            if table:  # without options it was opened when it was stored
                await look(self._preview_table, Path(files[0].path), table)
            return files[0]
        _require_images(files)
        return await self._list_images(files, owner)

    async def clear_leftovers(self, now: float) -> None:
        """Removes what killed processes left half written, in this folder that they share."""
        await asyncio.to_thread(_clear, self.folder, now - _UNTOUCHED_SECONDS)

    async def _list_images(self, files: Sequence[StoredFile], owner: str) -> StoredFile:
        rows = [image_row(file) for file in files]
        received, place = await asyncio.to_thread(_write_rows, rows, self.folder)
        detected = {"format": "jsonl", "columns": list(rows[0]), "notes": []}
        return await self._add(received, place, IMAGE_LIST, owner, detected)

    async def _add(
        self,
        file: Received,
        place: Path,
        kind: str,
        owner: str,
        detected: Mapping[str, Any],
        request: RequestKey | None = None,
    ) -> StoredFile:
        path = str(place.resolve())
        new = NewFile(owner, place.name, kind, path, file.size, file.sha256, detected, request)
        return await self._files.file(await self._files.add_file(new))

    def _detect(self, path: Path, table: Mapping[str, Any]) -> Mapping[str, Any]:
        image = image_in(path)
        if image is not None:
            return detected_image(image)
        preview = self._preview_table(path, table)
        _require_rows(path, preview.rows)
        return preview.detected

    def _preview_table(self, path: Path, table: Mapping[str, Any]) -> Preview:
        with open_table(path, {**table, **self.limits.table}) as file:
            batch = next(file.pages(0, lambda: _PREVIEW_ROWS, _PREVIEW_BYTES))
            rows = [orjson.loads(text) for text in islice(batch.inputs, _PREVIEW_ROWS)]
            return Preview(asdict(file.detected), rows)

    def _under_a_root(self, path: str) -> Path:
        """Links are followed before their target is checked."""
        refused = NotAllowed(
            f"{path!r} is not a file in a folder that is open to the API",
            "HOLDFAST_FILE_ROOTS lists the folders.",
        )
        if "\0" in path:
            raise refused
        for root in self.limits.roots:
            # The name may be too long, a link circular, a folder unreadable.
            with suppress(OSError, RuntimeError):
                place = (root / path).resolve()
                if place.is_relative_to(root.resolve()) and place.is_file():
                    return place
        raise refused


def table_options(fields: Mapping[str, str]) -> dict[str, Any]:
    """The table options in a form's fields; an empty field means that it is not given."""
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
            f"{tables[0]} is not an image", "Make a job over one table, or over images only."
        )


def _write_rows(rows: Sequence[dict[str, Any]], folder: Path) -> tuple[Received, Path]:
    text = b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows)
    name = "1 image.jsonl" if len(rows) == 1 else f"{len(rows):,} images.jsonl"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(prefix=ARRIVING, dir=folder) as arriving:
        path = Path(arriving) / name
        with path.open("wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        received = Received(name, path, len(text), hashlib.sha256(text).hexdigest())
        return received, received.move_to(folder)


def _clear(folder: Path, before: float) -> None:
    unfinished = [*folder.glob(f"{ARRIVING}*"), *(folder / "exports").glob(f"{UNFINISHED}*")]
    for path in unfinished:
        if _touched_at(path) < before:
            shutil.rmtree(path, ignore_errors=True)


def _touched_at(folder: Path) -> float:
    try:
        return max(path.stat().st_mtime for path in (folder, *folder.iterdir()))
    except OSError:
        return float("inf")  # another process is removing it
