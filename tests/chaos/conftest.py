"""A scene for each test, on a fresh database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.chaos.scene import Scene
from tests.command import HoldfastCommand


@pytest.fixture
def scene(holdfast_command: HoldfastCommand, tmp_path: Path) -> Scene:
    return Scene(holdfast_command, tmp_path)


@pytest.fixture
def scene_at(tmp_path: Path) -> Iterator[Callable[[str], Scene]]:
    """A scene on a database of the test's own, or on the way to one."""
    commands = []

    def make(url: str) -> Scene:
        commands.append(HoldfastCommand(url, tmp_path))
        return Scene(commands[-1], tmp_path)

    yield make
    for command in commands:
        command.close()
