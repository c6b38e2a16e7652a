"""The architecture page describes the folders and files that there are."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "holdfast"
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
OF_THE_DOORS = re.compile(r"(api|pages|commands|compose)(_\w+)?|__init__|console")
SHARED_BY_PAGES = {
    "items.filtering", "jobs.charts", "jobs.column_guess", "jobs.reasons", "library.file_inputs",
}  # fmt: skip


def test_every_rule_of_a_feature_is_kept_from_the_web_and_the_command_line() -> None:
    """A contract of import-linter lists the modules; a new one must not be forgotten."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    contract = contracts["contracts"][-1]
    assert contract["forbidden_modules"][:2] == ["holdfast.server", "holdfast.cli"]
    listed = {name.removeprefix("holdfast.features.") for name in contract["source_modules"]}
    features = SOURCE / "features"
    rules = {
        ".".join(path.relative_to(features).with_suffix("").parts)
        for path in features.rglob("*.py")
        if not OF_THE_DOORS.fullmatch(path.stem) and path.parent != features
    }
    assert rules - SHARED_BY_PAGES == listed
