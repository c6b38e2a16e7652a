"""Stored images: what is known about them, and how one becomes the input of an item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.columns import BAD_ROW
from holdfast.features.library.files import StoredFile
from holdfast.sources.images import Image

IMAGE = "image"
#: The format of a zip of images.
ARCHIVE = "archive"
#: The kind of a stored file whose rows are images.
IMAGE_LIST = "images"


def detected_image(image: Image) -> dict[str, Any]:
    """Returns the `detected` of a stored image."""
    return {
        "format": IMAGE,
        "media_type": image.media_type,
        "width": image.width,
        "height": image.height,
        "columns": [],
        "notes": [],
    }


def detected_archive(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the `detected` of a stored zip of images."""
    bad = sum(1 for row in rows if BAD_ROW in row)
    notes = [f"{len(rows) - bad:,} images in a zip."]
    if bad:
        notes.append(f"{bad:,} other files become items with an error.")
    return {"format": ARCHIVE, "columns": ["name", "path", "media_type", "size"], "notes": notes}


def is_archive(file: StoredFile) -> bool:
    return file.detected.get("format") == ARCHIVE


def archived_row(row: Mapping[str, Any], file: StoredFile) -> dict[str, Any]:
    """Returns an image of a stored zip as an item's input; `ctx.file` finds its bytes."""
    if BAD_ROW in row:
        return dict(row)
    return {"file_id": file.id, "key": file.key, **row}


def job_name(file: StoredFile) -> str:
    """Returns the name of a job over it: a list of images has the name of its source."""
    return file.name.removesuffix(".jsonl") if file.kind == IMAGE_LIST else file.name


def listed_files(file: StoredFile) -> Sequence[int]:
    """Returns the stored files that a list of images names."""
    ids: Sequence[int] = file.detected.get("files", ())
    return ids


def is_image(file: StoredFile) -> bool:
    return file.detected.get("format") == IMAGE


def image_row(file: StoredFile) -> dict[str, Any]:
    """Returns an image as an item's input; `ctx.file` finds its bytes."""
    return {
        "file_id": file.id,
        "name": file.name,
        "media_type": file.detected["media_type"],
        "size": file.size,
        "width": file.detected["width"],
        "height": file.detected["height"],
        "sha256": file.sha256,
        "key": file.key,
    }
