"""The extension that docs/how-to/write-an-extension.md builds works as the page says."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from tests.command import HoldfastCommand
from tests.ports import free_port

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "write-an-extension.md"
BLOCK = re.compile(
    r"^```\w+\n(?:#|--|<!--) file: (\S+)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL
)


def write_files(folder: Path) -> None:
    for name, text in BLOCK.findall(PAGE.read_text()):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_the_extension_of_the_guide_runs_saves_and_lists(
    database_url: str, tmp_path: Path, holdfast_command: HoldfastCommand
) -> None:
    write_files(tmp_path)
    about = tmp_path / "src" / "holdfast_weather-0.1.dist-info"
    about.mkdir()
    about.joinpath("METADATA").write_text("Metadata-Version: 2.1\nName: weather\nVersion: 0.1\n")
    entry = re.search(r'^weather = "(\S+)"$', (tmp_path / "pyproject.toml").read_text(), re.M)
    assert entry is not None
    points = f"[holdfast.pipelines]\nweather = {entry[1]}\n"
    about.joinpath("entry_points.txt").write_text(points)
    path = os.pathsep.join(filter(None, [str(about.parent), os.environ.get("PYTHONPATH")]))

    def run(*arguments: str) -> str:
        process = holdfast_command.start(*arguments, env={"PYTHONPATH": path})
        output, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
        return str(output)

    run("migrate", "up")
    run("run", "weather")
    readings = json.loads(run("weather", "list", "--json"))
    assert readings == [{"station": 1, "degrees": 21}, {"station": 2, "degrees": 22}]
    assert "List the latest readings." in run("weather", "--help")
    words = ("up", "weather", "--port", str(free_port()))
    server = holdfast_command.start(*words, env={"PYTHONPATH": path})
    assert server.stderr is not None
    assert any("Log in (once) with" in line for line in server.stderr)
    server.terminate()
    assert server.wait(60) == 0


@pytest.mark.parametrize("name", ["web.py", "templates/readings.html", "sql/common.sql"])
def test_the_guide_shows_every_file_of_its_list(name: str) -> None:
    assert f"src/holdfast_weather/{name}" in [found for found, _ in BLOCK.findall(PAGE.read_text())]
