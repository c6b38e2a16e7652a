"""The toy extension, installed beside Holdfast for processes of the test."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.command import HoldfastCommand

TOY = Path(__file__).parent / "weather"
#: As an installer writes them.
METADATA = "Metadata-Version: 2.1\nName: weather-toy\nVersion: 1.0\n"
ENTRY_POINTS = "[holdfast.pipelines]\nweather = weather_toy:EXTENSION\n"


class Installed:
    """Commands given where the toy is installed."""

    def __init__(self, folder: Path, command: HoldfastCommand) -> None:
        self.package = folder / "weather_toy"
        shutil.copytree(TOY, self.package, ignore=shutil.ignore_patterns("__pycache__"))
        about = folder / "weather_toy-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(METADATA)
        (about / "entry_points.txt").write_text(ENTRY_POINTS)
        self._path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
        self._command = command

    def start(self, *arguments: str, env: Mapping[str, str] | None = None) -> Any:
        given = {"PYTHONPATH": self._path, "HOLDFAST_WORKERS": "1", **(env or {})}
        return self._command.start(*arguments, env=given)

    @property
    def environment(self) -> dict[str, str]:
        """Of a process that imports Holdfast and the toy."""
        return {**os.environ, "PYTHONPATH": self._path}

    def start_module(self, *arguments: str) -> subprocess.Popen[str]:
        """It ends when its standard input does."""
        return subprocess.Popen(
            [sys.executable, "-m", *arguments],
            env=self.environment,
            stdin=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, env: Mapping[str, str] | None = None) -> tuple[int, str, str]:
        process = self.start(*arguments, env=env)
        output, errors = process.communicate(timeout=60)
        return process.returncode, output, errors


@pytest.fixture
def weather(tmp_path: Path, holdfast_command: HoldfastCommand) -> Installed:
    folder = tmp_path / "site"
    folder.mkdir()
    return Installed(folder, holdfast_command)
