"""How large the directory of a zip is, before it is read."""

from __future__ import annotations

import zipfile
from typing import IO, Any

from holdfast.errors import InputError

#: Room for 100,000 files with long names. Python's reader makes an object of every file at once,
#: eight times as large as its entry in the directory.
MOST_BYTES = 20 * 1024 * 1024
_SIZE = 5  # where the record at the end of a zip has it


def refuse_large_directory(file: IO[bytes], name: str) -> None:
    """Raises InputError if the zip lists more files than it should. What is no zip is left to its
    reader."""
    # The reader's own function: a record that it finds elsewhere than we do would be let through.
    try:
        end: list[Any] | None = zipfile._EndRecData(file)  # type: ignore[attr-defined]
    except zipfile.BadZipFile:
        return
    if end is not None and end[_SIZE] > MOST_BYTES:
        raise InputError(
            f"{name} lists too many files: its directory has {end[_SIZE]:,} bytes, more than "
            f"{MOST_BYTES:,}",
            "Pack fewer files into a zip.",
        )
