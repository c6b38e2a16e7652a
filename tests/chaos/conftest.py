"""A scene for each test, on a fresh database."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.chaos.children import Children
from tests.chaos.scene import Scene
from tests.fixtures import fresh_database
from tests.fleet import EVERY_MODE


@pytest.fixture(params=EVERY_MODE)
def database_url(request: pytest.FixtureRequest) -> str:
    return fresh_database(request)


@pytest.fixture
def scene(
    database_url: str, fleet_settings: dict[str, str], tmp_path: Path, children: Children
) -> Scene:
    return Scene(database_url, tmp_path, children, fleet_settings)


@pytest.fixture
def scene_at(tmp_path: Path, children: Children) -> Callable[[str], Scene]:
    """A scene on a database of the test's own, or on the way to one."""
    return lambda url: Scene(url, tmp_path, children)
