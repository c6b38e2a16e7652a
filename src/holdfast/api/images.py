"""Jobs over images: a list of them is stored as a file of rows, one for each image."""

from __future__ import annotations

import asyncio
import hashlib
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from holdfast.api.identity import Person
from holdfast.api.parts import Parts
from holdfast.api.uploading import ARRIVING, Received
from holdfast.console.files import NewFile, StoredFile
from holdfast.errors import UserError
from holdfast.sources.images import Image

IMAGE = "image"
#: The kind of a stored file whose rows are images.
IMAGE_LIST = "images"


def detected_image(image: Image) -> dict[str, Any]:
    """As `detected` of a stored file says it."""
    return {
        "format": IMAGE,
        "media_type": image.media_type,
        "width": image.width,
        "height": image.height,
        "columns": [],
        "notes": [],
    }


def is_image(file: StoredFile) -> bool:
    return file.detected.get("format") == IMAGE


def row_of(file: StoredFile) -> dict[str, Any]:
    """An image as an item's input; ctx.file finds its bytes."""
    return {
        "file_id": file.id,
        "name": file.name,
        "media_type": file.detected["media_type"],
        "size": file.size,
        "width": file.detected["width"],
        "height": file.detected["height"],
        "sha256": file.sha256,
    }


async def rows_of(files: Sequence[StoredFile], person: Person, parts: Parts) -> StoredFile:
    """The file whose rows a job over these files takes in."""
    if len(files) == 1 and not is_image(files[0]):
        return files[0]
    return await listed(files, person, parts)


async def listed(files: Sequence[StoredFile], person: Person, parts: Parts) -> StoredFile:
    """A file whose rows are the images."""
    tables = [file.name for file in files if not is_image(file)]
    if tables:
        raise UserError(f"{tables[0]} is no image", "Make a job over one table, or over images.")
    rows = [row_of(file) for file in files]
    place, size, sha256 = await asyncio.to_thread(_written, rows, parts.files)
    detected = {"format": "jsonl", "columns": list(rows[0]), "notes": []}
    new = NewFile(person.name, place.name, IMAGE_LIST, str(place.resolve()), size, sha256, detected)
    return await parts.console.files.file(await parts.console.files.add_file(new))


def _written(rows: Sequence[dict[str, Any]], folder: Path) -> tuple[Path, int, str]:
    text = b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows)
    sha256 = hashlib.sha256(text).hexdigest()
    name = "1 image.jsonl" if len(rows) == 1 else f"{len(rows):,} images.jsonl"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(prefix=ARRIVING, dir=folder) as passing:
        path = Path(passing) / name
        with path.open("wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        return Received(name, path, len(text), sha256).keep(folder), len(text), sha256
