"""Stored images: what is known of them, and how one becomes the input of an item."""

from __future__ import annotations

from typing import Any

from holdfast.console.files import StoredFile
from holdfast.sources.images import Image

IMAGE = "image"
#: The kind of a stored file whose rows are images.
IMAGE_LIST = "images"


def detected_image(image: Image) -> dict[str, Any]:
    """The `detected` of a stored image."""
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


def image_row(file: StoredFile) -> dict[str, Any]:
    """An image as an item's input; `ctx.file` finds its bytes."""
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
