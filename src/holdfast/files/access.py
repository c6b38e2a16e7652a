"""What a process needs to work with files."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.files.contract import FileStore
from holdfast.files.local import LocalFiles


@dataclass(frozen=True, slots=True)
class FileAccess:
    store: FileStore
    local: LocalFiles
    max_bytes: int  # largest file that is written
