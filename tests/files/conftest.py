"""Both file stores: a folder, and a bucket of a real S3 server."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.files import FileStore, FolderStore
from tests.file_stores import bucket_of


@pytest.fixture(params=["folder", "bucket"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> FileStore:
    if request.param == "folder":
        return FolderStore(tmp_path / "files")
    return bucket_of(request.getfixturevalue("bucket_settings"))
