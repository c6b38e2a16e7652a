"""What a folder imports is installed by the requirements that its make target installs."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PARTS = [ROOT / "client" / "pyproject.toml", *sorted(ROOT.glob("pipelines/*/pyproject.toml"))]
PROJECTS = [ROOT / "pyproject.toml", *PARTS]
PACKAGES = {f"holdfast_{path.parent.name}" for path in PARTS}
OUR_OWN = {"holdfast", "tests", "bench", "examples", "pipelines", "tools", "conftest", *PACKAGES}
#: Never installed unless somebody asks for it: its wheels are under the GPLv2.
ONLY_BY_CHOICE = {"pillow-heif"}
# `psycopg` is an application's own driver, `deeds` and `holdfast_tides` are written by tests.
BROUGHT_BY_OTHERS = {"psycopg", "sqlalchemy", "deeds", "holdfast_tides"}


def packages(folder: str) -> set[str]:
    names = {
        name.partition(".")[0]
        for path in (ROOT / folder).rglob("*.py")
        for name in imported(ast.parse(path.read_text()))
    }
    return names - sys.stdlib_module_names - OUR_OWN - BROUGHT_BY_OTHERS


def imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def pinned(requirements: str) -> set[str]:
    lines = (ROOT / "requirements" / f"{requirements}.txt").read_text()
    return {normal(name) for name in re.findall(r"^([\w.-]+)(?:\[.*?\])?==", lines, re.MULTILINE)}


def normal(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


@pytest.mark.parametrize(
    ("folder", "requirements"),
    [("src", "base"), ("client/src", "base"), ("tests", "dev"), ("pipelines", "dev")],
)
def test_every_imported_package_is_pinned(folder: str, requirements: str) -> None:
    distributions = packages_distributions()
    found = packages(folder)
    missing = {
        package
        for package in found
        if not {normal(name) for name in distributions.get(package, ())} & pinned(requirements)
    }
    assert found and missing == set()


def test_pins_are_made_from_what_the_packages_depend_on() -> None:
    names = {name for path in PROJECTS for name in _declared(path) if "holdfast" not in name}
    base = set((ROOT / "requirements" / "base.in").read_text().split())
    assert names - ONLY_BY_CHOICE == {_plain(name) for name in base}


def test_the_core_alone_has_pins_of_its_own_with_the_same_versions() -> None:
    names = {name for name in _declared(ROOT / "pyproject.toml") if "holdfast" not in name}
    core = (ROOT / "requirements" / "core.in").read_text().split()
    assert names == {_plain(name) for name in core}
    pins = [
        set(re.findall(r"^\S+==\S+", (ROOT / "requirements" / f"{name}.txt").read_text(), re.M))
        for name in ("core", "base")
    ]
    assert len(pins[0]) > len(core) and pins[0] < pins[1]


@pytest.mark.parametrize("path", PROJECTS, ids=lambda path: path.parent.name)
def test_packages_have_lower_bounds_only(path: Path) -> None:
    """Upper bounds keep an application from installing us beside newer versions of its own."""
    needs = [need.partition(";")[0] for need in _declarations(path)]
    assert needs and [need for need in needs if re.search("[<~!]|==", need)] == []


def _declared(path: Path) -> set[str]:
    return {_plain(need) for need in _declarations(path)}


def _declarations(path: Path) -> list[str]:
    project = tomllib.loads(path.read_text())["project"]
    extras = [need for group in project.get("optional-dependencies", {}).values() for need in group]
    return [*project["dependencies"], *extras]


def _plain(requirement: str) -> str:
    return normal(re.split(r"[\[><=;~! ]", requirement)[0])
