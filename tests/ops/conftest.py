from __future__ import annotations

import shutil
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def promtool() -> Path:
    found = shutil.which("promtool")
    if found is None:
        pytest.fail("promtool is missing: run tests/servers as root, or install prometheus")
    return Path(found)
