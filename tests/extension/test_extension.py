"""The manifest of an extension: what it refuses, and what its parts import."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from holdfast.errors import PipelineError
from holdfast.extension import GROUP, Extension, FlagSpec, gathered, installed
from holdfast.kernel.database.extension_folders import folder_of

WEATHER = '''"""Weather."""
from holdfast.extension import Extension

EXTENSION = Extension(
    name="weather", package=__name__, help="Readings of stations.",
    pipeline="pipeline:Weather", commands="commands:app", web="web:PACK",
)
'''
PIPELINE = """
from holdfast import Pipeline

class Weather(Pipeline):
    name = {name!r}

    async def process(self, row, ctx):
        return row
"""


@pytest.fixture
def weather(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package on the path, importable as weather_package."""
    folder = tmp_path / "weather_package"
    folder.mkdir()
    (folder / "__init__.py").write_text(WEATHER)
    (folder / "pipeline.py").write_text(PIPELINE.format(name="weather"))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield folder
    for name in [name for name in sys.modules if name.startswith("weather_package")]:
        del sys.modules[name]


def point(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, GROUP)


def extension(**changes: object) -> Extension:
    values: dict[str, object] = {
        "name": "weather",
        "package": "weather_package",
        "help": "Readings.",
        "pipeline": "pipeline:Weather",
    }
    return Extension(**(values | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "name", ["", "core", "Weather", "9lives", "_weather", "we-ather", "wetter\n", "ä"]
)
def test_name_is_checked(name: str) -> None:
    with pytest.raises(PipelineError, match="cannot be named"):
        extension(name=name)


@pytest.mark.parametrize("reference", ["", "pipeline", "pipeline:", ":Weather", "a b:c", "a:b.c"])
def test_part_is_module_and_name(reference: str) -> None:
    with pytest.raises(PipelineError, match="cannot be"):
        extension(pipeline=reference)


def test_events_and_flags_carry_the_name() -> None:
    with pytest.raises(PipelineError, match="the event 'frost' of the extension weather"):
        extension(events={"frost": ("It froze.", ())})
    with pytest.raises(PipelineError, match="the flag 'frost' of the extension weather"):
        extension(flags=(FlagSpec("frost", "Warn of frost."),))
    made = extension(
        events={"weather.froze": ("It froze.", ())}, flags=(FlagSpec("weather_frost", "Warn."),)
    )
    assert made.flags[0].name == "weather_frost"


def test_entry_point_gives_the_extension_and_imports_no_part(weather: Path) -> None:
    (weather / "commands.py").write_text("raise RuntimeError('imported too early')")
    found = gathered([point("weather", "weather_package:EXTENSION")])
    assert found["weather"].package == "weather_package"
    assert "weather_package.pipeline" not in sys.modules
    assert found["weather"].load("options") is None


def test_pipeline_is_made_and_knows_its_extension(weather: Path) -> None:
    made = gathered([point("weather", "weather_package:EXTENSION")])["weather"].make()
    assert (made.name, made.extension) == ("weather", "weather")


def test_part_that_cannot_be_imported_names_the_package(weather: Path) -> None:
    (weather / "commands.py").write_text("import no_such_library")
    found = gathered([point("weather", "weather_package:EXTENSION")])["weather"]
    with pytest.raises(PipelineError, match=r"weather of weather_package is broken.*no_such_lib"):
        found.load("commands")
    with pytest.raises(PipelineError, match=r"weather_package is broken: its web, web:PACK"):
        found.load("web")


def test_pipeline_of_another_name_is_refused(weather: Path) -> None:
    (weather / "pipeline.py").write_text(PIPELINE.format(name="climate"))
    with pytest.raises(PipelineError, match="has no pipeline 'weather'"):
        gathered([point("weather", "weather_package:EXTENSION")])["weather"].make()


def test_pipeline_that_cannot_be_made_names_the_package(weather: Path) -> None:
    (weather / "pipeline.py").write_text("def Weather():\n    raise RuntimeError('no sun')")
    with pytest.raises(PipelineError, match=r"weather_package is broken.*RuntimeError: no sun"):
        gathered([point("weather", "weather_package:EXTENSION")])["weather"].make()


def test_broken_manifest_names_the_package(weather: Path) -> None:
    (weather / "__init__.py").write_text("1 / 0")
    with pytest.raises(PipelineError, match=r"package weather_package:EXTENSION cannot be imp"):
        gathered([point("weather", "weather_package:EXTENSION")])


@pytest.mark.parametrize(
    ("name", "value"),
    [("weather", "weather_package:WRONG"), ("climate", "weather_package:EXTENSION")],
)
def test_entry_point_must_be_an_extension_of_its_name(weather: Path, name: str, value: str) -> None:
    (weather / "__init__.py").write_text(WEATHER + "WRONG = 7\n")
    with pytest.raises(PipelineError, match=f"entry point {name} .* is not an Extension"):
        gathered([point(name, value)])


def test_two_extensions_of_one_name_are_refused(weather: Path) -> None:
    (weather / "copy.py").write_text(WEATHER)
    with pytest.raises(PipelineError, match="two extensions are named 'weather'"):
        gathered(
            [
                point("weather", "weather_package:EXTENSION"),
                point("weather", "weather_package.copy:EXTENSION"),
            ]
        )


def test_the_same_entry_point_twice_is_one_extension(weather: Path) -> None:
    twice = [point("weather", "weather_package:EXTENSION")] * 2
    assert list(gathered(twice)) == ["weather"]


def test_listing_what_is_installed_imports_manifests_only() -> None:
    program = (
        "import sys; from holdfast.extension import installed; found = installed();"
        "print(*[name for each in found.values() for name in sys.modules"
        " if name.startswith(each.package + '.')])"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert installed() and not result.stdout.strip()


@pytest.mark.parametrize("package", ["", "no_such.package", "json.decoder"])
def test_package_that_is_not_a_folder_is_named(package: str) -> None:
    with pytest.raises(PipelineError, match="the extension toy says that its package is"):
        folder_of("toy", package)
