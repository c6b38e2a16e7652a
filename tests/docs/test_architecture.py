"""The architecture page describes the folders and files that there are."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

from holdfast.features.manifest import FEATURES, manifests

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "holdfast"
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
    "contracts"
]
PAGE = (ROOT / "docs" / "explanation" / "architecture.md").read_text()


def described_in(heading: str) -> set[str]:
    table = PAGE.split(f"\n| {heading} |")[1].split("\n\n")[0]
    return set(re.findall(r"^\| `([\w*./]+)` \|", table, re.M))


def test_every_folder_is_described() -> None:
    folders = {f"{path.parent.name}/" for path in SOURCE.glob("*/__init__.py")}
    assert described_in("Folder") == {"holdfast/*.py", *folders}


@pytest.mark.parametrize("part", ["kernel", "features"])
def test_every_folder_of_a_part_is_described(part: str) -> None:
    folders = {f"{path.name}/" for path in (SOURCE / part).iterdir() if path.is_dir()}
    assert described_in(f"Folder of `{part}/`") == folders - {"__pycache__/"}


def test_the_seven_steps_of_a_record_name_files_that_exist() -> None:
    steps = re.findall(r"^\| (\d) \| `([\w/]+\.py)` \|", PAGE, re.M)
    assert [number for number, _ in steps] == list("1234567")
    assert all((SOURCE / path).is_file() for _, path in steps)


def test_every_file_that_the_page_names_exists() -> None:
    paths = set(re.findall(r"`((?:\w+/)+(?:\w+\.(?:py|sql))?)`", PAGE)) - {"src/holdfast/"}
    homes = (ROOT, SOURCE, SOURCE / "kernel", SOURCE / "features")
    there = {path for path in paths if any((home / path).exists() for home in homes)}
    assert paths - there == set()


#: What is made for the web or the command line may know it; so may what these share in a feature.
OF_THE_DOORS = re.compile(
    r"(api|pages|commands|compose)(_\w+)?|chores|(\w+_)?shapes|__init__|console"
)
SHARED_BY_PAGES = {
    "bulk.for_extensions", "items.filtering", "items.params", "jobs.charts", "jobs.column_guess",
    "jobs.file_inputs", "jobs.reasons", "jobs.scoped_job", "library.uploads",
    "switches.flag_needed",
}  # fmt: skip


def test_every_rule_of_a_feature_is_kept_from_the_web_and_the_command_line() -> None:
    """A contract of import-linter lists the modules; a new one must not be forgotten."""
    contract = CONTRACTS[-1]
    assert contract["forbidden_modules"][:2] == ["holdfast.server", "holdfast.cli"]
    listed = {name.removeprefix("holdfast.features.") for name in contract["source_modules"]}
    features = SOURCE / "features"
    rules = {
        ".".join(path.relative_to(features).with_suffix("").parts)
        for path in features.rglob("*.py")
        if not OF_THE_DOORS.fullmatch(path.stem) and path.parent != features
    }
    assert rules - SHARED_BY_PAGES == listed


def test_a_feature_imports_only_those_before_it_in_the_list() -> None:
    """import-linter would also count what they reach through the parts of the server. The console
    opens what every feature reads: rules are given it, and commands open it."""
    features = SOURCE / "features"
    assert {path.parent.name for path in features.glob("*/__init__.py")} == set(FEATURES)
    order = {name: number for number, name in enumerate(FEATURES)}
    upward = {
        f"{path.relative_to(features)}: {name}"
        for path in features.glob("*/**/*.py")
        for name in imported_by(path)
        if name.startswith("holdfast.features.")
        if order.get(name.split(".")[2], -1) > order[path.relative_to(features).parts[0]]
    }
    assert upward == set()


def test_nothing_but_the_manifests_knows_a_module_of_routes() -> None:
    """So no page calls a route: both call the rules, and show the same shapes."""
    routes = {f"{folder}.{name}" for folder, made in manifests() for name in made.routes}
    known = {
        f"{path.relative_to(ROOT)}: {name}"
        for home in ("src", "pipelines")
        for path in (ROOT / home).rglob("*.py")
        for name in imported_by(path) & routes
    }
    assert known == set()


def imported_by(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
    return found


def test_every_module_with_routes_pages_or_commands_is_in_its_manifest() -> None:
    named = {
        f"{folder}.{module}"
        for folder, made in manifests()
        for module in (
            *made.routes, *made.pages, *(command.module for command in made.commands.values()),
        )
    }  # fmt: skip
    files = (SOURCE / "features").glob("*/*.py")
    doors = {path for path in files if re.fullmatch(r"(api|pages|commands)(_\w+)?", path.stem)}
    assert {f"holdfast.features.{path.parent.name}.{path.stem}" for path in doors} == named
