"""A scene for each test, on a fresh database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.chaos.children import Children
from tests.chaos.scene import Scene


@pytest.fixture
def children(tmp_path: Path) -> Iterator[Children]:
    started = Children(tmp_path)
    yield started
    started.close()


@pytest.fixture
def scene(scene_at: Callable[[str], Scene], database_url: str) -> Scene:
    return scene_at(database_url)


@pytest.fixture
def scene_at(tmp_path: Path, children: Children) -> Callable[[str], Scene]:
    """A scene on a database of the test's own, or on the way to one."""
    return lambda url: Scene(url, tmp_path, children)
