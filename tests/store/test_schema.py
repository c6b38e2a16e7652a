"""The schema: that of a database that was upgraded step by step is exactly that of a new one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from holdfast.kernel.database.migrate import downgrade, upgrade
from holdfast.kernel.database.schema import Branch
from tests.extension.contract import CORE_BRANCH, SNAPSHOTS
from tests.store.schema_dump import dump, own_objects, snapshot_of, text_of

DIALECTS = ("sqlite", "postgres")
each_branch = pytest.mark.parametrize(
    ("branch", "folder"), SNAPSHOTS, ids=[branch.name for branch, _ in SNAPSHOTS]
)


@each_branch
def test_steps_lead_from_every_version_to_the_schema_of_a_new_database(
    branch: Branch, folder: Path, empty_database_url: str
) -> None:
    """A new database is what the file of the newest version says. Set back to version N, it is what
    the file of N says, which is what databases of that release have; and the steps from there make
    it the newest again."""
    url, branches = empty_database_url, dict.fromkeys((CORE_BRANCH, branch))
    others = set() if branch is CORE_BRANCH else set(_core_objects(url))
    assert text_of(own_objects(url, branch, CORE_BRANCH)) == _expected(folder, branch.newest, url)
    for version in range(branch.newest - 1, 0, -1):
        downgrade(url, branch.name, branches=tuple(branches))
        assert _own_text(url, others) == _expected(folder, version, url)
    upgrade(url, branches=tuple(branches))
    assert _own_text(url, others) == _expected(folder, branch.newest, url)


def _core_objects(url: str) -> dict[str, str]:
    upgrade(url, branches=(CORE_BRANCH,))
    return dump(url)


def _own_text(url: str, others: set[str]) -> str:
    return text_of({name: text for name, text in dump(url).items() if name not in others})


def _expected(folder: Path, version: int, url: str) -> str:
    file = snapshot_of(folder, version, url)
    assert file.exists(), "run: python -m tests.store.schema_dump"
    return file.read_text()


@each_branch
def test_every_version_has_its_file(branch: Branch, folder: Path) -> None:
    versions = range(1, branch.newest + 1)
    expected = {f"{version}.{dialect}.txt" for version in versions for dialect in DIALECTS}
    assert {file.name for file in folder.iterdir()} == expected


@each_branch
def test_stored_functions_have_a_version_in_their_names(branch: Branch, folder: Path) -> None:
    """So that programs of two releases can run side by side: a change is a new function."""
    names = re.findall(r"^create or replace function (\w+)", branch.functions("postgres"), re.M)
    assert [name for name in names if not re.fullmatch(r"\w+_\d+", name)] == []
    others = branch.create("postgres").replace(branch.functions("postgres"), "")
    assert "create function" not in others and "create or replace function" not in others
