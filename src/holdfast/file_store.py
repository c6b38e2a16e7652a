"""The paths of stored files: all in one folder, by content hash and name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_SHA256 = re.compile(r"[0-9a-f]{64}\Z")


def place_of(folder: Path, sha256: str, name: str) -> Path:
    return folder / sha256[:2] / sha256 / name


def place_named(folder: Path, sha256: Any, name: Any) -> Path | None:
    """The same for the values of a record; None unless the file exists."""
    if not isinstance(sha256, str) or not isinstance(name, str) or not _SHA256.match(sha256):
        return None
    if not name or "/" in name or "\0" in name or name.startswith("."):
        return None
    place = place_of(folder, sha256, name)
    return place if place.is_file() else None
