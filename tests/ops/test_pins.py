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
OUR_OWN = {"holdfast", "tests", "bench", "examples"}
# `psycopg` is an application's own driver, `deeds` and `holdfast_tides` are written by tests.
BROUGHT_BY_OTHERS = {"psycopg", "deeds", "holdfast_tides"}


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


@pytest.mark.parametrize(("folder", "requirements"), [("src", "base"), ("tests", "dev")])
def test_every_imported_package_is_pinned(folder: str, requirements: str) -> None:
    distributions = packages_distributions()
    found = packages(folder)
    missing = {
        package
        for package in found
        if not {normal(name) for name in distributions.get(package, ())} & pinned(requirements)
    }
    assert found and missing == set()


def test_pins_are_made_from_what_the_package_depends_on() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [name for group in project["optional-dependencies"].values() for name in group]
    wanted = {re.split("[><=;~! ]", name)[0] for name in (*project["dependencies"], *extras)}
    assert wanted == set((ROOT / "requirements" / "base.in").read_text().split())
