"""The API as people meet it: a real server on loopback, real HTTP, on each database in turn."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.api.server import ApiServer


@pytest.fixture
async def server(database_url: str, tmp_path: Path) -> AsyncIterator[ApiServer]:
    """A server with the pipelines of `tests.api.server`, and no accounts yet."""
    async with ApiServer(database_url, tmp_path) as started:
        yield started
