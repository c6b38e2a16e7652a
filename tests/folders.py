"""Where the tests keep files: in memory, if the machine has enough of it to give. Nothing that
they show needs a disk: they kill processes, not machines."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

_MEMORY = Path("/dev/shm")
_ENOUGH_BYTES = 6 * 1024**3


def work_in_memory() -> None:
    """From here on, this process and those it starts put temporary files there."""
    if _memory_has_room():
        os.environ["TMPDIR"] = tempfile.tempdir = str(_MEMORY)


def folder_of_a_server(prefix: str) -> Path:
    """Never below the tester's own temporary folder: a socket's path may have only 107 bytes."""
    home = _MEMORY if _memory_has_room() else "/tmp"
    return Path(tempfile.mkdtemp(prefix=prefix, dir=home))


def _memory_has_room() -> bool:
    writable = _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK)
    return writable and shutil.disk_usage(_MEMORY).free > _ENOUGH_BYTES
