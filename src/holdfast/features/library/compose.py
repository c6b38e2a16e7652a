"""Builds the library of uploaded files, from the settings."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from holdfast.cli.composition import file_access, open_bucket, table_limits
from holdfast.configuration import Settings
from holdfast.features.library.file_imports import FileImports, bucket_places
from holdfast.features.library.file_library import FileLibrary

if TYPE_CHECKING:
    from holdfast.features.console import Console


def file_library(settings: Settings, console: Console) -> FileLibrary:
    imports = FileImports(
        settings.files.roots,
        bucket_places(settings.files.buckets or ""),
        partial(open_bucket, settings),
        settings.files.max_upload_bytes,
    )
    return FileLibrary(console, file_access(settings), imports, table_limits(settings))
