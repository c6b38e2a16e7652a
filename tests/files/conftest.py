"""The file stores: a folder, a bucket of a real S3 server, and either during a dry run."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.files import FileStore, FolderStore
from holdfast.files.trial import TrialStore
from tests.file_stores import bucket_of


@pytest.fixture(params=["folder", "bucket", "trial"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> FileStore:
    if request.param == "folder":
        return FolderStore(tmp_path / "files")
    if request.param == "trial":
        return TrialStore(FolderStore(tmp_path / "kept"), FolderStore(tmp_path / "tried"))
    return bucket_of(request.getfixturevalue("bucket_settings"))
